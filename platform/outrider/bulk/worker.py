"""The Ray Data worker: a shard's number comes in, its part is on disk, a small record goes out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.bulk.corpus import Line, Shard, read_rows, shard_lines
from outrider.bulk.decode import Decoded, ShardDecoder, pass_order
from outrider.bulk.durable import counted
from outrider.bulk.figures import Figures
from outrider.bulk.folder import JobFolder, Task
from outrider.bulk.index import Index
from outrider.bulk.live import Heart
from outrider.bulk.openai_batch import RowReader
from outrider.bulk.parts import (
    PartRow,
    PartState,
    is_intact,
    parse_row,
    part_path,
    read_footer,
    state_of,
    write_part,
)
from outrider.bulk.parts import read_rows as part_rows
from outrider.bulk.ports import ChatTokenizer, Decoder, EngineFactory
from outrider.bulk.rendering import Renderer, failure
from outrider.bulk.rows import Row, RowError
from outrider.config.schema import Baseline, BulkJob
from outrider.core import Fault, UserError

MAX_STARTS = 3  # of one shard's attempt; a shard that kills its worker must not do so for ever


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkOrder:
    """All that a worker needs to know, pickled to it once."""

    job: BulkJob
    root: str
    index: Index
    fingerprint: str
    model: str
    make_engine: EngineFactory


class ShardWorker:
    """Decodes shards into parts. Faults are answers, not exceptions: Ray would wrap them.

    Ray starts a killed worker anew and repeats its tasks (max_restarts and max_task_retries are
    unlimited by default in Ray Data); a part that is already there is taken as it is.
    """

    def __init__(self, order: WorkOrder) -> None:
        self._order = order
        self._folder = JobFolder(Path(order.root))
        self._reader = RowReader(order.job.sampling, order.job.engine.seed)
        self._failure: Exception | None = None
        try:
            decoder, tokenizer = order.make_engine()
            self._equip(decoder, tokenizer)
        except Exception as error:  # noqa: BLE001  (told by the first record, in one line)
            self._failure = error

    def _equip(self, decoder: Decoder, tokenizer: ChatTokenizer) -> None:
        job = self._order.job
        self._renderer = Renderer(self._order.fingerprint, self._order.model, tokenizer)
        self._decoder = ShardDecoder(
            decoder=decoder,
            tokenizer=tokenizer,
            heart=Heart(self._folder.live),
            rule=job.engine.rule.rule,
            near_tie=job.bulk.near_tie,
        )

    def __call__(self, batch: Mapping[str, Sequence[Any]]) -> dict[str, list[str]]:
        tasks = [Task(**json.loads(str(task))) for task in batch["task"]]
        return {"record": [json.dumps(self._record(task)) for task in tasks]}

    def _record(self, task: Task) -> dict[str, Any]:
        try:
            if self._failure is not None:
                raise self._failure
            state = self.work(task)
        except UserError as error:
            return {"user_error": str(error)}
        except Fault as error:
            return {"fault": str(error)}
        except Exception as error:  # noqa: BLE001  (the driver tells it and stops)
            reason = str(error).splitlines()[0] if str(error) else ""
            return {"fault": f"a worker failed: {type(error).__name__}: {reason}"}
        return {"shard": task.shard, "state": state.to_dict()}

    def work(self, task: Task) -> PartState:
        """Decode what the task leaves open, write the part, and return its state."""
        shard = self._order.index.shard(task.shard)
        lines = shard_lines(self._order.index.source, shard)
        found = self._standing(task, lines)
        if found is not None:
            return found
        self._count_start(task, lines)
        rows, figures, before = self._rows(task, shard, lines)
        mine = self._order.fingerprint
        state = state_of(
            rows,
            attempt=task.attempt,
            fingerprints=[*(f for f in before if f != mine), mine],
            shard=shard.digest,
        )
        if write_part(self._folder.parts, task.shard, rows, state, figures):
            return state
        found = self._standing(task, lines)
        if found is None:
            path = part_path(self._folder.parts, task.shard, task.attempt)
            raise Fault(f"{path} was written by someone else and is not whole: remove it")
        return found

    def _standing(self, task: Task, lines: list[Line]) -> PartState | None:
        """The part, if another worker (or this one before its death) has made it final."""
        path = part_path(self._folder.parts, task.shard, task.attempt)
        if not path.exists() or not is_intact(path, [line.custom_id for line in lines]):
            return None
        found = read_footer(path)
        return None if found is None else found[0]

    def _count_start(self, task: Task, lines: list[Line]) -> None:
        starts = counted(self._folder.live / f"begun-{task.shard}.{task.attempt}")
        if starts > MAX_STARTS:
            raise Fault(
                f"lines {lines[0].number} to {lines[-1].number} ended their worker"
                f" {MAX_STARTS} times: take the row that does it out of the input"
            )

    def _rows(
        self, task: Task, shard: Shard, lines: list[Line]
    ) -> tuple[list[PartRow], Figures, list[str]]:
        kept, figures, fingerprints = self._kept(task)
        read = read_rows(lines, self._reader)
        wanted = [row for row in read if isinstance(row, Row) and row.custom_id not in kept]
        name = f"{task.shard}.{task.attempt}"
        if self._order.job.bulk.baseline is Baseline.ALL:
            order = pass_order(shard.number)
            decoded = self._decoder.decode_both(wanted, name, order, figures)
        else:
            decoded = self._decoder.decode(wanted, name, figures)
        rows = [self._part_row(row, kept, decoded) for row in read]
        return rows, figures, fingerprints if kept else []

    def _kept(self, task: Task) -> tuple[dict[str, PartRow], Figures, list[str]]:
        """Done rows of the attempt before, byte for byte, its figures and its releases."""
        if task.keep is None:
            return {}, Figures(), []
        path = part_path(self._folder.parts, task.shard, task.keep)
        found = read_footer(path)
        if found is None:
            raise Fault(f"{path} is gone or damaged: run the same command again")
        rows = [row for row in part_rows(path) if row.answer is not None]
        return {str(row.custom_id): row for row in rows}, found[1], found[0].fingerprints

    def _part_row(
        self, row: Row | RowError, kept: Mapping[str, PartRow], decoded: Decoded
    ) -> PartRow:
        if row.custom_id is not None and row.custom_id in kept:
            return kept[row.custom_id]
        error = row if isinstance(row, RowError) else decoded.errors.get(row.line)
        if error is not None:
            return parse_row(failure(error))
        assert isinstance(row, Row)
        return parse_row(self._renderer.answer(row, decoded.completions[row.line]))
