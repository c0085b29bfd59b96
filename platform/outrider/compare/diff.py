"""Two releases: which keys differ, and what it did to each figure. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from outrider.compare.candidate import Candidate
from outrider.compare.choice import Choice
from outrider.compare.value import Measure, base_name, is_end_of_interval
from outrider.telemetry.meters import METERS, WINDOW
from outrider.tracking.fingerprint import differences, flatten

ABSENT = "(absent)"
ORDER = tuple(METERS)
GROUPED = ("speedup_ratio",)  # figures that are compared by group too


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChange:
    """One setting that is not the same in both."""

    key: str  # dotted
    old: str
    new: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureChange:
    """One figure of both."""

    name: str
    old: Measure
    new: Measure

    @property
    def change_ratio(self) -> float | None:
        """new / old - 1; None where old is 0."""
        return self.new.value / self.old.value - 1 if self.old.value else None

    @property
    def overlaps(self) -> bool | None:
        """Whether the intervals have a value in common; None without intervals."""
        return self.old.overlaps(self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Both at one number in flight on one part of the prompts."""

    in_flight: str
    part: str
    old: Candidate
    new: Candidate
    figures: tuple[FigureChange, ...]  # in the catalogue's order, those that are equal left out
    num_equal: int

    @property
    def is_one_trial(self) -> bool:
        """In turn on the same machine and prompts: otherwise figures compare with care only."""
        return bool(self.old.run.parent_id) and self.old.run.parent_id == self.new.run.parent_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """Everything that differs between two releases."""

    old: Choice
    new: Choice
    keys: tuple[KeyChange, ...]
    blocks: tuple[Block, ...]


def diff(old: Choice, new: Choice, old_settings: object, new_settings: object) -> Diff:
    """Compare two releases by their settings (nested or dotted) and by what was measured."""
    return Diff(
        old=old,
        new=new,
        keys=key_changes(old_settings, new_settings),
        blocks=_blocks(old.candidates, new.candidates),
    )


def key_changes(old: object, new: object) -> tuple[KeyChange, ...]:
    """Keys whose values differ, sorted."""
    before, after = flatten(old), flatten(new)
    return tuple(
        KeyChange(key=key, old=before.get(key, ABSENT), new=after.get(key, ABSENT))
        for key in differences(old, new)
    )


def _blocks(old: Sequence[Candidate], new: Sequence[Candidate]) -> tuple[Block, ...]:
    ours, theirs = _by_place(old), _by_place(new)
    places = sorted(ours.keys() & theirs.keys(), key=lambda place: (place[1], _count(place[0])))
    return tuple(_block(place, *_pair(ours[place], theirs[place])) for place in places)


def _by_place(candidates: Sequence[Candidate]) -> dict[tuple[str, str], list[Candidate]]:
    found: dict[tuple[str, str], list[Candidate]] = {}
    for one in candidates:
        if one.is_finished and one.run.metrics:
            found.setdefault((one.in_flight, one.part), []).append(one)
    return found


def _count(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _pair(old: Sequence[Candidate], new: Sequence[Candidate]) -> tuple[Candidate, Candidate]:
    """Of the newest trial that has both; else the newest of each."""
    trials = {one.run.parent_id: one for one in reversed(new) if one.run.parent_id}
    for one in old:
        if one.run.parent_id in trials:
            return one, trials[one.run.parent_id]
    return old[0], new[0]


def _block(place: tuple[str, str], old: Candidate, new: Candidate) -> Block:
    both = _figures(old, new)
    changed = tuple(figure for figure in both if figure.old.value != figure.new.value)
    in_flight, part = place
    return Block(
        in_flight=in_flight,
        part=part,
        old=old,
        new=new,
        figures=changed,
        num_equal=len(both) - len(changed),
    )


def _figures(old: Candidate, new: Candidate) -> list[FigureChange]:
    found = []
    for name in sorted(old.run.metrics, key=_rank):
        before, after = old.measure(name), new.measure(name)
        if before is not None and after is not None and _is_compared(name):
            found.append(FigureChange(name=name, old=before, new=after))
    return found


def _is_compared(name: str) -> bool:
    """The last point of a series is no figure of the run."""
    if name.startswith(WINDOW) or is_end_of_interval(name):
        return False
    return "/" not in name or base_name(name) in GROUPED


def _rank(name: str) -> tuple[int, int, str]:
    """Figures as the catalogue has them, behind them counts, behind these groups."""
    base = base_name(name)
    place = ORDER.index(base) if base in ORDER else len(ORDER)
    return 2 * ("/" in name) + base.startswith("num_"), place, name


def settings_from_params(params: Mapping[str, str], sections: Sequence[str]) -> dict[str, str]:
    """What of a run's params says what decodes, for a release that was never registered."""
    starts = tuple(f"{section}." for section in sections)
    return {name: value for name, value in params.items() if name.startswith(starts)}
