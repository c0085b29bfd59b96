"""A gateway on which everything happens: two releases under load, one that drafts well and one
whose guard falls, refusals, failures, a lost replica, shadows, a rollout and a bulk job.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import replace
from typing import Any

import httpx2 as httpx
from http_site import Site
from letters_engine import BROKEN, LettersEngine
from scene import scene

from outrider.bulk.glance import JobGlance
from outrider.config.schema import (
    ConsoleSettings,
    EngineSettings,
    SamplingSettings,
    ServingSettings,
)
from outrider.console.console import Beside, Console
from outrider.console.ports import NoRollouts, RolloutsSeen
from outrider.rollout.phase import Phase
from outrider.serving.service_recipe import ServiceRecipe

SETTINGS = ServingSettings(
    port=0,
    max_queue=1,
    log_requests=False,
    fallback_min_acceptance=0.3,
    fallback_window_s=2.0,
    fallback_min_drafted=40,
    fallback_wait_s=600.0,
)
NUM_CLIENTS = 10
_PLAN = {"stable": "main", "candidate": "next", "weight": 0.5, "shadow_share": 1.0, "revision": 1}


class Rollouts(NoRollouts):
    """The one of the scene is active, and others are over."""

    def look(self) -> RolloutsSeen:
        shown = scene(time.time()).rollout
        assert shown is not None
        newest = replace(shown, candidate="next")
        return RolloutsSeen(newest=newest, num_by_phase={Phase.CANARY: 1, Phase.PROMOTED: 2})


class Jobs:
    """That of the scene, which goes on."""

    def look(self) -> tuple[JobGlance, ...]:
        job, now = scene(time.time()).jobs[0], round(time.time() * 100) % 1_000_000
        made = {"num_emitted_tokens": now, "num_evaluated_tokens": now // 2}
        return (replace(job, num_accepted_tokens=now // 3, **made),)


def _console() -> Console:
    beside = Beside(rollouts=Rollouts(), jobs=Jobs())
    return Console(ConsoleSettings(period_s=0.5), beside, {}, look_s=0.5)


class BusySite:
    """Open it: clients ask until it is closed."""

    def __init__(self) -> None:
        recipe = ServiceRecipe(
            settings=SETTINGS,
            engine=EngineSettings(),
            sampling=SamplingSettings(temperature=0.0),
            model="letters",
            created=1,
            additions=(_console,),
        )
        self.site = Site(
            engine=LettersEngine(max_rows=2),
            settings=SETTINGS,
            num_replicas=2,
            engines={"next": LettersEngine(max_rows=2, knows=lambda: False)},
            recipe=recipe,
        )
        self._is_over = threading.Event()
        self._clients = [threading.Thread(target=self._ask, args=(i,)) for i in range(NUM_CLIENTS)]

    def __enter__(self) -> BusySite:
        order = {"settings": {}, "cpus": 1, "fingerprint": "fp2"}
        self._put("releases/next", order)
        self._put("plan", {**_PLAN, "salt": "busy"})
        self.site.release.lose("r1")
        for each in self._clients:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for each in self._clients:
            each.join(timeout=30)
        self.site.close()

    def _put(self, path: str, body: dict[str, Any]) -> None:
        httpx.put(f"{self.site.url}/admin/{path}", json=body, timeout=30).raise_for_status()

    def _ask(self, number: int) -> None:
        with httpx.Client(timeout=30) as client:
            for turn in itertools.count():
                if self._is_over.wait(0.02):
                    return
                body = {
                    "prompt": BROKEN if turn % 20 == 10 else "a",
                    "max_tokens": 40,
                    "ignore_eos": True,
                    "stream": turn % 2 == 0,
                    "user": f"{number}-{turn}",
                }
                client.post(f"{self.site.url}/v1/completions", json=body)
