"""One call from its body to its events: which release, which replica, tried again while it may be.

Where nothing has been sent to the client yet, a lost replica is replaced by another one; behind
the first event, its loss is the call's last event.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from outrider.config.schema import ServingSettings
from outrider.core import Clock, SystemClock
from outrider.openai.call import Call
from outrider.serving.book import Book
from outrider.serving.candidate_counts import CandidateCounts
from outrider.serving.exposure import Exposure
from outrider.serving.messages import (
    BusyError,
    Ended,
    Events,
    Refusal,
    Release,
    ReplicaLostError,
)
from outrider.serving.refusals import BUSY, CUT, LEAVING, LOST, failed
from outrider.serving.retry import Patience
from outrider.serving.shares import Shares
from outrider.serving.split import Arm, Choice, Plan, choose

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Trip:
    """Where a call went."""

    choice: Choice
    num_retries: int = 0
    epoch: str = ""  # of the book that it belongs in; empty: in none


class Desk:
    """Hands calls to releases. Plan and releases may be changed while calls are under way."""

    def __init__(
        self,
        releases: Mapping[str, Release],
        plan: Plan,
        *,
        most_calls: int,
        deadline_s: float = ServingSettings.deadline_s,
        clock: Clock | None = None,
    ) -> None:
        """`most_calls` under way at once; one more is refused. `deadline_s` of one call."""
        self.releases = dict(releases)
        self.book = Book()
        self.shares = Shares(plan)
        self.candidate_counts = CandidateCounts()
        self._exposure = Exposure()
        self.most_calls = most_calls
        self._deadline_s = deadline_s
        self._clock = clock or SystemClock()
        self.num_calls = 0  # under way
        self.is_leaving = False  # calls under way end, others are refused
        self._plan = plan
        self.put(plan)

    @property
    def plan(self) -> Plan:
        return self._plan

    def put(self, plan: Plan) -> None:
        """From the next call on. Another candidate begins a book of its own."""
        before, self._plan = self._plan, plan
        self.shares.put(plan)
        if plan.candidate is None:
            self.book.close()
            return
        self.candidate_counts.begin(plan.candidate)
        if not self.book.epoch or _tried(plan) != _tried(before):
            self.book.begin()
            self._exposure = Exposure()

    def leave(self) -> int:
        """Refuse calls from now on. How many are under way."""
        self.is_leaving = True
        return self.num_calls

    def drop_shadow(self, release: str) -> None:
        """There was no room for one."""
        self.book.num_shadows_dropped += 1
        self.candidate_counts.drop(release)

    @property
    def has_room_to_spare(self) -> bool:
        """Whether there is place for calls that nobody waits for."""
        return not self.is_leaving and self.num_calls <= self.most_calls // 2

    def trip(self, call: Call, *, session: str = "", forced: Arm | None = None) -> Trip:
        """`forced`: the arm that the sender asks for.

        A session stays in its arm, else a user, else a prompt, whoever sends it.
        """
        choice = self._choice(call, session, forced)
        if forced is None:
            self.shares.count(choice)
        return Trip(choice, epoch="" if choice.is_forced else self.book.epoch)

    async def events(self, call: Call, trip: Trip) -> AsyncGenerator[Events]:
        """At least one message, the last of which ends in `Ended` or `Refusal`.

        Never raises for what happens behind it. Close it to cancel the call.
        """
        if self.is_leaving:
            yield (LEAVING,)
            return
        if self.num_calls >= self.most_calls:
            yield (BUSY,)
            return
        self.num_calls += 1
        try:
            async with aclosing(self._tries(call, trip)) as tries:
                async for events in tries:
                    yield events
        except Exception as error:  # noqa: BLE001 - whatever it is, the client is told
            _LOG.exception("a call to release %s failed", trip.choice.release)
            why = f"the gateway failed: {type(error).__name__}"
            yield (failed(why, code="gateway"),)
        finally:
            self.num_calls -= 1

    async def _tries(self, call: Call, trip: Trip) -> AsyncGenerator[Events]:
        patience = Patience.of(self._deadline_s, self._clock.monotonic())
        while True:
            has_begun, told = False, LOST
            try:
                # A try of its own name: the lost one may still run somewhere.
                named = replace(call, call_id=f"{call.call_id}.{trip.num_retries}")
                async with aclosing(attempt(self._release(trip), named)) as events_:
                    async for events in events_:
                        refusal = None if has_begun else _stopping(events)
                        if refusal is not None:
                            told = refusal
                            raise ReplicaLostError
                        has_begun = True
                        yield events
                return
            except BusyError:
                yield (BUSY,)
                return
            except ReplicaLostError:
                wait_s = patience.lost(self._clock.monotonic())
                if has_begun or wait_s is None:
                    yield (CUT if has_begun else told,)
                    return
            await asyncio.sleep(wait_s)
            trip.num_retries += 1

    def _choice(self, call: Call, session: str, forced: Arm | None) -> Choice:
        if self._plan.candidate is None:
            return choose(self._plan, "", forced)
        choice = choose(self._plan, session or call.user or _prompt(call), forced)
        if choice.arm is not Arm.CANDIDATE or self._is_within_limit():
            return choice
        self.book.num_over_limit += 1
        self.candidate_counts.limit(choice.release)
        return self._stable()

    def _release(self, trip: Trip) -> Release:
        """Stable where the chosen one was taken back in between."""
        if trip.choice.release not in (self._plan.stable, self._plan.candidate):
            trip.choice, trip.epoch = self._stable(), ""
        return self.releases[trip.choice.release]

    def _is_within_limit(self) -> bool:
        return self._exposure.admit(self._plan.most_per_minute, self._clock.monotonic())

    def _stable(self) -> Choice:
        """In place of the candidate: no fair sample of stable's own requests."""
        return Choice(self._plan.stable, Arm.STABLE, is_forced=True)


async def attempt(release: Release, call: Call) -> AsyncGenerator[Events]:
    """One try. `ReplicaLostError` also where it breaks off; `BusyError` as the release says it."""
    events: Events = ()
    if call.stream:
        async with aclosing(release.stream(call)) as stream:
            async for events in stream:
                yield events
    elif events := await release.complete(call):
        yield events
    if not (events and isinstance(events[-1], Ended | Refusal)):
        raise ReplicaLostError


def _stopping(events: Events) -> Refusal | None:
    """What a replica says that takes nothing more: it is closing, or its engine has died."""
    only = events[0] if len(events) == 1 else None
    return only if isinstance(only, Refusal) and only.status == LOST.status else None


def _tried(plan: Plan) -> tuple[str, str | None]:
    return plan.salt, plan.candidate


def _prompt(call: Call) -> str:
    return json.dumps(call.messages or call.prompts)
