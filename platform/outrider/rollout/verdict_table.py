"""Findings as a table for people, and as figures for a tracker. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from outrider.rollout.status import Move

HEAD = "| move | figure | verdict | estimate | interval | bound | stable | candidate | why |"
NUMBERS = ("estimate", "low", "high", "num_stable", "num_candidate")

Findings = Sequence[Mapping[str, Any]]


def markdown(moves: Sequence[Move]) -> str:
    """One line for each finding that a move was decided on."""
    lines = [HEAD, "|" + "---|" * HEAD.count(" | ") + "---|"]
    for number, move in enumerate(moves, start=1):
        lines += [f"| {number} {move.phase} {cells}" for cells in _rows(move.evidence)]
    return "\n".join([*lines, ""])


def metrics(findings: Findings) -> dict[str, float]:
    """`rollout.<figure>.<number>`; the kind of request behind the figure, where there is one."""
    return {
        f"rollout.{_name(found, '.')}.{number}": float(found[number])
        for found in findings
        for number in NUMBERS
        if found[number] is not None
    }


def _rows(findings: Findings) -> Iterator[str]:
    for found in findings:
        interval = f"{_number(found['low'])} to {_number(found['high'])}"
        cells = [
            _name(found, " "),
            str(found["verdict"]),
            _number(found["estimate"]),
            interval,
            _number(found["bound"]),
            str(found["num_stable"]),
            str(found["num_candidate"]),
            str(found["reason"]).replace("|", "\\|"),
        ]
        yield "| " + " | ".join(cells) + " |"


def _name(found: Mapping[str, Any], between: str) -> str:
    return f"{found['figure']}{between}{found['group']}" if found["group"] else found["figure"]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
