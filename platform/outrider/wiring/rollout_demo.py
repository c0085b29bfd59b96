"""`make rollout-demo`: three stories on a service of its own, under load, told as they happen."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.request import urlopen

from outrider.bench.background_load import BackgroundLoad
from outrider.bench.http_client import Wish
from outrider.bench.http_server import Server, started
from outrider.bench.workload import load_workload
from outrider.config.folders import SHIPPED
from outrider.config.load import load
from outrider.config.schema import GateSettings, PlanSettings, RolloutJob, ServeJob
from outrider.models import default_cache_dir, resolve
from outrider.rollout.phase import Phase
from outrider.tracking.store_uri import open_command, sqlite_uri
from outrider.wiring.rollouts import Rollouts, Say
from outrider.wiring.stores import REPOSITORY, RUNS
from outrider.wiring.stranger import write_stranger

IN_FLIGHT = 4
ANSWER_TOKENS = 32
COPIES, TALKS = "edit", "chat"  # kinds of prompts: a copy is easy to draft, talk is not
SERVER = (  # plain decoding, and a guard that looks quickly
    "draft=none",
    "max_rows=8",
    "fallback_min_acceptance=0.15",
    "fallback_min_goodput=0",  # other processes on these cores would move it
    "fallback_window_s=6",
    "fallback_min_drafted=150",
    "fallback_wait_s=5",
    "fallback_probe_share=0.5",
)
EAGER = "draft=ngram draft.length.policy=fixed draft.length.max=4 draft.ngram.corpus=false"
GOOD = f"{EAGER} breaker.enabled=false max_rows=8"
STRANGE = "draft=model draft.length.policy=fixed draft.length.max=4 max_rows=8"
PLAN = PlanSettings(
    weights=(0.25, 0.5), min_samples=20, min_s=3.0, max_s=150.0, keep_s=5.0, shadow_in_flight=2
)
LOOK_S = 0.25
FALL_S, RETURN_S = 60.0, 120.0  # longest that the guard may take


@dataclass(frozen=True, slots=True)
class Told:
    """How a story ended."""

    title: str
    ended: str
    is_as_told: bool
    run_id: str = ""


@dataclass
class Demo:
    """One service, one load, three stories."""

    settings: RolloutJob
    say: Say
    server: Server
    load: BackgroundLoad
    told: list[Told] = field(default_factory=list)
    _said: str = field(default="", init=False)  # of the guard, last

    def play(self) -> list[Told]:
        self.promoted()
        self.rolled_back()
        self.fallen_back()
        return self.told

    def promoted(self) -> None:
        title = "a candidate that drafts well is promoted"
        self._rollout(title, GOOD, Phase.PROMOTED)

    def rolled_back(self) -> None:
        target = load(ServeJob, "serve", []).model.source
        files = resolve(target, cache_dir=default_cache_dir(os.environ), notice=self.say)
        stranger = write_stranger(files, RUNS / "stranger")
        title = "a candidate whose drafter disagrees is taken back by itself"
        words = f"{STRANGE} draft.model.source=path:{stranger}"
        self._rollout(title, words, Phase.ROLLED_BACK)

    def fallen_back(self) -> None:
        """The guard of the release that story 1 promoted."""
        title = "the traffic changes kind: plain decoding, and back when it pays again"
        self._begin(title)
        self._wait_for_guard({"closed"}, RETURN_S)  # the confirmation prompts were talk too
        self.load.kind = TALKS
        fell_s = self._wait_for_guard({"open", "probing"}, FALL_S)
        self.load.kind = COPIES
        back_s = self._wait_for_guard({"closed"}, RETURN_S) if fell_s is not None else None
        ended = (
            f"plain after {fell_s:.0f} s, back {back_s:.0f} s after the traffic changed again"
            if fell_s is not None and back_s is not None
            else "the guard did not move"
        )
        self._end(Told(title, ended, back_s is not None))

    def _rollout(self, title: str, words: str, expected: Phase) -> None:
        self._begin(title)
        one = Rollouts(replace(self.settings, release=words), self.say)
        one.start()
        status = one.newest().status
        ended = f"{status.phase.value}: {status.reason}"
        self._end(Told(title, ended, status.phase is expected, status.run_id))

    def _begin(self, title: str) -> None:
        self.say("")
        self.say(f"story {len(self.told) + 1}: {title}")

    def _end(self, told: Told) -> None:
        num_failed = self.load.errors.total()
        self.say(f"users so far: {self.load.num_full} whole answers, {num_failed} errors")
        self.told.append(replace(told, is_as_told=told.is_as_told and not num_failed))

    def _wait_for_guard(self, phases: set[str], longest_s: float) -> float | None:
        """Seconds until the guard of stable is in one of them; None: it never was."""
        began_s = time.monotonic()
        while (waited_s := time.monotonic() - began_s) < longest_s:
            guard = self._guard()
            if guard["sentence"] != self._said:
                self._said = guard["sentence"]
                self.say(f"{self._said} ({guard['reason'] or 'from the beginning'})")
            if guard["phase"] in phases:
                return waited_s
            time.sleep(LOOK_S)
        return None

    def _guard(self) -> Mapping[str, str]:
        with urlopen(f"{self.server.url}/admin/status", timeout=30) as answer:
            told = json.load(answer)
        guard: Mapping[str, str] = told["guard"][told["plan"]["stable"]]
        return guard


def rollout_demo(settings: RolloutJob, say: Say) -> int:
    """Play the stories; 1 where one ended otherwise than told."""
    folder = RUNS / "rollout-demo" / time.strftime("%Y%m%d-%H%M%S")
    # A store of its own: a play moves nobody's champion, and confirms as if for the first time.
    uri = sqlite_uri(folder / "outrider.db")
    tracking = replace(settings.tracking, enabled=True, uri=uri)
    serve = str(REPOSITORY / "jobs" / "serve.py")
    script = [sys.executable, serve, *SERVER, f"tracking.uri={uri}"]
    with started(script, log=folder / "server.log", tell=say) as server:
        chosen = replace(
            settings.rollout,
            url=server.url,
            database=sqlite_uri(folder / "rollouts.db"),
            answer_tokens=ANSWER_TOKENS,
        )
        with background(server) as load:
            ready = replace(settings, rollout=chosen, plan=PLAN, gates=gates(), tracking=tracking)
            told = Demo(ready, say, server, load).play()
    say("")
    for number, one in enumerate(told, start=1):
        mark = "as told" if one.is_as_told else "NOT AS TOLD"
        say(f"{number}. {one.title}: {one.ended} [{mark}]")
        if one.run_id:
            say(f"   MLflow run {one.run_id}")
    say(f"look at the runs: {open_command(uri)}")
    return 0 if all(one.is_as_told for one in told) else 1


def gates() -> GateSettings:
    """Wide ones: the stories have a few hundred requests."""
    return load(RolloutJob, "rollout", ["gates=rough"]).gates


def background(server: Server) -> BackgroundLoad:
    prompts = load_workload(SHIPPED / "data" / "workload.jsonl", lambda messages: [])
    wish = Wish(max_tokens=ANSWER_TOKENS, ignore_eos=True)
    return BackgroundLoad(server.url, prompts, wish, in_flight=IN_FLIGHT, kind=COPIES)
