"""Parquet in and out. The input is spooled to JSONL once, so that shards are read by offset."""

from __future__ import annotations

import json
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from outrider.core import UserError
from outrider.openai.fields import SAMPLING

BATCH_ROWS = 1024
COLUMNS = frozenset(
    {"prompt", "messages", "id", "custom_id", "kind", "model", "speculation", "logprobs"}
    | {"top_logprobs", "user", "metadata"}
    | SAMPLING.keys()
)
OUTPUT = pa.schema(
    [
        ("custom_id", pa.string()),
        ("text", pa.string()),
        ("finish_reason", pa.string()),
        ("num_prompt_tokens", pa.int64()),
        ("num_completion_tokens", pa.int64()),
        ("response", pa.string()),  # the whole answer, as in output.jsonl
    ]
)


def spool_parquet(source: Path, spool: Path) -> Path:
    """Write the rows as JSON lines; line n is row n. Memory holds one batch."""
    try:
        table = pq.ParquetFile(source)
        _check_columns(source, table.schema_arrow.names)
        with spool.open("w", encoding="utf-8") as out:
            for batch in table.iter_batches(batch_size=BATCH_ROWS):
                for row in batch.to_pylist():
                    out.write(json.dumps(_without_gaps(row), default=_foreign) + "\n")
    except pa.ArrowException as error:
        line = str(error).splitlines()[0]
        raise UserError(f"bulk.input: {source} is not readable as Parquet: {line}") from error
    return spool


def _check_columns(source: Path, names: list[str]) -> None:
    if not {"prompt", "messages"} & set(names):
        found = ", ".join(names)
        raise UserError(f"bulk.input: {source} needs a prompt or messages column, it has: {found}")
    unknown = sorted(set(names) - COLUMNS)
    if unknown:
        raise UserError(
            f"bulk.input: {source} has a column that is not known: {unknown[0]}: drop it"
        )


def _without_gaps(value: Any) -> Any:
    """Drop nulls inside structs: Arrow gives every struct all the fields of the column."""
    if isinstance(value, dict):
        return {key: _without_gaps(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_gaps(item) for item in value]
    return value


def _foreign(value: object) -> dict[str, str]:
    """Bytes, dates and the like: no field takes an object like this, so the row says so."""
    return {"not JSON": type(value).__name__}


def _storable(text: str) -> str:
    """Arrow's strings are UTF-8: a lone surrogate is escaped, as in output.jsonl."""
    return text.encode("utf-8", "backslashreplace").decode()


class OutputTable:
    """output.parquet, written in batches beside output.jsonl."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unfinished = path.with_name(path.name + ".tmp")
        self._writer = pq.ParquetWriter(self._unfinished, OUTPUT, compression="zstd")
        self._rows: list[dict[str, Any]] = []

    def __enter__(self) -> OutputTable:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._flush()
        self._writer.close()
        if kind is None:
            self._unfinished.replace(self._path)
        else:
            self._unfinished.unlink(missing_ok=True)

    def add(self, row: dict[str, Any]) -> None:
        """`row` is one object of output.jsonl."""
        body = row["response"]["body"]
        choice = body["choices"][0]
        self._rows.append(
            {
                "custom_id": _storable(row["custom_id"]),
                "text": choice["message"]["content"] if "message" in choice else choice["text"],
                "finish_reason": choice["finish_reason"],
                "num_prompt_tokens": body["usage"]["prompt_tokens"],
                "num_completion_tokens": body["usage"]["completion_tokens"],
                "response": json.dumps(row["response"], ensure_ascii=False),
            }
        )
        if len(self._rows) == BATCH_ROWS:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_batch(pa.RecordBatch.from_pylist(self._rows, OUTPUT))
            self._rows.clear()
