"""The leaderboard: what was measured last of every release, filtered and sorted. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from outrider.compare.candidate import Candidate
from outrider.compare.condition import Condition
from outrider.compare.name import known
from outrider.compare.value import is_lower_better


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One release at one number in flight on one part of the prompts."""

    latest: Candidate
    num_runs: int = 1  # of the same, this one included; the older ones are not shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The best on top."""

    rows: tuple[Row, ...]
    num_more: int = 0  # rows that `top` cut off
    num_filtered: int = 0  # rows that did not meet the conditions
    num_unfinished: int = 0  # runs left out: running, failed, killed


def leaderboard(
    candidates: Sequence[Candidate], *, where: Sequence[str] = (), sort: str, top: int
) -> Board:
    """Make the board of `candidates`, newest first.

    Of the runs of one release the latest counts, before the conditions are asked: what was adopted
    once and rejected since is not found by `decision=adopt`. A run that did not finish counts only
    where a condition names its status. Raises UserError for a condition or figure unknown.
    """
    conditions = [Condition.parse(text) for text in where]
    shows_all = any(condition.name == "status" for condition in conditions)
    counted = [one for one in candidates if shows_all or one.is_finished]
    rows = _latest(counted)
    names = _names(candidates)
    conditions = [condition.over(names) for condition in conditions] if candidates else []
    met = [row for row in rows if all(c.holds(row.latest.facts) for c in conditions)]
    ordered = _sorted(met, sort, candidates)
    return Board(
        rows=tuple(ordered[:top]),
        num_more=max(0, len(ordered) - top),
        num_filtered=len(rows) - len(met),
        num_unfinished=len(candidates) - len(counted),
    )


def _latest(candidates: Sequence[Candidate]) -> list[Row]:
    groups: dict[tuple[str, ...], list[Candidate]] = {}
    for one in candidates:
        key = (one.kind, one.identity, one.in_flight, one.part)
        groups.setdefault(key, []).append(one)
    return [Row(latest=group[0], num_runs=len(group)) for group in groups.values()]


def _names(candidates: Sequence[Candidate]) -> list[str]:
    own = ["status", "version", "alias"]  # asked for even where no run has one
    return list(dict.fromkeys([*own, *(name for one in candidates for name in one.facts)]))


def _sorted(rows: Sequence[Row], sort: str, candidates: Sequence[Candidate]) -> list[Row]:
    """By the figure, the best on top; rows without it last, newest first."""
    figures = list(dict.fromkeys(name for one in candidates for name in one.run.metrics))
    if not figures:
        return list(rows)
    name = known(sort, figures, "compare.sort")
    sign = 1 if is_lower_better(name) else -1
    missing = float("inf")
    return sorted(rows, key=lambda row: sign * row.latest.run.metrics.get(name, sign * missing))
