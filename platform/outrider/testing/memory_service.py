"""A service in memory: releases whose requests are drawn by a script, as time passes."""

from __future__ import annotations

import hashlib
import json
import random
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from outrider.core import Clock, Fault, UserError
from outrider.rollout.ports import Health, ReleaseState, ServiceState
from outrider.rollout.status import Candidate
from outrider.serving.sample import Comparison, Cursor, Likeness, Reading, Sample
from outrider.serving.split import Choice, Plan, choose, place

MAX_LINES = 20_000
NUM_TOKENS = 32  # of every answer
SPREAD = 0.1  # of the logarithm of a request's speed


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """How a release does."""

    tokens_per_s: float = 40.0
    acceptance: float = 0.6  # accepted over drafted tokens
    error_share: float = 0.0  # of its requests
    mismatch_share: float = 0.0  # of prompts whose answer is another than stable's
    starts_in_s: float = 0.0
    fallen: str = ""  # why its guard holds it at plain decoding
    failure: str = ""  # why it can't be started; empty: it can


class MemoryService:
    """`rollout.ports.Service`. Requests come at `per_s` from `num_keys` users while `clock` moves.

    `effects` by the name of the release. A request that meets a release which does not answer is
    an error, so that traffic before readiness shows.
    """

    def __init__(
        self,
        clock: Clock,
        effects: Mapping[str, Effect] | None = None,
        *,
        stable: str = "stable",
        per_s: float = 50.0,
        num_keys: int = 400,
        seed: int = 0,
    ) -> None:
        self._clock = clock
        self._effects = effects or {}
        self._per_s = per_s
        self._num_keys = num_keys
        self._random = random.Random(seed)
        self._stable = Candidate(name=stable, fingerprint=f"fingerprint-of-{stable}")
        self._until_s = clock.time()  # requests were made until then
        self._num_requests = 0
        self._num_starts = 0
        self.is_away = False
        self.calls: list[str] = []  # what changed something, in order
        self.restart(forgets=True)

    def restart(self, *, forgets: bool) -> None:
        """The gateway dies and is back: its samples are gone, and plan and candidates if told."""
        self._num_starts += 1
        self._lines: deque[Sample | Comparison] = deque(maxlen=MAX_LINES)
        self._num_lines = 0
        if forgets:
            self.plan = Plan(stable=self._stable.name)
            self._ready_at = {self._stable.name: 0.0}
            self._releases = {self._stable.name: self._stable}

    def begin_anew(self, stable: str) -> None:
        """Another server is started in its place, with a release of its own."""
        self._stable = Candidate(name=stable, fingerprint=f"fingerprint-of-{stable}")
        self.restart(forgets=True)

    def state(self) -> ServiceState:
        self._pass_time()
        releases = {name: self._state_of(name) for name in self._releases}
        return ServiceState(plan=self.plan, model="memory", releases=releases)

    def deploy(self, candidate: Candidate) -> None:
        self._pass_time()
        if candidate.name not in self._releases:
            self.calls.append(f"deploy {candidate.name}")
            self._releases[candidate.name] = candidate
            starts_in_s = self._effect(candidate.name).starts_in_s
            self._ready_at[candidate.name] = self._clock.time() + starts_in_s

    def remove(self, name: str) -> None:
        self._pass_time()
        if name in (self.plan.stable, self.plan.candidate):
            raise UserError(f"{name} is named by the plan")
        if name in self._releases:
            self.calls.append(f"remove {name}")
            del self._releases[name]

    def put_plan(self, plan: Plan) -> None:
        self._pass_time()
        for name in filter(None, (plan.stable, plan.candidate)):
            if name not in self._releases:
                raise UserError(f"there is no release {name}")
        if plan.revision > self.plan.revision:
            share = f"{plan.weight:g}" if plan.candidate else "-"
            self.calls.append(f"plan {plan.stable} {share}")
            self.plan = plan

    def read(self, cursor: Cursor) -> Reading:
        self._pass_time()
        since = cursor.number if cursor.epoch == self._epoch else 0
        num_new = self._num_lines - since
        lines = list(self._lines)[-num_new:] if num_new else []
        return Reading(
            cursor=Cursor(epoch=self._epoch, number=self._num_lines),
            samples=tuple(line for line in lines if isinstance(line, Sample)),
            comparisons=tuple(line for line in lines if isinstance(line, Comparison)),
            num_lost=num_new - len(lines),
        )

    def ask(self, release: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self._pass_time()
        if not self._answers(release):
            raise Fault(f"{release} does not answer")
        asked = json.dumps(body["messages"], sort_keys=True)
        letters = hashlib.sha256(asked.encode()).hexdigest()
        if place(release, asked) < self._effect(release).mismatch_share:
            letters = f"{letters[:9]}-"
        tokens = [_token(letter) for letter in letters[: body["max_tokens"]]]
        text = "".join(token["token"] for token in tokens)
        choice = {
            "message": {"role": "assistant", "content": text},
            "logprobs": {"content": tokens} if body.get("logprobs") else None,
            "finish_reason": "stop",
        }
        return {"choices": [choice]}

    @property
    def _epoch(self) -> str:
        return f"start-{self._num_starts}"

    def _pass_time(self) -> None:
        """Make the requests that came since the last call, under the plan of that time."""
        if self.is_away:
            raise Fault("the service is away")
        now = self._clock.time()
        due = int((now - self._until_s) * self._per_s)
        self._until_s = self._until_s + due / self._per_s if self._per_s else now
        for _ in range(due):
            self._num_requests += 1
            key = f"user {self._num_requests % self._num_keys}"
            for line in self._request(choose(self.plan, key)):
                self._lines.append(line)
                self._num_lines += 1

    def _request(self, choice: Choice) -> Iterator[Sample | Comparison]:
        primary = self._sample(choice, choice.release, is_shadow=False)
        yield primary
        if choice.mirror is not None:
            mirrored = self._sample(choice, choice.mirror, is_shadow=True)
            yield mirrored
            yield self._comparison(choice.mirror, primary, mirrored)

    def _sample(self, choice: Choice, release: str, *, is_shadow: bool) -> Sample:
        effect = self._effect(release)
        if not self._answers(release) or self._random.random() < effect.error_share:
            return Sample(arm=choice.arm, is_shadow=is_shadow, error="engine_error", total_s=0.1)
        speed = effect.tokens_per_s * self._random.lognormvariate(0.0, SPREAD)
        accepted = sum(self._random.random() < effect.acceptance for _ in range(NUM_TOKENS - 1))
        return Sample(
            arm=choice.arm,
            is_shadow=is_shadow,
            finish_reason="stop",
            mode="speculative",
            num_prompt_tokens=10,
            num_tokens=NUM_TOKENS,
            num_rounds=NUM_TOKENS - accepted,
            drafted=NUM_TOKENS - 1,
            accepted=accepted,
            first_token_s=2.0 / speed,
            total_s=NUM_TOKENS / speed,
        )

    def _comparison(self, mirror: str, one: Sample, two: Sample) -> Comparison:
        request_id = f"request-{self._num_requests}"
        if one.error or two.error:
            return Comparison(likeness=Likeness.UNCOMPARED, request_id=request_id)
        if self._random.random() < self._effect(mirror).mismatch_share:
            return Comparison(
                likeness=Likeness.MISMATCH, request_id=request_id, position=3, margin=4.0
            )
        return Comparison(likeness=Likeness.SAME, request_id=request_id)

    def _effect(self, name: str) -> Effect:
        return self._effects.get(name, Effect())

    def _answers(self, name: str) -> bool:
        return name in self._releases and self._state_of(name).health is Health.READY

    def _state_of(self, name: str) -> ReleaseState:
        effect, fingerprint = self._effect(name), self._releases[name].fingerprint
        if effect.failure:
            return ReleaseState(
                fingerprint=fingerprint, health=Health.FAILED, message=effect.failure
            )
        if self._clock.time() < self._ready_at[name]:
            return ReleaseState(fingerprint=fingerprint, health=Health.STARTING)
        return ReleaseState(
            fingerprint=fingerprint, health=Health.READY, num_replicas=1, fallen=effect.fallen
        )


def _token(text: str) -> dict[str, Any]:
    """Its runner-up is far behind: no near tie."""
    top = [{"token": text, "logprob": -0.1}, {"token": "?", "logprob": -9.0}]
    return {"token": text, "logprob": -0.1, "bytes": list(text.encode()), "top_logprobs": top}
