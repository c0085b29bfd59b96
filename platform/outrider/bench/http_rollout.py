"""What a rollout costs the users of stable: the router's decisions, and a full shadow."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from outrider.bench.added import added_first_token
from outrider.bench.arm import Timing
from outrider.bench.figure import Figure
from outrider.bench.http_arms import HttpArm
from outrider.bench.http_bench import Connection, HttpBench
from outrider.bench.http_client import Wish
from outrider.bench.http_summary import Summary
from outrider.bench.load import Answer
from outrider.bench.ratio import ratio_figure
from outrider.bench.workload import Prompt, mixed, one_by_one
from outrider.core import Fault

TWIN = "twin"
LOOK_S = 0.5
IN_FLIGHT = 8
NUM_BACKLOGS = 3
NUM_SHORT, SHORT_TOKENS = 60, 4
ROUTER_RATIO, ROUTER_MS = 0.97, 2.0
SHADOW_IN_FLIGHT = 4
SHADOW_RATIO = 0.5  # two engines share the cores: no less than half may be left to stable
OFF: Mapping[str, Any] = {"candidate": None, "weight": 0.0, "shadow_share": 0.0}
IDLE: Mapping[str, Any] = {"candidate": TWIN, "weight": 0.0, "shadow_share": 0.0}
SHADOW: Mapping[str, Any] = {
    "candidate": TWIN,
    "weight": 0.0,
    "shadow_share": 1.0,
    "shadow_in_flight": SHADOW_IN_FLIGHT,
}


@dataclass
class Plans:
    """Puts plans into force at a gateway, each newer than the one before."""

    connection: Connection
    stable: str
    revision: int
    in_force: Mapping[str, Any] = field(default_factory=dict)

    def put(self, plan: Mapping[str, Any]) -> None:
        if plan is self.in_force:
            return
        self.revision += 1
        body = {"stable": self.stable, "revision": self.revision, **plan}
        self.connection.run(self.connection.client.put("/admin/plan", body))
        self.in_force = plan

    def num_dropped(self) -> int:
        """Requests that were not mirrored for want of room, so far."""
        told = self.connection.run(self.connection.client.get("/admin/samples"))
        return int(told["num_shadows_dropped"])


class PlannedArm:
    """A server under one plan."""

    def __init__(self, arm: HttpArm, plans: Plans, plan: Mapping[str, Any]) -> None:
        self._arm = arm
        self._plans = plans
        self._plan = plan

    @property
    def name(self) -> str:
        return self._arm.name

    @property
    def answers(self) -> list[Answer]:
        return self._arm.answers

    @property
    def summary(self) -> Summary:
        return self._arm.summary

    def forget(self) -> None:
        self._arm.forget()

    def decode(self, prompts: Sequence[Prompt]) -> Timing:
        self._plans.put(self._plan)
        return self._arm.decode(prompts)


@contextmanager
def with_twin(bench: HttpBench) -> Iterator[tuple[Connection, Plans]]:
    """A server with a second release beside the first, of the same settings."""
    with bench.connected() as http:
        told = http.run(http.client.get("/admin/status"))
        bench.tell("starting a second release beside the first")
        http.run(http.client.put(f"/admin/releases/{TWIN}", bench.twin))
        http.run(_until_ready(http, bench.timeout_s))
        yield http, Plans(http, told["plan"]["stable"], told["plan"]["revision"])


def router(bench: HttpBench) -> list[Figure]:
    """The same requests with and without a rollout whose candidate answers none of them."""
    with with_twin(bench) as (http, plans):
        wish = Wish(max_tokens=bench.max_tokens)
        arms = [
            PlannedArm(http.arm(name, IN_FLIGHT, wish), plans, plan)
            for name, plan in (("alone", OFF), ("routed", IDLE))
        ]
        pairing = bench.compare("router", arms, [mixed(bench.prompts)] * NUM_BACKLOGS)
    return [
        ratio_figure(
            pairing,
            ("routed", "alone"),
            conditions=bench.conditions,
            details={arm.name: arm.summary.to_dict() for arm in arms},
            name="http_router_throughput",
            what=f"with a rollout / without, tokens per second, {IN_FLIGHT} in flight",
            bound=ROUTER_RATIO,
            aim=ROUTER_RATIO,
        )
    ]


def router_first_token(bench: HttpBench) -> list[Figure]:
    """The same, one in flight and few tokens: a long prompt's own time would hide the router's."""
    prompts = [
        Prompt(f"number{at}", "short", (), ({"role": "user", "content": f"Say {at}."},))
        for at in range(NUM_SHORT)
    ]
    with with_twin(bench) as (http, plans):
        arms = [
            PlannedArm(http.arm(name, 1, Wish(max_tokens=SHORT_TOKENS)), plans, plan)
            for name, plan in (("alone", OFF), ("routed", IDLE))
        ]
        bench.compare("router, first token", arms, one_by_one(prompts))
    return [
        added_first_token(
            arms[1].answers,
            arms[0].answers,
            name="http_router_first_token",
            what="with a rollout / without: added time to first token, short prompts, p50",
            most_ms=ROUTER_MS,
            conditions=bench.conditions,
            details={arm.name: arm.summary.to_dict() for arm in arms},
        )
    ]


def shadow(bench: HttpBench) -> list[Figure]:
    """Every request of stable is decoded by the candidate too, on the same cores."""
    with with_twin(bench) as (http, plans):
        wish = Wish(max_tokens=bench.max_tokens)
        arms = [
            PlannedArm(http.arm(name, IN_FLIGHT, wish), plans, plan)
            for name, plan in (("alone", OFF), ("shadowed", SHADOW))
        ]
        before = plans.num_dropped()
        pairing = bench.compare("shadow", arms, [mixed(bench.prompts)] * NUM_BACKLOGS)
        num_dropped = plans.num_dropped() - before
    shadowed = arms[1].summary.num_complete
    return [
        ratio_figure(
            pairing,
            ("shadowed", "alone"),
            conditions=f"{bench.conditions}; of {shadowed} requests and their warm-up "
            f"{num_dropped} were not mirrored, for {SHADOW_IN_FLIGHT} already were",
            details={
                "num_shadows_dropped": num_dropped,
                **{arm.name: arm.summary.to_dict() for arm in arms},
            },
            name="http_shadow_throughput",
            what=f"with a full shadow / without, tokens per second, {IN_FLIGHT} in flight",
            bound=SHADOW_RATIO,
            aim=SHADOW_RATIO,
        )
    ]


async def _until_ready(http: Connection, longest_s: float) -> None:
    async with asyncio.timeout(longest_s):
        while True:
            told = (await http.client.get("/admin/status"))["releases"].get(TWIN, {})
            if told.get("health") == "ready":
                return
            if told.get("health") == "failed":
                raise Fault(f"the second release does not start: {told['message']}")
            await asyncio.sleep(LOOK_S)
