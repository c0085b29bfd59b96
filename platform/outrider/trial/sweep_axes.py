"""What is searched: axes, and every combination of their values. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product

from outrider.config.schema import DrafterKind, DraftSettings, RuleKind, SweepJob
from outrider.core import UserError

PLAIN = "plain"  # name of what all candidates are measured against
SEARCHED = "draft.* and engine.rule"
UNHEARD = {  # keys of a trial that say nothing in a search
    "trial.releases": "the axes say what is measured",
    "trial.part": "a search is for the tuning prompts; leave it out",
    "trial.in_flight": "give sweep.in_flight",
}

Compose = Callable[[Sequence[str]], SweepJob]
"""Overrides, on top of this command's -> settings. Raises UserError."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One key, or one choice of a file, and the values to try."""

    key: str
    values: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> Axis:
        """`draft.length.max=4,8`. UserError for anything else."""
        key, _, rest = text.partition("=")
        values = tuple(value.strip() for value in rest.split(","))
        if not key.strip() or not all(values):
            raise UserError(f'sweep.axes: {text!r}: expected "key=a,b,c" or "group=a,b"')
        if len(set(values)) < len(values):
            raise UserError(f"sweep.axes: {text!r} has a value twice")
        return Axis(key.strip(), values)

    @property
    def words(self) -> list[str]:
        return [f"{self.key}={value}" for value in self.values]


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One candidate to be: its overrides, and the settings that they make."""

    words: tuple[str, ...]
    job: SweepJob

    @property
    def name(self) -> str:
        return shlex.join(self.words)


def combinations(
    axes: Sequence[str], groups: Collection[str], base: SweepJob, compose: Compose
) -> list[Combination]:
    """All that draft; the last axis changes fastest. `groups`: what can be chosen as a whole file.

    `draft=none`, whatever its lengths, is plain decoding, which all are measured against anyway.
    Raises UserError, which names the combination, for one that can't be composed or that decodes
    plainly in another way than `base`: there is one plain decoding to beat.
    """
    found = []
    for words in product(*(axis.words for axis in _ordered(axes, groups))):
        made = Combination(words=words, job=_composed(words, compose))
        _check(made, base)
        if made.job.draft.drafter is not DrafterKind.NONE:
            found.append(made)
    if not found:
        raise UserError("sweep.axes: no combination drafts: there is nothing to search")
    return found


def plain_of(base: SweepJob) -> SweepJob:
    """Under rule coupled a sampled answer can be compared; plain speed does not know the rule."""
    engine = replace(base.engine, rule=RuleKind.COUPLED)
    return replace(base, engine=engine, draft=DraftSettings(drafter=DrafterKind.NONE))


def check_heard(given: Mapping[str, str]) -> None:
    """UserError for a word that a search would drop. `given`: full key -> word."""
    for key, why in UNHEARD.items():
        if key in given:
            raise UserError(f"{given[key]}: says nothing in a search: {why}")


def _ordered(texts: Sequence[str], groups: Collection[str]) -> list[Axis]:
    """A file is chosen before keys in it are set, whatever the order typed."""
    if not texts:
        raise UserError("sweep.axes is empty: there is nothing to search")
    axes = [Axis.parse(text) for text in texts]
    keys = [axis.key for axis in axes]
    for key in keys:
        if keys.count(key) > 1:
            raise UserError(f"sweep.axes: {key} is there twice: give all its values once")
    return sorted(axes, key=lambda axis: axis.key not in groups)  # stable


def _composed(words: Sequence[str], compose: Compose) -> SweepJob:
    try:
        return compose(words)
    except UserError as error:
        raise UserError(f"sweep.axes: {shlex.join(words)}: {error}") from error


def _check(made: Combination, base: SweepJob) -> None:
    engine = replace(made.job.engine, rule=base.engine.rule)
    same = replace(made.job, draft=base.draft, engine=engine)
    for field in fields(base):
        if getattr(same, field.name) != getattr(base, field.name):
            raise UserError(
                f"sweep.axes: {made.name} sets {field.name}: {SEARCHED} are searched,"
                " so that all have one plain decoding to beat"
            )
