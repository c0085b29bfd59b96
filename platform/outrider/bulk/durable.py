"""Writing so that it stays written: sync, exclusive final names, folders synced too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from outrider.core import Fault, UserError


@contextmanager
def disk_faults(path: Path) -> Iterator[None]:
    """Turn an OSError (full disk, no permission, quota) into one line that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise Fault(
            f"cannot write {path}: {reason}. What is done is kept: mend this and run the same"
            " command again"
        ) from error


@contextmanager
def only_one(folder: Path, taken: str) -> Iterator[None]:
    """Hold a folder for one process. UserError `taken` for another one. Ends with the process."""
    lock = FileLock(folder / ".lock", timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise UserError(taken) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def replacing(path: Path, *, writer: str = "") -> Iterator[IO[bytes]]:
    """A binary file that takes the place of `path`, whole and synced, when the block ends well.

    `writer` tells those apart that may write the same file at the same time.
    """
    unfinished = path.with_name(f"{path.name}{writer}.tmp")
    with disk_faults(path):
        try:
            with unfinished.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        except BaseException:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def publish(unfinished: Path, final: Path) -> bool:
    """Give a synced file its final name unless that is taken: the first writer wins.

    `os.link` fails where the name exists, so a worker thought dead can never change a part.
    Returns whether it was us. The unfinished name is gone afterwards either way.
    """
    try:
        os.link(unfinished, final)
        won = True
    except FileExistsError:
        won = False
    unfinished.unlink(missing_ok=True)
    sync_folder(final.parent)
    return won


def counted(path: Path) -> int:
    """Count once more, in a file of its own that outlives whoever counts; returns the count."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        os.write(descriptor, b".")
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
