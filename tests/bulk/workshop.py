"""The steps of a job, called one by one in this process, without Ray."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from drive import make_job
from scripted_engine import ScriptedDecoder, ScriptedEngine

from outrider.bulk.assemble import Assembled, assemble
from outrider.bulk.folder import JobFolder, Task, open_job, settle
from outrider.bulk.index import Index, build_index
from outrider.bulk.manifest import Identity, Manifest
from outrider.bulk.worker import ShardWorker, WorkOrder
from outrider.config.schema import BulkJob


def request(custom_id: str, prompt: str = "", **fields: Any) -> dict[str, Any]:
    """A batch line."""
    body = {"prompt": prompt or f"prompt of {custom_id}", "max_tokens": 8, **fields}
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/completions", "body": body}


def write_input(path: Path, rows: Sequence[object]) -> Path:
    """Dictionaries become JSON lines; strings are written as they are."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@dataclass
class Workshop:
    """A job in `root`, and its steps."""

    root: Path
    rows: Sequence[object]
    engine: ScriptedEngine = field(default_factory=ScriptedEngine)
    bulk: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = "f1"

    @property
    def folder(self) -> JobFolder:
        return JobFolder(self.root / "job")

    @property
    def job(self) -> BulkJob:
        source = str(self.root / "in.jsonl")
        bulk = {"input": source, "job_dir": str(self.folder.root), **self.bulk}
        return make_job({"bulk": bulk, "sampling": self.sampling})

    def index(self) -> Index:
        write_input(self.root / "in.jsonl", self.rows)
        return build_index(
            self.root / "in.jsonl",
            self.folder.scratch,
            shard_rows=self.job.bulk.shard_rows,
            limit=0,
        )

    def open(self, index: Index) -> Manifest:
        settings = {"sampling": dict(self.sampling), "layout": dict(self.bulk)}
        identity = Identity(
            fingerprint=self.fingerprint,
            settings=settings,
            input_path=str(index.source),
            input_digest=index.digest,
            num_rows=index.num_rows,
            num_shards=index.num_shards,
        )
        new_attempt = self.job.bulk.new_attempt
        return open_job(self.folder, identity, new_attempt=new_attempt, now=100.0)

    def worker(self, index: Index) -> ShardWorker:
        return ShardWorker(
            WorkOrder(
                job=self.job,
                root=str(self.folder.root),
                index=index,
                fingerprint=self.fingerprint,
                model="scripted",
                make_engine=self.engine,
            )
        )

    def begin(self) -> tuple[Index, Manifest, list[Task]]:
        with self.folder.locked():
            index = self.index()
            manifest = self.open(index)
            return index, manifest, settle(self.folder, manifest, index)

    def run(self, stop_after: int | None = None) -> tuple[Manifest, Assembled | None]:
        """Do the job; or only so many shards, as if the power failed after a record."""
        index, manifest, tasks = self.begin()
        worker = self.worker(index) if tasks else None
        for task in tasks[:stop_after]:
            assert worker is not None
            manifest.record(task.shard, worker.work(task))
            manifest.save()
        if stop_after is not None and stop_after < len(tasks):
            return manifest, None
        made = assemble(self.folder, manifest, parquet=True)
        manifest.save()
        return manifest, made

    def but(self, **changes: Any) -> Workshop:
        return replace(self, **changes)

    def output(self) -> bytes:
        return self.folder.output.read_bytes()


def decoder_of(engine: ScriptedEngine) -> tuple[ScriptedDecoder, Callable[[], Any]]:
    """One decoder and a factory that always hands it out, to look at what it was asked."""
    decoder, tokenizer = engine()
    return decoder, lambda: (decoder, tokenizer)
