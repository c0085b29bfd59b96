"""The comparisons behind the figures. Each takes a workbench and returns figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outrider.bench.arm import Timing
from outrider.bench.figure import Figure, Unit
from outrider.bench.paired import Pairing
from outrider.bench.ratio import ratio_figure
from outrider.bench.workbench import Workbench
from outrider.bench.workload import mixed, of_kind, one_by_one, repeated
from outrider.config.schema import DrafterKind

Experiment = Callable[[Workbench], list[Figure]]

_FIXED_LENGTHS = (1, 2, 4, 8, 12)
_SINGLE_BOUNDS = {"edit": (3.0, 3.7), "code": (1.9, 2.3), "chat": (1.05, 1.15)}
_BATCHED_BOUNDS = {8: (1.15, 1.4), 32: (1.0, 1.1)}
# Where prompt lookup has a head or a model behind it
_COMPOSITE_SINGLE_BOUNDS = {"edit": (3.0, 3.7), "code": (2.0, 2.5), "chat": (1.3, 1.6)}
_COMPOSITE_BATCHED_BOUNDS = {8: (1.2, 1.4), 32: (1.0, 1.1)}
_TRANSFORMERS_BOUNDS = {1: (2.5, 2.9), 8: (3.0, 5.0)}
_NUM_BACKLOGS = 3  # times that a backlog of all prompts is decoded: pairs of such a comparison
_SETTLED_ROUNDS = 200  # rounds after which an always wrong drafter must have come to rest


def against_transformers(bench: Workbench) -> list[Figure]:
    """Own plain decoding against `generate`: one in flight, and a backlog with 8 in flight against
    lockstep groups of 8, which is how each of them is used."""
    return [_against_transformers(bench, in_flight) for in_flight in _TRANSFORMERS_BOUNDS]


def _against_transformers(bench: Workbench, in_flight: int) -> Figure:
    arms = [bench.plain(in_flight), bench.transformers(in_flight)]
    batches = one_by_one(bench.prompts) if in_flight == 1 else [mixed(bench.prompts)] * 2
    pairing = bench.compare(f"against transformers, {in_flight} in flight", arms, batches)
    bound, aim = _TRANSFORMERS_BOUNDS[in_flight]
    return ratio_figure(
        pairing,
        ("plain", "transformers"),
        conditions=bench.conditions,
        name=f"plain_against_transformers_{in_flight}",
        what=f"plain decoding / transformers generate, {in_flight} in flight",
        bound=bound,
        aim=aim,
    )


def one_in_flight(bench: Workbench) -> list[Figure]:
    """Speculative against plain and against every fixed length, per kind; a composite on edits
    also against prompt lookup alone, which is made for them."""
    arms = [bench.plain(1), bench.adaptive(1), *(bench.fixed(1, k) for k in _FIXED_LENGTHS)]
    is_composite = _is_composite(bench)
    arms += [bench.lookup(1)] if is_composite else []
    bounds = _COMPOSITE_SINGLE_BOUNDS if is_composite else _SINGLE_BOUNDS
    pairing = bench.compare("one in flight", arms, one_by_one(bench.prompts))
    speedups = [
        ratio_figure(
            pairing,
            ("adaptive", "plain"),
            conditions=bench.conditions,
            kind=kind,
            name=f"speculative_1_{kind}",
            what=f"speculative / plain, 1 in flight, {kind}",
            bound=bound,
            aim=aim,
        )
        for kind, (bound, aim) in bounds.items()
    ]
    speedups += [_against_best_fixed(bench, pairing, kind) for kind in bounds]
    return [*speedups, _against_lookup(bench, pairing)] if is_composite else speedups


def _is_composite(bench: Workbench) -> bool:
    return bench.draft.drafter is DrafterKind.COMPOSITE


def _against_lookup(bench: Workbench, pairing: Pairing) -> Figure:
    return ratio_figure(
        pairing,
        ("adaptive", "n-gram"),
        conditions=bench.conditions,
        kind="edit",
        name="adaptive_against_ngram_edit",
        what=f"{bench.draft.drafter.value} / n-gram alone, 1 in flight, edit",
        bound=0.97,
        aim=1.0,
    )


def _against_best_fixed(bench: Workbench, pairing: Pairing, kind: str) -> Figure:
    best = _best_fixed(pairing, kind)
    return ratio_figure(
        pairing,
        ("adaptive", best),
        conditions=bench.conditions,
        kind=kind,
        name=f"adaptive_against_fixed_{kind}",
        what=f"adaptive / best fixed length ({best}), 1 in flight, {kind}",
        bound=0.97,
        aim=1.0,
    )


def many_in_flight(bench: Workbench) -> list[Figure]:
    """Speculative against plain, all kinds together, 8 and 32 in flight."""
    return [_many_in_flight(bench, in_flight) for in_flight in _BATCHED_BOUNDS]


def _many_in_flight(bench: Workbench, in_flight: int) -> Figure:
    times = max(1, -(-2 * in_flight // len(bench.prompts)))
    backlog = mixed(repeated(bench.prompts, times))
    arms = [bench.plain(in_flight), bench.adaptive(in_flight)]
    pairing = bench.compare(f"{in_flight} in flight", arms, [backlog] * _NUM_BACKLOGS)
    bounds = _COMPOSITE_BATCHED_BOUNDS if _is_composite(bench) else _BATCHED_BOUNDS
    bound, aim = bounds[in_flight]
    return ratio_figure(
        pairing,
        ("adaptive", "plain"),
        conditions=bench.conditions,
        name=f"speculative_{in_flight}",
        what=f"speculative / plain, {in_flight} in flight, all kinds",
        bound=bound,
        aim=aim,
    )


def changing_kind(bench: Workbench) -> list[Figure]:
    """Edits, then chat, in one backlog at 8 in flight: no fixed length is right for both."""
    times = 2
    backlog = [
        *repeated(of_kind(bench.prompts, "edit"), times),
        *repeated(of_kind(bench.prompts, "chat"), times),
    ]
    arms = [bench.adaptive(8), *(bench.fixed(8, k) for k in _FIXED_LENGTHS)]
    pairing = bench.compare("changing kind", arms, [backlog] * _NUM_BACKLOGS)
    best = _best_fixed(pairing, None)
    return [
        ratio_figure(
            pairing,
            ("adaptive", best),
            conditions=bench.conditions,
            name="adaptive_changing_kind",
            what=f"adaptive / best fixed length ({best}), edits then chat, 8 in flight",
            bound=1.03,
            aim=1.1,
        )
    ]


def wrong_drafter(bench: Workbench) -> list[Figure]:
    """A drafter that is always wrong, from a cold start: its cost, and how often it is asked."""
    arms = [bench.plain(1), bench.contrary(1)]
    pairing = bench.compare("wrong drafter", arms, one_by_one(bench.prompts), warm=False)
    speed = ratio_figure(
        pairing,
        ("contrary", "plain"),
        conditions=bench.conditions,
        name="wrong_drafter",
        what="always wrong drafter / plain, 1 in flight",
        bound=0.95,
        aim=0.98,
    )
    share = Figure(
        name="wrong_drafter_rounds",
        what=f"share of rounds it drafts in after the first {_SETTLED_ROUNDS}",
        value=_settled_share(pairing.timings["contrary"]),
        bound=0.05,
        aim=0.02,
        is_ceiling=True,
        unit=Unit.SHARE,
        conditions=bench.conditions,
    )
    return [speed, share]


def _settled_share(timings: Sequence[Timing]) -> float:
    """Share of drafting rounds, over the batches that began after the first rounds."""
    seen = num_rounds = num_draft_rounds = 0
    for timing in timings:
        if seen >= _SETTLED_ROUNDS:
            num_rounds += timing.num_rounds
            num_draft_rounds += timing.num_draft_rounds
        seen += timing.num_rounds
    return num_draft_rounds / max(num_rounds, 1)


def held_at_zero(bench: Workbench) -> list[Figure]:
    """A drafter that is never asked against an engine without one."""
    arms = [bench.plain(1), bench.held_at_zero(1)]
    pairing = bench.compare("held at 0", arms, one_by_one(bench.prompts))
    return [
        ratio_figure(
            pairing,
            ("held at 0", "plain"),
            conditions=bench.conditions,
            name="held_at_zero",
            what="drafter held at draft length 0 / no drafter, 1 in flight",
            bound=0.97,
            aim=0.99,
        )
    ]


EXPERIMENTS: dict[str, Experiment] = {
    "against_transformers": against_transformers,
    "one_in_flight": one_in_flight,
    "many_in_flight": many_in_flight,
    "changing_kind": changing_kind,
    "wrong_drafter": wrong_drafter,
    "held_at_zero": held_at_zero,
}


def _best_fixed(pairing: Pairing, kind: str | None) -> str:
    names = [f"fixed {k}" for k in _FIXED_LENGTHS]
    return max(names, key=lambda name: pairing.tokens_per_s(name, kind))
