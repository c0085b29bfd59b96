"""From parts to output.jsonl, output.parquet and errors.jsonl, in input order, in flat memory."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from outrider.bulk.durable import disk_faults, replacing
from outrider.bulk.figures import Figures
from outrider.bulk.folder import JobFolder
from outrider.bulk.manifest import Manifest
from outrider.bulk.parquet import OutputTable
from outrider.bulk.parts import PartRow, PartState, part_path, read_footer, read_rows
from outrider.bulk.rendering import json_line
from outrider.core import UserError


@dataclass(slots=True)
class Assembled:
    """What the parts added up to."""

    num_done: int = 0
    num_failed: int = 0
    errors: Counter[str] = field(default_factory=Counter)  # by code
    figures: Figures = field(default_factory=Figures)


def assemble(folder: JobFolder, manifest: Manifest, *, parquet: bool) -> Assembled:
    """Stream every part that counts into the outputs. A part that was changed is named."""
    made = Assembled()
    with ExitStack() as stack:
        stack.enter_context(disk_faults(folder.root))
        out = stack.enter_context(replacing(folder.output))
        errors = stack.enter_context(replacing(folder.errors))
        table = stack.enter_context(OutputTable(folder.table)) if parquet else None
        for number in range(manifest.identity.num_shards):
            path, state = _part(folder, manifest, number)
            hashing = hashlib.sha256()
            with _damage_named(path):
                for row in read_rows(path):
                    hashing.update(row.raw)
                    _add(row, made, out, errors, table)
                footer = read_footer(path)
                if footer is None or hashing.hexdigest() != state.sha256:
                    raise ValueError("digest")
            made.figures.add(footer[1])
    return made


def _part(folder: JobFolder, manifest: Manifest, number: int) -> tuple[Path, PartState]:
    state = manifest.shards[number]
    return part_path(folder.parts, number, state.attempt), state


def _add(
    row: PartRow, made: Assembled, out: IO[bytes], errors: IO[bytes], table: OutputTable | None
) -> None:
    if row.error is not None:
        errors.write(json_line(row.error.to_dict()))
        made.errors[str(row.error.code)] += 1
        made.num_failed += 1
        return
    assert row.answer is not None
    out.write(row.raw)
    made.num_done += 1
    if table is not None:
        table.add(row.answer)


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{path} was changed since it was written: remove it and run again"
        ) from error
