"""The job's folder: its names, its lock, and what a new start makes of what it finds there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from outrider.bulk.corpus import Shard, shard_lines
from outrider.bulk.durable import disk_faults, only_one
from outrider.bulk.index import Index
from outrider.bulk.manifest import Identity, Manifest, differences, load_manifest, refusal
from outrider.bulk.parts import (
    PartState,
    final_parts,
    is_intact,
    part_path,
    read_footer,
    remove_unfinished,
)
from outrider.core import UserError


@dataclass(frozen=True, slots=True)
class JobFolder:
    """Paths of a job."""

    root: Path

    @property
    def manifest(self) -> Path:
        return self.root / "manifest.json"

    @property
    def parts(self) -> Path:
        return self.root / "parts"

    @property
    def scratch(self) -> Path:
        """Index and spool of the input; rebuilt at each start."""
        return self.root / "scratch"

    @property
    def live(self) -> Path:
        """Heartbeats of the workers; of interest while the job runs."""
        return self.root / "scratch" / "live"

    @property
    def output(self) -> Path:
        return self.root / "output.jsonl"

    @property
    def table(self) -> Path:
        return self.root / "output.parquet"

    @property
    def errors(self) -> Path:
        return self.root / "errors.jsonl"

    @property
    def report(self) -> Path:
        return self.root / "report.json"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one driver; another one is refused. Ends with the process."""
        self._make()
        taken = f"another job is running in {self.root}: wait for it, or name another bulk.job_dir"
        with only_one(self.root, taken):
            yield

    def _make(self) -> None:
        if self.root.exists() and not self.root.is_dir():
            raise UserError(f"bulk.job_dir: {self.root} is a file: name a folder")
        ours = {".lock", "scratch", "parts", "manifest.json.tmp"}
        if self.root.exists() and not self.manifest.exists():
            foreign = sorted(p.name for p in self.root.iterdir() if p.name not in ours)
            if foreign:
                raise UserError(
                    f"bulk.job_dir: {self.root} holds other files ({foreign[0]}) and no"
                    " manifest.json: name a new or empty folder"
                )
        with disk_faults(self.root):
            self.parts.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(self.live, ignore_errors=True)
            self.live.mkdir(parents=True)


@dataclass(frozen=True, slots=True)
class Task:
    """A shard to decode. `keep` is the attempt whose done rows are copied, if there is one."""

    shard: int
    attempt: int
    keep: int | None


def open_job(folder: JobFolder, identity: Identity, *, new_attempt: bool, now: float) -> Manifest:
    """Begin a job, or go on with the folder's; refuse another configuration or input.

    With `new_attempt`, what is done stays byte for byte, every row that is not done is decoded
    by the present configuration, and the manifest and the report name both.
    """
    began = load_manifest(folder.manifest)
    if began is None:
        manifest = Manifest(folder.manifest, identity)
        manifest.configurations[identity.fingerprint] = now
        return manifest
    found = differences(began.identity, identity)
    if found and not new_attempt:
        raise refusal(folder.root, found)
    if found:
        began.min_attempt = 1 + _last_attempt(folder, began)
        began.configurations.setdefault(identity.fingerprint, now)
    began.identity = identity
    return began


def _last_attempt(folder: JobFolder, manifest: Manifest) -> int:
    on_disk = (attempt for _, attempt, _ in final_parts(folder.parts))
    return max([manifest.min_attempt, *on_disk])


def settle(folder: JobFolder, manifest: Manifest, index: Index) -> list[Task]:
    """Clean up after the last run, adopt finished parts, and say what is left to do.

    Rows that failed for good are tried again by another configuration only: it may take them.
    """
    with disk_faults(folder.parts):
        remove_unfinished(folder.parts)
    on_disk: dict[int, list[int]] = {}
    for number, attempt, _ in final_parts(folder.parts):
        on_disk.setdefault(number, []).append(attempt)
    kept = {}
    tasks = []
    for shard in index.shards():
        attempts = sorted(on_disk.get(shard.number, []), reverse=True)
        state = manifest.shards.get(shard.number)
        if state is None or state.attempt not in attempts or state.shard != shard.digest:
            state = _adoptable(folder, manifest, index, shard, attempts)
        if state is not None:
            kept[shard.number] = state
        if state is None or _may_mend(state, manifest.identity.fingerprint):
            attempt = max([manifest.min_attempt - 1, *attempts]) + 1
            tasks.append(Task(shard.number, attempt, None if state is None else state.attempt))
    manifest.shards = kept
    return tasks


def num_settled(manifest: Manifest, tasks: Sequence[Task]) -> int:
    """Rows in parts that this run leaves alone."""
    open_shards = {task.shard for task in tasks}
    return sum(
        state.num_done + state.num_failed
        for shard, state in manifest.shards.items()
        if shard not in open_shards
    )


def _may_mend(state: PartState, fingerprint: str) -> bool:
    """Whether another attempt may turn failed rows of the part into done ones."""
    is_new = state.fingerprints[-1] != fingerprint
    return state.num_retryable > 0 or (is_new and state.num_failed > 0)


def _adoptable(
    folder: JobFolder, manifest: Manifest, index: Index, shard: Shard, attempts: list[int]
) -> PartState | None:
    """The latest part that is whole, ours and holds exactly the shard's rows."""
    custom_ids: list[str | None] | None = None
    for attempt in attempts:
        path = part_path(folder.parts, shard.number, attempt)
        found = read_footer(path)
        if found is None or found[0].shard != shard.digest:
            continue
        if found[0].fingerprints[-1] not in manifest.configurations:
            continue
        if custom_ids is None:
            custom_ids = [line.custom_id for line in shard_lines(index.source, shard)]
        if is_intact(path, custom_ids):
            return found[0]
    return None
