"""A promotion and a rollback end to end: users over real HTTP, engines, evidence, a real database.

The third story, a live collapse of acceptance, is in `tests/serving/test_fallback.py`.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2 as httpx
import pytest
from http_site import Site
from rollout_stand import PROMPTS

from outrider.config.schema import GateSettings, PlanSettings, WebhookSettings
from outrider.core import SystemClock
from outrider.engine.runner import Runner
from outrider.rollout.assembly import controller_of
from outrider.rollout.database import Database
from outrider.rollout.http_service import HttpService
from outrider.rollout.opening import Opening
from outrider.rollout.phase import Phase
from outrider.rollout.status import Candidate, Status
from outrider.rollout.store import Store
from outrider.rollout.webhooks import Webhooks
from outrider.testing import (
    AlphabetEngine,
    ByteTokenizer,
    MemoryRegistry,
    MemoryTracker,
    ScriptedDrafter,
    ScriptedModel,
    toy_engine,
)
from outrider.tracking.store_uri import sqlite_uri

PLAN = PlanSettings(weights=(0.5,), min_samples=25, min_s=0.2, max_s=60.0, keep_s=0.5)
GATES = GateSettings(  # of what load on this machine can't disturb
    min_speed_ratio=0.0,
    min_acceptance_ratio=0.7,
    min_tokens_per_round_ratio=0.7,
    max_first_token_ratio=0.0,
    max_inter_token_ratio=0.0,
    max_total_ratio=0.0,
    max_error_increase=0.3,
    alpha=0.1,
)


@dataclass(frozen=True, kw_only=True)
class AgreeingEngine(AlphabetEngine):
    """Its drafter knows the alphabet; one that `disagrees` never says a letter that comes next."""

    disagrees: bool = False

    def __call__(self) -> tuple[Runner, ByteTokenizer]:
        def script(tokens: list[int], length: int) -> list[int]:
            shift = 2 if self.disagrees else 1
            return [min(tokens[-1] + shift + at, 255) for at in range(length)]

        model = ScriptedModel(_alphabet, vocab_size=257, context_length=4096, num_blocks=2048)
        engine = toy_engine(
            model,
            ScriptedDrafter(script),
            length=3,
            tokenizer=ByteTokenizer(),
            clock=SystemClock(),
        )
        return Runner(engine), ByteTokenizer()


def _alphabet(prefix: tuple[int, ...]) -> list[float]:
    scores, last = [0.0] * 257, prefix[-1]
    following = last + 1 if ord("a") <= last < ord("z") else ord("a")
    scores[following] = 2.0
    return scores


class Users:
    """Many, each with a name of its own, some at a time, until the block is left."""

    def __init__(self, url: str) -> None:
        self.answers: Counter[tuple[int, str]] = Counter()  # (status, text)
        self._url = url
        self._names = itertools.count()
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._ask) for _ in range(3)]

    def _ask(self) -> None:
        with httpx.Client(timeout=30) as client:
            while not self._is_over.is_set():
                body = {"prompt": "a", "max_tokens": 20, "user": f"user-{next(self._names)}"}
                answer = client.post(self._url + "/v1/completions", json=body)
                text = answer.json()["choices"][0]["text"] if answer.status_code == 200 else ""
                self.answers[answer.status_code, text] += 1
                time.sleep(0.005)

    def __enter__(self) -> Users:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join(timeout=30)


@pytest.fixture
def site() -> Iterator[Site]:
    engines = {"good": AgreeingEngine(), "bad": AgreeingEngine(disagrees=True)}
    with Site(engine=AgreeingEngine(), engines=engines) as site_:
        yield site_


def rollout(site: Site, folder: Path, name: str) -> tuple[Status, list[str]]:
    """To its end; what was told."""
    store = Store(Database(sqlite_uri(folder / "rollouts.db")))
    service, tracker, told = HttpService(site.url), MemoryTracker(), list[str]()
    begun, run = Opening(
        candidate=Candidate(name=name, fingerprint=f"fp-{name}"),
        plan=PLAN,
        gates=GATES,
        url=site.url,
        store=store,
        service=service,
        now_s=time.time(),
    ).open(tracker, who="ada@ship")
    controller = controller_of(
        begun,
        store=store,
        service=service,
        registry=MemoryRegistry(SystemClock()),
        tracker=tracker,
        webhooks=Webhooks(WebhookSettings(), tell=told.append),
        prompts=PROMPTS,
        clock=SystemClock(),
        tell=told.append,
        run=run,
    )
    return controller.run(tick_s=0.1), told


def test_a_good_candidate_is_promoted_and_users_see_one_service(site: Site, tmp_path: Path) -> None:
    with Users(site.url) as users:
        status, told = rollout(site, tmp_path, "good")
    assert status.phase is Phase.PROMOTED, told
    plan = HttpService(site.url).state().plan
    assert (plan.stable, plan.candidate) == ("good", None)
    assert list(users.answers) == [(200, "bcdefghijklmnopqrstu")]


def test_a_drafter_that_disagrees_is_taken_back_and_users_see_the_same_tokens(
    site: Site, tmp_path: Path
) -> None:
    with Users(site.url) as users:
        status, told = rollout(site, tmp_path, "bad")
    assert status.phase is Phase.ROLLED_BACK, told
    assert "accept" in status.reason
    state = HttpService(site.url).state()
    assert (state.plan.stable, state.plan.candidate) == ("main", None)
    assert list(state.releases) == ["main"]
    assert list(users.answers) == [(200, "bcdefghijklmnopqrstu")]
