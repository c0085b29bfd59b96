"""Entries that the store could not take, kept on disk until it can.

One JSONL file a run: `<key>.jsonl`, whose first line is the run's `Opened`. Its owner holds
`<key>.lock` as long as it lives, so that only the file of a dead process is taken up by another.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from outrider.core import Fault
from outrider.tracking.entry import Entry, Opened, from_line, to_line

log = logging.getLogger(__name__)


class Spool:
    """A folder of unsent entries. Methods may be called from any thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mutex = threading.Lock()
        self._owned: dict[str, FileLock] = {}

    def append(self, opened: Opened, entries: Sequence[Entry]) -> None:
        """Add to the run's file, which begins with `opened`. Raises OSError when the disk fails."""
        with self._mutex:
            self._own(opened.key)
            path = self._path(opened.key)
            lines = [to_line(entry) for entry in entries]
            if not path.exists():
                lines.insert(0, to_line(opened))
            with path.open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)

    def read(self, key: str) -> tuple[Opened, list[Entry]] | None:
        """What waits for a run, oldest first; None if nothing does."""
        with self._mutex:
            return self._read(key)

    def remove(self, opened: Opened, num_sent: int) -> None:
        """Forget the first `num_sent` entries; the rest now begins with `opened`."""
        with self._mutex:
            found = self._read(opened.key)
            rest = found[1][num_sent:] if found else []
            if rest:
                self._rewrite(opened, rest)
            else:
                self._path(opened.key).unlink(missing_ok=True)
                self._disown(opened.key)

    def abandoned(self) -> Iterator[str]:
        """Keys of runs whose process is gone; each is ours while the caller works on it.

        A run comes before those that are shown under it or go on with it.
        """
        for path in sorted(self.folder.glob("*.jsonl"), key=_precedence):
            key = path.stem
            if key not in self._owned:
                with self._taken(key) as is_ours:
                    if is_ours:
                        yield key

    @contextmanager
    def _taken(self, key: str) -> Iterator[bool]:
        try:
            self._own(key, wait_s=0.0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            self._disown(key)

    def _read(self, key: str) -> tuple[Opened, list[Entry]] | None:
        path = self._path(key)
        if not path.exists():
            return None
        entries = list(_entries(path))
        if entries and isinstance(entries[0], Opened):
            return entries[0], entries[1:]
        path.replace(path.with_suffix(".broken"))  # its run can't be known: kept for a person
        log.warning("%s does not begin with a run; it is now %s.broken", path, path.stem)
        return None

    def _rewrite(self, opened: Opened, entries: Sequence[Entry]) -> None:
        path = self._path(opened.key)
        fresh = path.with_suffix(".tmp")
        fresh.write_text(
            "".join(f"{to_line(entry)}\n" for entry in (opened, *entries)), encoding="utf-8"
        )
        fresh.replace(path)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.jsonl"

    def _own(self, key: str, wait_s: float = 1.0) -> None:
        if key in self._owned:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.folder / f"{key}.lock", thread_local=False)
        lock.acquire(timeout=wait_s)
        self._owned[key] = lock

    def _disown(self, key: str) -> None:
        lock = self._owned.pop(key, None)
        if lock is None:
            return
        if not self._path(key).exists():
            Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _precedence(path: Path) -> tuple[bool, float, str]:
    opened = next(_entries(path), None)
    if not isinstance(opened, Opened):
        return True, 0.0, path.stem
    return bool(opened.parent or opened.resumes), opened.at_s, path.stem


def _entries(path: Path) -> Iterator[Entry]:
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            yield from_line(line)
        except Fault as fault:  # the last line of a process that was killed while writing it
            log.warning("%s: left out what is %s", path, fault)
