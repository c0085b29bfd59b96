"""Parts: what one shard became. One file, its rows in input order, its own proof at the end.

A part is a JSON line per row (an answer, or {"failed": ...}) and a footer {"part": ...} with the
counts, the figures, the digest of the shard it answers and the sha256 of the lines above. It is
written under an unfinished name, synced, and given its final name by `publish`: the first writer
wins and nobody can change it afterwards.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from outrider.bulk.durable import disk_faults, publish
from outrider.bulk.figures import Figures
from outrider.bulk.rendering import json_line
from outrider.bulk.rows import ErrorCode, RowError

PART_VERSION = 1
FINAL_NAME = re.compile(r"part-(\d{5,})\.(\d+)\.jsonl")
UNFINISHED = "*.tmp"
TAIL_BYTES = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class PartState:
    """What the manifest keeps of a part."""

    attempt: int
    num_done: int
    num_failed: int
    num_retryable: int  # of the failed: those that another attempt may mend
    fingerprints: list[str]  # of the releases whose rows it holds; the last one wrote it
    shard: str  # digest of the input bytes that it answers
    sha256: str  # of its row lines

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> PartState:
        return cls(**{name: value[name] for name in cls.__slots__})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PartRow:
    """One row's line: exactly one of `answer` and `error` is set."""

    raw: bytes
    answer: dict[str, Any] | None
    error: RowError | None

    @property
    def custom_id(self) -> str | None:
        if self.error is not None:
            return self.error.custom_id
        assert self.answer is not None
        return str(self.answer["custom_id"])


def part_path(folder: Path, shard: int, attempt: int) -> Path:
    return folder / f"part-{shard:05d}.{attempt}.jsonl"


def state_of(
    rows: Sequence[PartRow], *, attempt: int, fingerprints: list[str], shard: str
) -> PartState:
    """Count and hash the rows of a part about to be written."""
    errors = [row.error for row in rows if row.error is not None]
    return PartState(
        attempt=attempt,
        num_done=len(rows) - len(errors),
        num_failed=len(errors),
        num_retryable=sum(error.is_retryable for error in errors),
        fingerprints=fingerprints,
        shard=shard,
        sha256=hashlib.sha256(b"".join(row.raw for row in rows)).hexdigest(),
    )


def write_part(
    folder: Path, number: int, rows: Iterable[PartRow], state: PartState, figures: Figures
) -> bool:
    """Make the part final. False: another writer was first, and its part stands."""
    final = part_path(folder, number, state.attempt)
    unfinished = folder / f"part-{number:05d}.{state.attempt}.{os.getpid()}.tmp"
    footer = {"version": PART_VERSION, **state.to_dict(), "figures": figures.to_dict()}
    with disk_faults(final):
        try:
            with unfinished.open("wb") as file:
                file.writelines(row.raw for row in rows)
                file.write(json_line({"part": footer}))
                file.flush()
                os.fsync(file.fileno())
            return publish(unfinished, final)
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)


def read_footer(path: Path) -> tuple[PartState, Figures] | None:
    """The part's own account of itself, or None where the file is not a whole part."""
    try:
        footer = json.loads(_last_line(path))["part"]
        if footer["version"] != PART_VERSION:
            return None
        return PartState.from_dict(footer), Figures.from_dict(footer["figures"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_rows(path: Path) -> Iterator[PartRow]:
    """The rows of a whole part, in order, one at a time."""
    with path.open("rb") as file:
        for raw in file:
            if raw.startswith(b'{"part":'):
                return
            yield parse_row(raw)


def parse_row(raw: bytes) -> PartRow:
    value = json.loads(raw)
    if "failed" not in value:
        return PartRow(raw, value, None)
    failed = value["failed"]
    error = RowError(
        failed["line"], failed["custom_id"], ErrorCode(failed["code"]), failed["message"]
    )
    return PartRow(raw, None, error)


def is_intact(path: Path, custom_ids: Sequence[str | None]) -> bool:
    """Whether the file is a whole part that holds exactly these rows, in this order."""
    found = read_footer(path)
    if found is None:
        return False
    hashing = hashlib.sha256()
    ids: list[str | None] = []
    try:
        for row in read_rows(path):
            hashing.update(row.raw)
            ids.append(row.custom_id)
    except (ValueError, KeyError, TypeError):
        return False
    return ids == list(custom_ids) and hashing.hexdigest() == found[0].sha256


def final_parts(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """(shard, attempt, path) of every part that has its final name."""
    for path in folder.iterdir():
        if match := FINAL_NAME.fullmatch(path.name):
            yield int(match[1]), int(match[2]), path


def remove_unfinished(folder: Path) -> None:
    for path in folder.glob(UNFINISHED):
        path.unlink(missing_ok=True)


def _last_line(path: Path) -> bytes:
    """The last line, found from the end: footers are short, parts may be long."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        reach = TAIL_BYTES
        while True:
            file.seek(max(0, size - reach))
            tail = file.read()
            if not tail.endswith(b"\n"):
                raise ValueError("the last line is cut")
            lines = tail.rstrip(b"\n").rsplit(b"\n", 1)
            if len(lines) > 1 or reach >= size:
                return lines[-1]
            reach *= 4
