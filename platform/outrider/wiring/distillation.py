"""A draft head out of its settings: prompts to learn from, then what is learnt."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from outrider.config.folders import SHIPPED
from outrider.config.schema import DistillAction, DistillJob, DistillSettings
from outrider.core import UserError
from outrider.distill.corpus import written
from outrider.distill.document import read_document
from outrider.distill.overlap import refuse_overlap
from outrider.distill.prompts import expand

DATA = SHIPPED / "data"
MEASURED = ("workload.jsonl", "evaluation.jsonl", "sample.jsonl")  # never learnt from


def distill(settings: DistillJob, words: Sequence[str] = ()) -> int:
    """Write prompts, or learn a head. `words`: the overrides that the user typed."""
    if settings.distill.action is DistillAction.PROMPTS:
        return write_prompts(settings.distill, Console())
    raise UserError("distill.action=train: not here yet")


def write_prompts(settings: DistillSettings, screen: Console) -> int:
    """A batch for `jobs/bulk.py`, none of whose prompts is one that heads are measured by."""
    rows = list(expand(read_document(DATA / "distillation"), settings.num_prompts, settings.seed))
    refuse_overlap(rows, _measured())
    num = written(rows, Path(settings.out))
    screen.print(f"{num} prompts in {settings.out}", highlight=False, markup=False, soft_wrap=True)
    return 0


def _measured() -> Iterator[dict[str, Any]]:
    for name in MEASURED:
        with (DATA / name).open(encoding="utf-8") as file:
            yield from (json.loads(line) for line in file if line.strip())
