"""Features on disk, as Arrow files that are read without being loaded; computed once.

A folder holds `features.json` (of what they are) and `shard-00000.arrow`, ... of SHARD_ROWS rows
each. A shard is written whole under another name first: what has its name is done, so a killed
run goes on with the next one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import torch

from outrider.bulk.durable import only_one, replacing
from outrider.core import UserError
from outrider.distill.corpus import Example
from outrider.distill.features import Features

SHARD_ROWS = 64
VERSION = "1"
SCHEMA = pa.schema(
    [
        ("features", pa.large_binary()),  # [n, F] in the folder's type
        ("top_ids", pa.large_binary()),  # [a, K] int32
        ("top_logprobs", pa.large_binary()),  # [a, K] float16
    ]
)
Compute = Callable[[Sequence[Example]], Iterable[Features]]
DTYPES = {"bfloat16": torch.bfloat16, "float32": torch.float32}


def cache_key(identity: Mapping[str, object]) -> str:
    """16 hex digits of what the features are of."""
    text = json.dumps({**identity, "version": VERSION}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class FeatureCache:
    """Of `examples` in their order, in `folder`. `identity` says of what they are."""

    folder: Path
    identity: Mapping[str, object]
    examples: Sequence[Example]
    feature_size: int
    dtype: str  # of features, a key of DTYPES

    @property
    def missing(self) -> list[int]:
        """Shards that are not there yet."""
        num_shards = -(-len(self.examples) // SHARD_ROWS)
        return [number for number in range(num_shards) if not self._path(number).exists()]

    @property
    def num_missing_tokens(self) -> int:
        """Of the rows in them."""
        return sum(len(row.tokens) for number in self.missing for row in self._rows(number))

    def fill(self, compute: Compute, on_shard: Callable[[], None]) -> None:
        """Compute what is missing; `on_shard` is called when one is on disk."""
        with self.begun():
            for number in self.missing:
                self.write(number, compute)
                on_shard()

    @contextmanager
    def begun(self) -> Iterator[None]:
        """The folder, for this job alone. UserError while another job writes there."""
        taken = f"another job computes features in {self.folder}: wait for it"
        self.folder.mkdir(parents=True, exist_ok=True)
        with only_one(self.folder, taken):
            for half in self.folder.glob("shard-*.tmp"):
                half.unlink(missing_ok=True)
            with replacing(self.folder / "features.json") as out:
                out.write(json.dumps(dict(self.identity), indent=1).encode() + b"\n")
            yield

    def write(self, number: int, compute: Compute, *, writer: str = "") -> None:
        """Compute one shard. `writer`: see `replacing`."""
        self._write(number, compute(self._rows(number)), writer)

    def open(self) -> FeatureReader:
        """What is read back. UserError where a shard is damaged or missing."""
        shards = range(-(-len(self.examples) // SHARD_ROWS))
        tables = [self._table(number) for number in shards]
        if sum(table.num_rows for table in tables) != len(self.examples):
            raise UserError(f"{self.folder} has too few rows: remove it and run again")
        return FeatureReader(tables, self.examples, self.feature_size, DTYPES[self.dtype])

    def _rows(self, number: int) -> Sequence[Example]:
        return self.examples[number * SHARD_ROWS : (number + 1) * SHARD_ROWS]

    def _path(self, number: int) -> Path:
        return self.folder / f"shard-{number:05}.arrow"

    def _write(self, number: int, rows: Iterable[Features], writer: str) -> None:
        columns = [
            [_bytes(row.features), _bytes(row.top_ids), _bytes(row.top_logprobs)] for row in rows
        ]
        arrays = [pa.array(column, pa.large_binary()) for column in zip(*columns, strict=True)]
        with (
            replacing(self._path(number), writer=writer) as out,
            pa.ipc.new_file(out, SCHEMA) as table,
        ):
            table.write_batch(pa.record_batch(arrays, schema=SCHEMA))

    def _table(self, number: int) -> pa.Table:
        path = self._path(number)
        try:
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
            if table.schema != SCHEMA:
                raise pa.ArrowInvalid("other columns")
        except (pa.ArrowException, OSError) as error:
            raise UserError(f"{path} can't be read: remove it and run again") from error
        return table


class FeatureReader:
    """Rows by their number in the corpus; one is copied out of the files at a time."""

    def __init__(
        self,
        tables: Sequence[pa.Table],
        examples: Sequence[Example],
        feature_size: int,
        dtype: torch.dtype,
    ) -> None:
        self._tables = tables
        self._examples = examples
        self._size = feature_size
        self._dtype = dtype

    def __getitem__(self, number: int) -> Features:
        table, row = self._tables[number // SHARD_ROWS], number % SHARD_ROWS
        num_told = self._examples[number].num_answer - 1
        return Features(
            _tensor(table["features"][row], self._dtype).view(-1, self._size),
            _tensor(table["top_ids"][row], torch.int32).view(num_told, -1),
            _tensor(table["top_logprobs"][row], torch.float16).view(num_told, -1),
        )


def _bytes(tensor: torch.Tensor) -> bytes:
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def _tensor(value: pa.LargeBinaryScalar, dtype: torch.dtype) -> torch.Tensor:
    return torch.frombuffer(bytearray(value.as_buffer()), dtype=dtype)
