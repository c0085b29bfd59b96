"""The input file: indexed once in a streaming pass, then read shard by shard by byte offset."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.bulk.openai_batch import RowReader
from outrider.bulk.rows import ErrorCode, InvalidRowError, Row, RowError, bad
from outrider.core import Fault

MAX_LINE_BYTES = 64 * 2**20  # keeps memory flat when a file has no line ends


@dataclass(frozen=True, slots=True)
class Shard:
    """Rows [number * shard_rows, ...) of the input: where they lie and what they must be."""

    number: int
    offset: int  # bytes from the start of the JSONL file
    length: int  # bytes
    first_line: int  # 1-based
    num_rows: int  # lines that are not blank
    digest: str  # blake2b of the bytes, hex


def shard_digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank. `value` is None where `problem` says why it is no row."""

    number: int
    custom_id: str | None
    value: Mapping[str, Any] | None
    problem: InvalidRowError | None = None


def read_line(raw: bytes, number: int) -> Line:
    """Parse one line as far as its custom_id."""
    try:
        value = _json_object(raw)
    except InvalidRowError as problem:
        return Line(number, None, None, problem)
    try:
        return Line(number, _custom_id(value, number), value)
    except InvalidRowError as problem:
        return Line(number, None, None, problem)


def _json_object(raw: bytes) -> dict[str, Any]:
    try:
        value = json.loads(raw)
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte {error.start + 1} of the line"
        raise InvalidRowError(ErrorCode.INVALID_JSON, message) from error
    except ValueError as error:  # json.JSONDecodeError, and integers of thousands of digits
        raise InvalidRowError(ErrorCode.INVALID_JSON, f"not JSON: {error}") from error
    except RecursionError as error:
        raise InvalidRowError(ErrorCode.INVALID_JSON, "not JSON: nested too deeply") from error
    if not isinstance(value, dict):
        message = f"a line must be a JSON object, not {type(value).__name__}"
        raise InvalidRowError(ErrorCode.INVALID_JSON, message)
    return value


def _custom_id(value: Mapping[str, Any], number: int) -> str:
    """`custom_id`, else (for column rows) `id`, else the line number."""
    is_batch = bool(value.keys() & {"body", "url", "method"})
    for key in ("custom_id",) if is_batch else ("custom_id", "id"):
        found = value.get(key)
        if isinstance(found, str) and found:
            return found
        if isinstance(found, int) and not isinstance(found, bool) and not is_batch:
            return str(found)
        if found is not None:
            raise bad(key, "a string that is not empty", found)
    if is_batch:
        raise InvalidRowError(ErrorCode.INVALID_FIELD, "custom_id is missing")
    return str(number)


def shard_lines(source: Path, shard: Shard) -> list[Line]:
    """The shard's lines, after checking that they are still the ones that were indexed."""
    try:
        with source.open("rb") as file:
            file.seek(shard.offset)
            raw = file.read(shard.length)
    except OSError as error:
        raise Fault(f"cannot read {source}: {error.strerror}") from error
    if shard_digest(raw) != shard.digest:
        raise Fault(f"{source} changed while the job ran: run again when it is settled")
    return list(_lines(raw, shard.first_line))


def _lines(raw: bytes, first_line: int) -> Iterator[Line]:
    for number, line in enumerate(raw.split(b"\n"), start=first_line):
        if line.strip():
            yield read_line(line, number)


def read_rows(lines: list[Line], reader: RowReader) -> list[Row | RowError]:
    """Each line as a row or as its error, in order."""
    return [_row(line, reader) for line in lines]


def _row(line: Line, reader: RowReader) -> Row | RowError:
    if line.problem is not None:
        return _error(line, line.problem)
    assert line.value is not None
    assert line.custom_id is not None
    try:
        return reader.row(line.value, line.number, line.custom_id)
    except InvalidRowError as problem:
        return _error(line, problem)


def _error(line: Line, problem: InvalidRowError) -> RowError:
    return RowError(line.number, line.custom_id, problem.code, str(problem))
