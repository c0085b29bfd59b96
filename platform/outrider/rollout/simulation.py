"""How often these gates and this plan are wrong and how long they take: played many times. Pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from outrider.config.schema import GateSettings, PlanSettings
from outrider.rollout.effect import EVEN, USUAL, Effect, Traffic, at_floors, slower
from outrider.rollout.gates import Flags
from outrider.rollout.play import Play, play
from outrider.rollout.simulated import Report


def simulate(
    gates: GateSettings,
    plan: PlanSettings,
    *,
    num_rollouts: int = 2000,
    num_looks: int = 100,
    effect: Effect = EVEN,
    traffic: Traffic = USUAL,
    seed: int = 0,
) -> Report:
    """`num_looks` are of a whole rollout, spread evenly over its stages and their `max_s`."""
    game = Play(
        gates=gates,
        plan=plan,
        effect=effect,
        traffic=traffic,
        num_rollouts=num_rollouts,
        num_looks=num_looks,
    )
    return _outcome(game, np.random.default_rng(seed))


def told(
    gates: GateSettings, plan: PlanSettings, *, per_s: float, num_rollouts: int = 2000
) -> list[str]:
    """What `action=simulate` prints: an equal candidate, one on every bound, one 10 % slower.

    `per_s`: requests a second of the service.
    """
    traffic = replace(USUAL, per_s=per_s)
    even, floor, slow = (
        simulate(gates, plan, num_rollouts=num_rollouts, effect=effect, traffic=traffic)
        for effect in (EVEN, at_floors(gates), slower(0.1))
    )
    return [
        f"{even.num_rollouts:,} rollouts of each candidate, {even.num_looks} looks at each, "
        f"{per_s:g} requests per second, latencies that vary by {traffic.variation:.0%}",
        *even.lines,
        *floor.lines,
        *slow.lines,
        f"false rollbacks, had every step lasted its whole time: "
        f"{even.share(even.num_ever_failed)} of equal candidates, "
        f"{floor.share(floor.num_ever_failed)} of those on every bound; alpha {gates.alpha:.1%}",
    ]


def _outcome(game: Play, rng: np.random.Generator) -> Report:
    """A rollout that stalls goes no further; whether it would ever have failed is seen apart."""
    goes_on, ever_failed = (np.full(game.num_rollouts, flag) for flag in (True, False))
    spent = np.zeros(game.num_rollouts, np.int64)  # requests of both arms
    detected: list[int] = []
    for stage in game.stages:
        failed_at, passed_at = map(_first, play(rng, game, stage))
        ever_failed |= failed_at < game.looks
        falls = goes_on & (failed_at < game.looks) & (failed_at <= passed_at)
        detected += (spent + (failed_at + 1) * stage.both)[falls].tolist()
        goes_on &= (passed_at < game.looks) & ~falls
        spent += (passed_at + 1) * stage.both
    return Report(
        effect=game.effect,
        traffic=game.traffic,
        num_rollouts=game.num_rollouts,
        num_looks=game.num_looks,
        num_ever_failed=int(ever_failed.sum()),
        detected=tuple(sorted(detected)),
        promoted=tuple(sorted(spent[goes_on].tolist())),
    )


def _first(flags: Flags) -> NDArray[np.int64]:
    """[rollouts] the first look that says so; the number of looks where none does."""
    return np.where(flags.any(axis=1), flags.argmax(axis=1), flags.shape[1])
