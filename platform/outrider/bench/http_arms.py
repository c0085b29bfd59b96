"""The sides of a comparison over HTTP, and the engine without HTTP: each keeps its answers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from outrider.bench.arm import Arm, Timing
from outrider.bench.http_client import HttpClient, Wish
from outrider.bench.http_summary import Summary, summarize
from outrider.bench.load import Answer, ErrorKind, closed_loop
from outrider.bench.workload import Prompt
from outrider.core import Clock, Fault, Request, Speculation, Update
from outrider.engine.runner import Runner


class AnsweringArm(Arm, Protocol):
    """An arm that knows each request's latencies."""

    @property
    def answers(self) -> list[Answer]: ...
    @property
    def summary(self) -> Summary: ...
    def forget(self) -> None:
        """What came so far was the warm-up."""
        ...


class _Answers:
    """The part that both arms share: answers and seconds since the warm-up."""

    def __init__(self, name: str, in_flight: int, clock: Clock) -> None:
        self.name = name
        self.answers: list[Answer] = []
        self._seconds = 0.0
        self._in_flight = in_flight
        self._clock = clock

    @property
    def summary(self) -> Summary:
        return summarize(self.answers, self._seconds)

    def forget(self) -> None:
        self.answers.clear()
        self._seconds = 0.0

    def _keep(self, answers: Sequence[Answer], seconds: float) -> Timing:
        """Goodput: tokens of full answers only. Fault where there is none."""
        summary = summarize(answers, seconds)
        if not summary.num_complete:
            raise Fault(f"{self.name}: no request was answered in full: {summary.errors}")
        self.answers += answers
        self._seconds += seconds
        return Timing(summary.num_tokens, seconds)


class HttpArm(_Answers):
    """A server. `loop` is the one that `client` lives in."""

    def __init__(
        self,
        name: str,
        client: HttpClient,
        wish: Wish,
        *,
        in_flight: int,
        clock: Clock,
        loop: asyncio.Runner,
    ) -> None:
        super().__init__(name, in_flight, clock)
        self._client = client
        self._wish = wish
        self._loop = loop

    def decode(self, prompts: Sequence[Prompt]) -> Timing:
        started = self._clock.monotonic()
        answers = self._loop.run(
            closed_loop(
                lambda prompt: self._client.ask(prompt, self._wish), prompts, self._in_flight
            )
        )
        return self._keep(answers, self._clock.monotonic() - started)


class BareArm(_Answers):
    """An engine in this process, on its own thread, as a replica has it; prompts as ids.

    `cpu_s`: seconds of CPU that the server has used; `others_share` tells how idle it was.
    """

    def __init__(
        self,
        name: str,
        runner: Runner,
        *,
        max_tokens: int,
        in_flight: int,
        clock: Clock,
        cpu_s: Callable[[], float],
    ) -> None:
        super().__init__(name, in_flight, clock)
        self._runner = runner
        self._max_tokens = max_tokens
        self._cpu_s = cpu_s
        self._others_s = 0.0

    @property
    def others_share(self) -> float:
        """Cores that the server used while this arm decoded, on average."""
        return self._others_s / max(self._seconds, 1e-9)

    def forget(self) -> None:
        super().forget()
        self._others_s = 0.0

    def decode(self, prompts: Sequence[Prompt]) -> Timing:
        started, others_s = self._clock.monotonic(), self._cpu_s()
        free = threading.Semaphore(self._in_flight)
        answers: list[Answer] = []
        for prompt in prompts:
            free.acquire()
            self._submit(prompt, answers, free)
        for _ in range(self._in_flight):  # every place free again: all have ended
            free.acquire()
        self._others_s += self._cpu_s() - others_s
        return self._keep(answers, self._clock.monotonic() - started)

    def _submit(self, prompt: Prompt, answers: list[Answer], free: threading.Semaphore) -> None:
        sent, arrivals_s = self._clock.monotonic(), list[float]()

        def listen(update: Update) -> None:
            now_s = self._clock.monotonic() - sent
            if update.text:
                arrivals_s.append(now_s)
            if update.completion is not None:
                answers.append(
                    Answer(
                        prompt=prompt,
                        streamed=True,
                        total_s=now_s,
                        arrivals_s=tuple(arrivals_s),
                        num_tokens=update.completion.counters.emitted,
                        error=ErrorKind.EVENT if update.completion.error else None,
                    )
                )
                free.release()

        self._runner.submit(self._request(prompt), listen)

    def _request(self, prompt: Prompt) -> Request:
        return prompt.request(self._max_tokens, Speculation(), stream=True)
