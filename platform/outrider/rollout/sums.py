"""The evidence of one step: all that is kept of its requests. Pure; it begins anew in each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any

from outrider.rollout.figures import typical
from outrider.rollout.losses import Losses
from outrider.rollout.tally import Tally
from outrider.serving.sample import Comparison, Likeness, Reading, Sample
from outrider.serving.split import Arm
from outrider.telemetry import meters

MOST_KINDS = 20  # a sender could name any number; later ones are in the total only
MOST_KEPT = 20  # comparisons that differ, as a sample
_PERCENTS = (50, 95)
_DIFFERING = (Likeness.MISMATCH, Likeness.NEAR_TIE)  # what is kept first


class Side(StrEnum):
    """Whose requests: those that an arm answered, or those that the candidate repeated unseen."""

    STABLE = "stable"
    CANDIDATE = "candidate"
    SHADOW = "shadow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """What was seen since the step began."""

    sides: Mapping[Side, Tally] = field(default_factory=dict)
    kinds: Mapping[str, Mapping[Side, Tally]] = field(default_factory=dict)  # of the two arms
    likenesses: Mapping[Likeness, int] = field(default_factory=dict)
    differing: tuple[Comparison, ...] = ()  # mismatches before near ties
    losses: Losses = field(default_factory=Losses)

    def after(self, reading: Reading) -> Sums:
        """With what the reading holds."""
        found = Counter(one.likeness for one in reading.comparisons)
        return Sums(
            sides=_added(self.sides, _by_side(reading.samples)),
            kinds=self._kinds_with(reading.samples),
            likenesses=dict(Counter(self.likenesses) + found),
            differing=_kept((*self.differing, *reading.comparisons)),
            losses=self.losses.after(reading),
        )

    def of(self, side: Side, kind: str = "") -> Tally:
        """One side's requests: all of them, or those of a kind."""
        sides = self.kinds.get(kind, {}) if kind else self.sides
        return sides.get(side, Tally())

    def num(self, arm: Arm) -> int:
        """Requests that an arm of the canary answered, or failed to."""
        return self.of(Side(arm.value)).num_requests

    @property
    def achieved_ratio(self) -> float | None:
        """Of the canary's requests that the candidate answered; None where there were none."""
        ours, all_ = self.num(Arm.CANDIDATE), self.num(Arm.STABLE) + self.num(Arm.CANDIDATE)
        return ours / all_ if ours else None

    @property
    def sample(self) -> tuple[dict[str, Any], ...]:
        """Mirrored answers that differ, as plain data: request, position, margin."""
        return tuple(asdict(one) | {"likeness": one.likeness.value} for one in self.differing)

    @property
    def num_shadow(self) -> int:
        """Mirrored requests that were heard of: each makes a sample, a comparison or both."""
        return max(self.of(Side.SHADOW).num_requests, sum(self.likenesses.values()))

    @property
    def num_compared(self) -> int:
        """Mirrored answers that were compared token by token."""
        return sum(self.likenesses.values()) - self.likenesses.get(Likeness.UNCOMPARED, 0)

    @property
    def num_mismatches(self) -> int:
        return self.likenesses.get(Likeness.MISMATCH, 0)

    def figures(self) -> dict[str, float]:
        """What is shown and recorded of the step: `first_token_s_p95/candidate`."""
        told = {
            name: value for side, tally in self.sides.items() for name, value in _told(side, tally)
        }
        if self.likenesses:
            told[meters.NUM_COMPARED.name] = float(self.num_compared)
            told[meters.NUM_MISMATCHES.name] = float(self.num_mismatches)
            told[meters.NUM_NEAR_TIES.name] = float(self.likenesses.get(Likeness.NEAR_TIE, 0))
        return told | self.losses.figures()

    def to_dict(self) -> dict[str, Any]:
        return {
            "sides": _plain(self.sides),
            "kinds": {kind: _plain(sides) for kind, sides in self.kinds.items()},
            "likenesses": {likeness.value: num for likeness, num in self.likenesses.items()},
            "differing": list(self.sample),
            "losses": asdict(self.losses),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Sums:
        return Sums(
            sides=_sides(data["sides"]),
            kinds={kind: _sides(sides) for kind, sides in data["kinds"].items()},
            likenesses={Likeness(name): num for name, num in data["likenesses"].items()},
            differing=tuple(_comparison(one) for one in data["differing"]),
            losses=Losses.from_dict(data["losses"]),
        )

    def _kinds_with(self, samples: Iterable[Sample]) -> dict[str, Mapping[Side, Tally]]:
        """A kind stays once it is kept, so that its sums miss nothing."""
        by_kind: dict[str, list[Sample]] = {}
        for sample in samples:
            if sample.kind and not sample.is_shadow:
                by_kind.setdefault(sample.kind, []).append(sample)
        kinds = dict(self.kinds)
        for kind, ours in by_kind.items():
            if kind in kinds or len(kinds) < MOST_KINDS:
                more = {side: one.without_shapes() for side, one in _by_side(ours).items()}
                kinds[kind] = _added(kinds.get(kind, {}), more)
        return kinds


def _side(sample: Sample) -> Side:
    return Side.SHADOW if sample.is_shadow else Side(sample.arm.value)


def _by_side(samples: Iterable[Sample]) -> dict[Side, Tally]:
    parts: dict[Side, list[Sample]] = {}
    for sample in samples:
        parts.setdefault(_side(sample), []).append(sample)
    return {side: Tally.of(part) for side, part in parts.items()}


def _added(mine: Mapping[Side, Tally], more: Mapping[Side, Tally]) -> dict[Side, Tally]:
    return dict(mine) | {side: mine.get(side, Tally()) + one for side, one in more.items()}


def _kept(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    differing = [one for one in comparisons if one.likeness in _DIFFERING]
    return tuple(sorted(differing, key=lambda one: _DIFFERING.index(one.likeness))[:MOST_KEPT])


def _told(side: Side, tally: Tally) -> Iterator[tuple[str, float]]:
    yield meters.NUM_REQUESTS.of(side), float(tally.num_requests)
    yield meters.NUM_FAILED.of(side), float(tally.num_failed)
    for reason, num in tally.finish_reasons.items():
        yield meters.NUM_REQUESTS.of(f"{side}:{reason or 'unfinished'}"), float(num)
    for name, one in tally.moments.items():
        yield f"{name}/{side}", typical(name, one.mean)
    for name, shape in tally.histograms.items():
        for percent in _PERCENTS:
            yield f"{name}_p{percent}/{side}", shape.quantile(percent / 100.0) or 0.0


def _plain(sides: Mapping[Side, Tally]) -> dict[str, Any]:
    return {side.value: tally.to_dict() for side, tally in sides.items()}


def _sides(data: Mapping[str, Any]) -> dict[Side, Tally]:
    return {Side(name): Tally.from_dict(one) for name, one in data.items()}


def _comparison(data: Mapping[str, Any]) -> Comparison:
    told = {one.name: data[one.name] for one in fields(Comparison)}
    return Comparison(**told | {"likeness": Likeness(data["likeness"])})
