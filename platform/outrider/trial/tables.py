"""Observations and turns as Parquet: the artifacts of a trial that figures can be told from again.

One row per request and one per turn; columns are the fields of `Observation` and `Turn`, with
their units. A later version may add columns: they are read where they are known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from outrider.core import Fault
from outrider.trial.observation import Observation, Turn

OBSERVATIONS = "observations.parquet"
TURNS = "turns.parquet"

_COUNTS = pa.list_(pa.int64())

OBSERVATION_SCHEMA = pa.schema(
    [
        ("contender", pa.string()),
        ("in_flight", pa.int64()),
        ("batch", pa.int64()),
        ("case", pa.string()),
        ("kind", pa.string()),
        ("language", pa.string()),
        ("temperature", pa.float64()),
        ("num_prompt_tokens", pa.int64()),
        ("submitted_s", pa.float64()),
        ("first_token_s", pa.float64()),
        ("inter_token_s", pa.float64()),
        ("total_s", pa.float64()),
        ("active_s", pa.float64()),
        ("emitted", pa.int64()),
        ("drafted", pa.int64()),
        ("evaluated", pa.int64()),
        ("accepted", pa.int64()),
        ("num_rounds", pa.int64()),
        ("num_draft_rounds", pa.int64()),
        ("position_attempts", _COUNTS),
        ("position_accepts", _COUNTS),
        ("token_ids", _COUNTS),
        ("finish_reason", pa.string()),
        ("error", pa.string()),
        ("parity", pa.string()),
    ]
)
TURN_SCHEMA = pa.schema(
    [
        ("contender", pa.string()),
        ("in_flight", pa.int64()),
        ("batch", pa.int64()),
        ("seconds", pa.float64()),
        ("emitted", pa.int64()),
        ("num_requests", pa.int64()),
        ("num_failed", pa.int64()),
        ("cpu_s", pa.float64()),
        ("peak_memory_bytes", pa.int64()),
        ("gpu_ratio", pa.float64()),
        ("energy_j", pa.float64()),
    ]
)

RowT = TypeVar("RowT", Observation, Turn)


def write_observations(path: Path, observations: Iterable[Observation]) -> None:
    _write(path, OBSERVATION_SCHEMA, observations)


def write_turns(path: Path, turns: Iterable[Turn]) -> None:
    _write(path, TURN_SCHEMA, turns)


def read_observations(path: Path) -> tuple[Observation, ...]:
    """Raises Fault where the file is not such a table."""
    return _read(path, Observation)


def read_turns(path: Path) -> tuple[Turn, ...]:
    """Raises Fault where the file is not such a table."""
    return _read(path, Turn)


def _write(path: Path, schema: pa.Schema, rows: Iterable[Observation] | Iterable[Turn]) -> None:
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=schema)
    pq.write_table(table, path, compression="zstd")


def _read(path: Path, row: type[RowT]) -> tuple[RowT, ...]:
    known = {field.name for field in fields(row)}
    try:
        rows = pq.read_table(path).to_pylist()
        return tuple(row(**_typed(values, known)) for values in rows)
    except (pa.ArrowException, OSError, TypeError) as error:
        line = str(error).splitlines()[0]
        raise Fault(f"{path.name} is not a trial's table: {line}") from error


def _typed(values: dict[str, Any], known: set[str]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in values.items()
        if name in known
    }
