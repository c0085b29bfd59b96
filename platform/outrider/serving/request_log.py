"""Every request that ended, as rows of Parquet files: one line of figures, no text by default.

A file is written beside its name, synced and renamed: a crash loses what was not yet written, at
most `rows` entries or `period_s` seconds, and leaves no broken file behind. Columns: the fields of
`RequestEntry`, in their order; `prompt` and `answer` only where they were asked for.
"""

from __future__ import annotations

import logging
import os
import queue
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from outrider.serving.request_entry import RequestEntry

MOST_WAITING = 10_000  # entries that wait to be written; more are dropped and counted
CLOSE_WAIT_S = 10.0  # a disk that hangs does not hold up the end of serving
STALE_S = 3600.0  # an unfinished file so old is of a process that died

_LOG = logging.getLogger(__name__)
_TYPES: dict[Any, pa.DataType] = {
    "str": pa.string(),
    "int": pa.int64(),
    "float": pa.float64(),
    "bool": pa.bool_(),
    "float | None": pa.float64(),
}
TEXTS = ("prompt", "answer")
# The disk's errors, and Arrow's for values that no column of the schema holds.
UNWRITABLE = (OSError, ValueError, TypeError, OverflowError, pa.ArrowException)


class RequestLog:
    """Call it on any thread: `add` never waits, and nothing here raises."""

    def __init__(
        self,
        folder: Path,
        *,
        rows: int,
        period_s: float,
        with_text: bool,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """A file is begun anew after `rows` entries or `period_s` seconds.

        `clock`: seconds since 1970, for the files' names.
        """
        self._folder = folder
        self._rows = rows
        self._period_s = period_s
        self._clock = clock
        self._schema = schema(with_text=with_text)
        self._queue: queue.Queue[RequestEntry | None] = queue.Queue(MOST_WAITING)
        self._author = secrets.token_hex(4)  # gateways of many nodes may share a folder
        self._num_files = 0
        self._num_refused = 0  # counted by those who add
        self._num_unwritten = 0  # counted by the writer
        self._is_closed = False
        self._warned: set[str] = set()
        self._thread = threading.Thread(target=self._write_all, name="request log", daemon=True)
        self._thread.start()

    @property
    def num_dropped(self) -> int:
        """Entries that are in no file, and will not be."""
        return self._num_refused + self._num_unwritten

    def add(self, entry: RequestEntry) -> None:
        try:
            if self._is_closed:
                raise queue.Full
            self._queue.put_nowait(entry)
        except queue.Full:
            self._num_refused += 1
            self._warn("the request log can't keep up or is closed: entries are dropped")

    def close(self) -> None:
        """Write what is left. A second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            self._queue.put(None, timeout=CLOSE_WAIT_S)
        except queue.Full:
            return
        self._thread.join(CLOSE_WAIT_S)

    def _write_all(self) -> None:
        _sweep(self._folder, self._clock() - STALE_S)
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
            _write_file(self._folder / self._name(), _table(entries, self._schema))
        except UNWRITABLE as error:
            self._num_unwritten += len(entries)
            self._warn(f"the request log can't be written ({error}): serving goes on")

    def _name(self) -> str:
        """Sorts by time."""
        self._num_files += 1
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(self._clock()))
        return f"requests-{stamp}-{self._author}-{self._num_files:05d}.parquet"

    def _warn(self, message: str) -> None:
        """Each kind once."""
        kind = message[: message.find("(")]
        if kind not in self._warned:
            self._warned.add(kind)
            _LOG.warning(message)


def schema(*, with_text: bool) -> pa.Schema:
    """Columns of the request log."""
    wanted = [each for each in fields(RequestEntry) if with_text or each.name not in TEXTS]
    return pa.schema([(each.name, _TYPES[each.type]) for each in wanted])


def _table(entries: Sequence[RequestEntry], wanted: pa.Schema) -> pa.Table:
    columns = {name: [_plain(getattr(each, name)) for each in entries] for name in wanted.names}
    return pa.table(columns, schema=wanted)


def _plain(value: object) -> object:
    """Half a surrogate pair, which JSON may hold, is no UTF-8: it is written as its escape."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def _write_file(path: Path, table: pa.Table) -> None:
    unfinished = path.with_suffix(".tmp")
    try:
        with unfinished.open("wb") as file:
            pq.write_table(table, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.rename(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """The file's name is on disk too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sweep(folder: Path, before_s: float) -> None:
    """Remove what processes that died left unfinished."""
    for path in folder.glob("requests-*.tmp"):
        try:
            if path.stat().st_mtime < before_s:
                path.unlink()
        except OSError:  # it is gone already, or not ours to remove
            continue
