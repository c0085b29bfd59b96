"""The index pass: shards, digests and the search for duplicate ids, in flat memory."""

from __future__ import annotations

import hashlib
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from outrider.bulk.corpus import MAX_LINE_BYTES, Shard, read_line, shard_digest
from outrider.bulk.durable import disk_faults
from outrider.bulk.parquet import spool_parquet
from outrider.core import UserError

RECORD = struct.Struct("<QQQQ16s")  # offset, length, first line, rows, digest
UTF8_BOM = b"\xef\xbb\xbf"
JSONL = (".jsonl", ".ndjson")
WRONG_ENCODINGS = (b"\xff\xfe", b"\xfe\xff")
CHUNK = 2**20
ID_BATCH = 4096  # ids looked up in one transaction


@dataclass(frozen=True, slots=True)
class Index:
    """What the pass found. Shards are read from the index file one at a time."""

    source: Path  # the JSONL that shards point into: the input, or the spool of a Parquet input
    digest: str  # sha256 of the input file, hex
    num_rows: int
    num_shards: int
    file: Path

    def shard(self, number: int) -> Shard:
        with self.file.open("rb") as file:
            file.seek(number * RECORD.size)
            return _unpack(number, file.read(RECORD.size))

    def shards(self) -> Iterator[Shard]:
        with self.file.open("rb") as file:
            for number in range(self.num_shards):
                yield _unpack(number, file.read(RECORD.size))


def _unpack(number: int, raw: bytes) -> Shard:
    offset, length, first_line, num_rows, digest = RECORD.unpack(raw)
    return Shard(number, offset, length, first_line, num_rows, digest.hex())


def build_index(source: Path, scratch: Path, *, shard_rows: int, limit: int) -> Index:
    """Read the input once. `limit` rows at most (0: all). `UserError` before any work is done."""
    check_input(source)
    scratch.mkdir(parents=True, exist_ok=True)
    file = scratch / "index.bin"
    with disk_faults(scratch):
        if source.suffix == ".parquet":
            digest = _sha256(source)
            rows = spool_parquet(source, scratch / "rows.jsonl")
            num_rows = _index_lines(rows, file, scratch, shard_rows, limit)[1]
        else:
            rows = source
            digest, num_rows = _index_lines(source, file, scratch, shard_rows, limit)
    if num_rows == 0:
        raise UserError(f"{source} has no rows: put one request on each line")
    return Index(rows, digest, num_rows, file.stat().st_size // RECORD.size, file)


def check_input(source: Path) -> None:
    """Refuse what is surely not an input file, in one line."""
    if not source.exists():
        raise UserError(f"bulk.input: {source} does not exist")
    if not source.is_file():
        raise UserError(f"bulk.input: {source} is not a file: name one .jsonl or .parquet file")
    if source.suffix not in (*JSONL, ".parquet"):
        raise UserError(f"bulk.input: {source.name} must end in .jsonl, .ndjson or .parquet")
    try:
        with source.open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise UserError(f"bulk.input: cannot read {source}: {error.strerror}") from error
    if not head:
        raise UserError(f"bulk.input: {source} is empty: put one request on each line")
    if head.startswith(WRONG_ENCODINGS):
        raise UserError(f"bulk.input: {source} is UTF-16: save it as UTF-8")


def _index_lines(
    source: Path, index_file: Path, scratch: Path, shard_rows: int, limit: int
) -> tuple[str, int]:
    """Write one record per shard; returns (sha256 of the file, rows)."""
    hashing = hashlib.sha256()
    num_rows = 0
    with source.open("rb") as file, index_file.open("wb") as out, _Ids(scratch, source) as known:
        start = _skip_mark(file)
        hashing.update(UTF8_BOM[:start])
        block = _Block(start, 1)
        for number, offset, raw in _raw_lines(file, source, start):
            hashing.update(raw)
            if limit and num_rows == limit:
                break
            block.raw += raw
            if not raw.strip():
                continue
            num_rows += 1
            block.num_rows += 1
            known.add(read_line(raw, number).custom_id, number)
            if block.num_rows == shard_rows:
                out.write(block.record())
                block = _Block(offset + len(raw), number + 1)
        if block.num_rows:
            out.write(block.record())
        while chunk := file.read(CHUNK):
            hashing.update(chunk)
    return hashing.hexdigest(), num_rows


def _skip_mark(file: IO[bytes]) -> int:
    """Leave a byte-order mark behind; returns where the first row starts."""
    start = len(UTF8_BOM) if file.read(len(UTF8_BOM)) == UTF8_BOM else 0
    file.seek(start)
    return start


def _raw_lines(file: IO[bytes], source: Path, start: int) -> Iterator[tuple[int, int, bytes]]:
    """(1-based number, byte offset, bytes with the line end) of each line."""
    offset, number = start, 0
    while raw := file.readline(MAX_LINE_BYTES):
        number += 1
        if len(raw) == MAX_LINE_BYTES:
            most = MAX_LINE_BYTES // 2**20
            raise UserError(f"{source} line {number} is longer than {most} MiB: split it")
        yield number, offset, raw
        offset += len(raw)


@dataclass(slots=True)
class _Block:
    """The shard being gathered."""

    offset: int
    first_line: int
    num_rows: int = 0
    raw: bytearray = field(default_factory=bytearray)

    def record(self) -> bytes:
        digest = bytes.fromhex(shard_digest(bytes(self.raw)))
        return RECORD.pack(self.offset, len(self.raw), self.first_line, self.num_rows, digest)


class _Ids:
    """The custom_ids seen so far, on disk: memory stays flat for millions of rows."""

    def __init__(self, scratch: Path, source: Path) -> None:
        self._path = scratch / "ids.sqlite"
        self._source = source
        self._pending: dict[bytes, tuple[str, int]] = {}

    def __enter__(self) -> _Ids:
        self._path.unlink(missing_ok=True)
        self._database = sqlite3.connect(self._path, isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-32768"):
            self._database.execute(f"PRAGMA {pragma}")
        self._database.execute("CREATE TABLE ids (digest BLOB PRIMARY KEY, line) WITHOUT ROWID")
        return self

    def __exit__(self, *failure: object) -> None:
        with closing(self._database):
            if failure[0] is None:
                self._flush()
        self._path.unlink(missing_ok=True)

    def add(self, custom_id: str | None, line: int) -> None:
        if custom_id is None:
            return
        key = hashlib.blake2b(custom_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if key in self._pending:
            self._refuse(custom_id, self._pending[key][1], line)
        self._pending[key] = (custom_id, line)
        if len(self._pending) == ID_BATCH:
            self._flush()

    def _flush(self) -> None:
        self._database.execute("BEGIN")
        for key, (custom_id, line) in self._pending.items():
            try:
                self._database.execute("INSERT INTO ids VALUES (?, ?)", (key, line))
            except sqlite3.IntegrityError:
                query = "SELECT line FROM ids WHERE digest = ?"
                first = self._database.execute(query, (key,)).fetchone()[0]
                self._refuse(custom_id, first, line)
        self._database.execute("COMMIT")
        self._pending.clear()

    def _refuse(self, custom_id: str, first: int, second: int) -> None:
        raise UserError(
            f"{self._source}: lines {first} and {second} have the same custom_id {custom_id!r}:"
            " give each row its own"
        )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
