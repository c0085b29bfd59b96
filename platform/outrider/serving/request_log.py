"""Every request that ended, as rows of Parquet files: one line of figures, no text by default.

A file is written beside its name, synced and renamed: a crash loses what was not yet written and
leaves no broken file behind. Columns: the fields of `RequestEntry`.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from outrider.serving.request_entry import RequestEntry

MOST_WAITING = 10_000  # entries that wait to be written; more are dropped and counted

_LOG = logging.getLogger(__name__)
_TYPES: dict[Any, pa.DataType] = {
    "str": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "float | None": pa.float64(),
}
TEXTS = ("prompt", "answer")


class RequestLog:
    """Call it on any thread: `add` never waits."""

    def __init__(self, folder: Path, *, rows: int, period_s: float, with_text: bool) -> None:
        """A file is begun anew after `rows` entries or `period_s` seconds."""
        self._folder = folder
        self._rows = rows
        self._period_s = period_s
        self._schema = schema(with_text=with_text)
        self._queue: queue.Queue[RequestEntry | None] = queue.Queue(MOST_WAITING)
        self._num_files = 0
        self._has_warned = False
        self.num_dropped = 0
        self._thread = threading.Thread(target=self._write_all, name="request log", daemon=True)
        self._thread.start()

    def add(self, entry: RequestEntry) -> None:
        try:
            self._queue.put_nowait(entry)
        except queue.Full:
            self.num_dropped += 1

    def close(self) -> None:
        """Write what is left."""
        self._queue.put(None)
        self._thread.join()

    def _write_all(self) -> None:
        is_open = True
        while is_open:
            entries, is_open = self._take()
            if entries:
                self._write(entries)

    def _take(self) -> tuple[list[RequestEntry], bool]:
        """Entries of one file; False behind the last."""
        entries: list[RequestEntry] = []
        until = time.monotonic() + self._period_s
        while len(entries) < self._rows:
            try:
                entry = self._queue.get(timeout=max(until - time.monotonic(), 0.0))
            except queue.Empty:
                break
            if entry is None:
                return entries, False
            entries.append(entry)
        return entries, True

    def _write(self, entries: Sequence[RequestEntry]) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            _write_file(self._folder / self._name(), entries, self._schema)
        except OSError as error:
            self.num_dropped += len(entries)
            if not self._has_warned:
                self._has_warned = True
                _LOG.warning("the request log can't be written (%s): serving goes on", error)

    def _name(self) -> str:
        self._num_files += 1
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        return f"requests-{stamp}-{os.getpid()}-{self._num_files:05d}.parquet"


def schema(*, with_text: bool) -> pa.Schema:
    """Columns of the request log."""
    wanted = [each for each in fields(RequestEntry) if with_text or each.name not in TEXTS]
    return pa.schema([(each.name, _TYPES[each.type]) for each in wanted])


def _write_file(path: Path, entries: Sequence[RequestEntry], wanted: pa.Schema) -> None:
    rows = [asdict(entry) for entry in entries]
    columns = {name: [row[name] for row in rows] for name in wanted.names}
    unfinished = path.with_suffix(".tmp")
    with unfinished.open("wb") as file:
        pq.write_table(pa.table(columns, schema=wanted), file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
