"""How each contender looks in every plot: a letter, a colour, a dash and a marker. Pure.

The colours are those of Okabe and Ito (2008), told apart by people who see red and green alike,
without the two that are faint on white. Letters stand in the plots, so that names may be long.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase

from outrider.trial.record import Entrant

PLAIN = "#7f7f7f"  # baselines
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
DASHES = ("solid", "dashed", "dotted", "dashdot")
MARKERS = ("o", "s", "^", "D", "v", "P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Of one contender, or of one kind of request."""

    letter: str
    colour: str
    dash: str
    marker: str


def looks(entrants: Sequence[Entrant]) -> dict[str, Look]:
    """By name; baselines are grey, contenders keep their colours in order."""
    found: dict[str, Look] = {}
    num_coloured = 0
    for index, entrant in enumerate(entrants):
        letter = _letter(index)
        if not entrant.baseline:
            found[entrant.name] = Look(letter=letter, colour=PLAIN, dash="dashed", marker="X")
            continue
        found[entrant.name] = _coloured(letter, num_coloured)
        num_coloured += 1
    return found


def kind_looks(kinds: Sequence[str]) -> dict[str, Look]:
    """The same for kinds of request, which are told by their names."""
    return {kind: _coloured(kind or "(none)", index) for index, kind in enumerate(kinds)}


def _coloured(letter: str, index: int) -> Look:
    turn, place = divmod(index, len(COLOURS))
    return Look(
        letter=letter,
        colour=COLOURS[place],
        dash=DASHES[turn % len(DASHES)],
        marker=MARKERS[(place + turn) % len(MARKERS)],
    )


def _letter(index: int) -> str:
    """A to Z, then A2, B2, ..."""
    turn, place = divmod(index, len(ascii_uppercase))
    return f"{ascii_uppercase[place]}{turn + 1 if turn else ''}"
