"""`engine.trace`: the five stages of every round, as Parquet files in the job's folder.

Each file is whole when it appears, so that a killed worker loses at most the rounds since the
last one. Nothing here exists while tracing is off.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from outrider.bulk.ports import Decoder
from outrider.core import Completion, Request, Update
from outrider.engine.round_record import RoundRecord

FILE_RECORDS = 50_000  # most records of one file
SCHEMA = pa.schema(
    [
        ("request_id", pa.string()),
        ("round", pa.int64()),
        ("num_rows", pa.int32()),
        ("drafter", pa.string()),
        ("drafted", pa.list_(pa.int32())),
        ("q", pa.list_(pa.float64())),
        ("draft_s", pa.float64()),
        ("failure", pa.string()),
        ("p", pa.list_(pa.float64())),
        ("score_s", pa.float64()),
        ("accepted", pa.int32()),
        ("evaluated", pa.int32()),
        ("uniforms", pa.list_(pa.float64())),
        ("token", pa.int32()),
        ("resampled", pa.bool_()),
        ("length_before", pa.int32()),
        ("length_after", pa.int32()),
        ("kv_length_after", pa.int32()),
        ("stop_reason", pa.string()),
    ]
)


class RoundTrace:
    """A `TraceSink` that writes `<folder>/rounds-<name>-<number>.parquet`. One thread writes."""

    def __init__(self, folder: Path, *, name: str) -> None:
        self._folder = folder
        self._name = name
        self._records: list[RoundRecord] = []
        self._num_files = 0

    def __call__(self, record: RoundRecord) -> None:
        self._records.append(record)
        if len(self._records) >= FILE_RECORDS:
            self.flush()

    def flush(self) -> None:
        """Write what has gathered as a file of its own."""
        if not self._records:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"rounds-{self._name}-{self._num_files:05d}.parquet"
        unfinished = path.with_suffix(".tmp")
        table = pa.Table.from_pylist([asdict(record) for record in self._records], schema=SCHEMA)
        pq.write_table(table, unfinished)
        unfinished.rename(path)
        self._num_files += 1
        self._records.clear()


class TracedDecoder:
    """A decoder whose trace is on disk before the last request in flight is answered.

    Answers come on the decode thread, which is the one that traces.
    """

    def __init__(self, decoder: Decoder, trace: RoundTrace) -> None:
        self._decoder = decoder
        self._trace = trace
        self._num_in_flight = 0
        self._counting = threading.Lock()

    def submit(
        self, request: Request, on_update: Callable[[Update], None] | None = None
    ) -> Future[Completion]:
        answer: Future[Completion] = Future()
        with self._counting:
            self._num_in_flight += 1
        try:
            inner = self._decoder.submit(request, on_update)
        except BaseException:
            self._ended()
            raise
        inner.add_done_callback(lambda done: self._pass_on(done, answer))
        return answer

    def cancel(self, request_id: str) -> None:
        self._decoder.cancel(request_id)

    def stats(self) -> Mapping[str, object]:
        return self._decoder.stats()

    def reset_prefix_cache(self) -> None:
        self._decoder.reset_prefix_cache()

    def close(self) -> None:
        self._decoder.close()
        self._trace.flush()

    def _pass_on(self, done: Future[Completion], answer: Future[Completion]) -> None:
        error: BaseException | None = done.exception()
        try:
            if self._ended() == 0:
                self._trace.flush()
        except OSError as broken:  # a full disk: the requests must hear of it, not hang
            error = broken
        if error is None:
            answer.set_result(done.result())
        else:
            answer.set_exception(error)

    def _ended(self) -> int:
        with self._counting:
            self._num_in_flight -= 1
            return self._num_in_flight


def trace_name() -> str:
    """Tells the files of two workers, or of one and its successor, apart."""
    return f"{os.uname().nodename}-{os.getpid()}"
