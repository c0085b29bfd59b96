"""A folder of made things: each is made once, under a lock, and appears whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from outrider.core import Fault

Notice = Callable[[str], None]
"""Takes one line for the person who waits."""

_NAME_LENGTH = 60  # characters of a key that stay readable


def default_cache_dir(environ: Mapping[str, str]) -> Path:
    """Return OUTRIDER_CACHE, or `.cache/outrider` in the home folder. Read once, at the edge."""
    chosen = environ.get("OUTRIDER_CACHE", "")
    return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".cache" / "outrider"


def entry_name(readable: str, *identity: str) -> str:
    """Return a file name that tells a person what it is and is unique to `identity`."""
    digest = hashlib.sha256("\0".join(identity).encode()).hexdigest()[:16]
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', readable)[-_NAME_LENGTH:].strip('-.')}-{digest}"


def make_once(folder: Path, make: Callable[[Path], None], notice: Notice) -> Path:
    """Return `folder`; if it is missing, fill a temporary folder with `make` and rename it.

    A second process waits for the first. What a killed process left is removed by the next one.
    Raises Fault when the disk refuses.
    """
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder, notice):
            if not folder.is_dir():  # else the process that held the lock has made it
                _make(folder, make)
    except OSError as error:
        raise Fault(
            f"cannot write the model cache {folder.parent}: {error.strerror or error}; "
            "free the disk, or set OUTRIDER_CACHE to another folder"
        ) from error
    return folder


@contextmanager
def _locked(folder: Path, notice: Notice) -> Iterator[None]:
    """Hold the folder's lock; the operating system frees it when the process dies."""
    lock = FileLock(folder.with_name(f"{folder.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        notice(f"another process is preparing {folder.name}; waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _make(folder: Path, make: Callable[[Path], None]) -> None:
    for leftover in folder.parent.glob(f"{folder.name}.*.tmp"):
        shutil.rmtree(leftover, ignore_errors=True)
    staging = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    staging.mkdir()
    try:
        make(staging)
        staging.rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
