"""One engine of a release, behind asyncio. Nothing of Ray is met here."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from typing import Any

from outrider.config.schema import EngineSettings, ServingSettings
from outrider.core import Completion, Counters, Fault, FinishReason, Request, UserError
from outrider.openai.call import Call
from outrider.serving.choices import SEED_BITS, encode, make_requests, mode_of, num_characters
from outrider.serving.inbox import Inbox
from outrider.serving.messages import Control, Ended, Events, Pulse, Refusal, ReplicaStats
from outrider.serving.ports import OpenEngine
from outrider.serving.refusals import busy, closed, invalid, too_late
from outrider.serving.tally import Tally

LONG_PROMPT = 4096  # characters; more are tokenised off the loop
STATS_WAIT_S = 5.0  # longest that `stats` waits for the round in hand
SMOOTHING = 0.2  # weight of the newest call in the usual length of a call


class Replica:
    """Owns a decode thread. Every method but `close` is called on one asyncio loop."""

    def __init__(
        self,
        open_engine: OpenEngine,
        settings: ServingSettings,
        engine: EngineSettings,
        *,
        name: str,
        control: Control | None = None,
        draw_seed: Callable[[], int] = lambda: secrets.randbits(SEED_BITS),
    ) -> None:
        self.name = name
        self._settings = settings
        self._num_rows = engine.max_rows
        self._most_rows = engine.max_rows + settings.max_queue
        self._draw_seed = draw_seed
        self._usual_s = 1.0  # how long a call usually takes
        self._decoder, self._tokenizer = open_engine()
        self._control = Control()
        self.set_control(control or Control())

    async def stream(self, call: Call) -> AsyncGenerator[Events]:
        """Events as they come. Closing the generator cancels every choice in the engine."""
        opened = await self._open(call)
        if isinstance(opened, Refusal):
            yield (opened,)
            return
        requests, tally, inbox = opened[0], opened[1], Inbox()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._settings.deadline_s
        try:
            refusal = self._submit(requests, inbox.put)[1]
            if refusal is not None:
                yield (refusal,)
                return
            while not tally.is_over:
                async with asyncio.timeout_at(deadline):
                    updates = await inbox.take()
                events = tally.read(updates, _num_prompt_tokens(call, requests))
                self._learn(events)
                if events:
                    yield events
        except TimeoutError:
            yield (self._too_late(),)
        finally:
            self._cancel(tally.open_ids)

    async def complete(self, call: Call) -> Events:
        """All events at once. Cancelling the task cancels every choice in the engine."""
        opened = await self._open(call)
        if isinstance(opened, Refusal):
            return (opened,)
        requests, tally = opened
        try:
            futures, refusal = self._submit(requests, None)
            if refusal is not None:
                return (refusal,)
            async with asyncio.timeout(self._settings.deadline_s):
                ends = await asyncio.gather(
                    *map(asyncio.wrap_future, futures), return_exceptions=True
                )
            done = map(_completion, requests, ends)
            events = tally.whole(done, _num_prompt_tokens(call, requests))
            self._learn(events)
            return events
        except TimeoutError:
            return (self._too_late(),)
        finally:
            self._cancel(tally.open_ids)

    def set_control(self, control: Control) -> None:
        """From the next round on; rows in flight too."""
        self._control = control
        self._decoder.set_control(control.mode, control.max_draft_length, control.probe_share)

    def pulse(self) -> Pulse:
        """Without waiting for anything."""
        drafts = self._decoder.load().drafts
        return Pulse(replica=self.name, control=self._control, drafts=drafts)

    async def stats(self, release: str) -> ReplicaStats:
        """Load now, counters as of the last round that ended within a few seconds."""
        load = self._decoder.load()
        try:
            async with asyncio.timeout(STATS_WAIT_S):
                told = await asyncio.to_thread(self._decoder.stats)
        except (TimeoutError, Fault):  # it stands still or is dead: its health check says so
            told = {}
        breaker = told.get("policy", {}).get("breaker", {})
        return ReplicaStats(
            release=release,
            replica=self.name,
            mode=self._control.mode,
            max_draft_length=self._control.max_draft_length,
            pid=os.getpid(),
            num_running=load.num_running,
            num_waiting=load.num_waiting,
            queued_tokens=load.queued_tokens,
            num_free_blocks=load.num_free_blocks,
            num_blocks=load.num_blocks,
            max_waiting=self._settings.max_queue,
            num_open_rows=told.get("num_open_rows", 0),
            breaker_phase=breaker.get("phase", ""),
            breaker_sentence=breaker.get("sentence", ""),
            num_rounds=load.num_rounds,
            drafts=load.drafts,
            counters=_counters(told.get("counters", {})),
            by_drafter={name: _counters(each) for name, each in told.get("by_drafter", {}).items()},
        )

    def autoscaling_stats(self) -> dict[str, float]:
        """What the number of replicas follows."""
        load = self._decoder.load()
        return {
            "queued_tokens": float(load.queued_tokens),
            "free_blocks_ratio": load.num_free_blocks / max(load.num_blocks, 1),
        }

    def check_health(self) -> None:
        """Raise `Fault` where the decode thread has died or stands still."""
        if self._decoder.is_stalled(self._settings.stall_s):
            raise Fault(
                f"{self.name}: the decode thread ended no round in {self._settings.stall_s} s"
            )

    def close(self) -> None:
        """End what is in flight and stop the decode thread."""
        self._decoder.close()

    async def _open(self, call: Call) -> tuple[list[Request], Tally] | Refusal:
        """What may be submitted at once: nothing is awaited behind the look at the load."""
        if call.num_choices > self._most_rows:
            return invalid(
                UserError(f"n: {call.num_choices} choices at once, {self._most_rows} have a place")
            )
        try:
            requests = await self._requests(call)
        except UserError as error:
            return invalid(error)
        load, most = self._decoder.load(), self._num_rows if call.yields else self._most_rows
        if load.num_running + load.num_waiting + len(requests) > most:
            return self._busy()
        ids = [request.request_id for request in requests]
        mode = mode_of(call, self._control)
        return requests, Tally(ids, self._tokenizer, replica=self.name, mode=mode)

    async def _requests(self, call: Call) -> list[Request]:
        """What takes long is done off the loop."""
        if num_characters(call) > LONG_PROMPT:
            prompts = await asyncio.to_thread(encode, call, self._tokenizer)
        else:
            prompts = encode(call, self._tokenizer)
        requests = make_requests(call, prompts, self._draw_seed())
        if call.constraint is not None:  # a grammar is compiled here, and found again later
            await asyncio.to_thread(self._decoder.check, requests[0])
        return requests

    def _submit(
        self, requests: list[Request], listener: Callable[[Any], None] | None
    ) -> tuple[list[Future[Completion]], Refusal | None]:
        """All or none: where one is refused, the caller cancels the others."""
        try:
            return [self._decoder.submit(request, listener) for request in requests], None
        except UserError as error:
            return [], invalid(error)
        except Fault as fault:
            return [], closed(str(fault))

    def _learn(self, events: Events) -> None:
        if events and isinstance(events[-1], Ended):
            self._usual_s += SMOOTHING * (events[-1].total_s - self._usual_s)

    def _cancel(self, request_ids: list[str]) -> None:
        for request_id in request_ids:
            try:
                self._decoder.cancel(request_id)
            except Fault:  # closed or dead: nothing decodes any more
                return

    def _busy(self) -> Refusal:
        return busy(max(1, math.ceil(self._usual_s)))

    def _too_late(self) -> Refusal:
        return too_late(f"not done within {self._settings.deadline_s:g} s (serving.deadline_s)")


def _completion(request: Request, end: Completion | BaseException) -> Completion:
    """A request that the engine refused on its own thread has ended too."""
    if isinstance(end, Completion):
        return end
    return Completion(
        request_id=request.request_id,
        token_ids=(),
        text="",
        finish_reason=FinishReason.ERROR,
        error=str(end),
    )


def _num_prompt_tokens(call: Call, requests: list[Request]) -> int:
    """Each prompt is counted once, whatever n."""
    return sum(len(request.prompt_ids) for request in requests[:: call.n])


def _counters(told: dict[str, Any]) -> Counters:
    return Counters(**told)
