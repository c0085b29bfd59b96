"""What is learnt from must not be what is measured on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from outrider.core import UserError

NUM_WORDS = 8
WORD = re.compile(r"\w+")


def refuse_overlap(
    rows: Iterable[Mapping[str, Any]], measured: Iterable[Mapping[str, Any]]
) -> None:
    """`UserError` for the first row that has eight words in a row in common with a measured one.

    Rows have `messages`, or a `body` that has them. Case and punctuation don't count.
    """
    taken = {run for row in measured for run in _runs(row)}
    for row in rows:
        for run in _runs(row):
            if run in taken:
                raise UserError(
                    f"{row.get('custom_id')} has words of the benchmark: {' '.join(run)!r}"
                )


def _runs(row: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for message in row.get("body", row)["messages"]:
        words = WORD.findall(message["content"].lower())
        yield from zip(*(words[start:] for start in range(NUM_WORDS)), strict=False)
