"""One call from its body to its events: which release, which replica, tried again while it may be.

Where nothing has been sent to the client yet, a lost replica is replaced by another one; behind
the first event, its loss is the call's last event.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace

from outrider.openai.call import Call
from outrider.openai.errors import RATE_LIMIT, SERVER
from outrider.serving.messages import (
    BusyError,
    Events,
    Refusal,
    Release,
    ReplicaLostError,
)
from outrider.serving.split import Choice, Plan, choose

FIRST_WAIT_S = 0.1  # before the second try; doubles
MOST_WAIT_S = 2.0
RETRY_S = 30.0  # longest that a call without a token is tried again
LOST = Refusal(
    status=503, message="the replica was lost; try again", kind=SERVER, code="replica_lost"
)
CUT = replace(LOST, message="the replica was lost in the middle of this answer; ask again")
BUSY = Refusal(
    status=429,
    message="every queue is full; try again in 1 s",
    kind=RATE_LIMIT,
    code="busy",
    retry_after_s=1.0,
)


@dataclass(slots=True)
class Trip:
    """Where a call went."""

    choice: Choice
    num_retries: int = 0


class Desk:
    """Hands calls to releases. `plan` may be changed while calls are under way."""

    def __init__(self, releases: Mapping[str, Release], plan: Plan, *, most_calls: int) -> None:
        self.releases = releases
        self.plan = plan
        self._most_calls = most_calls
        self.num_calls = 0  # under way

    def trip(self, key: str) -> Trip:
        return Trip(choose(self.plan, key))

    async def events(self, call: Call, trip: Trip) -> AsyncGenerator[Events]:
        """At least one message; close it to cancel the call."""
        if self.num_calls >= self._most_calls:
            yield (BUSY,)
            return
        self.num_calls += 1
        try:
            async with aclosing(self._tries(call, trip)) as tries:
                async for events in tries:
                    yield events
        finally:
            self.num_calls -= 1

    async def _tries(self, call: Call, trip: Trip) -> AsyncGenerator[Events]:
        until, wait_s = time.monotonic() + RETRY_S, FIRST_WAIT_S
        while True:
            has_begun = False
            try:
                # A try of its own name: the lost one may still run somewhere.
                named = replace(call, call_id=f"{call.call_id}.{trip.num_retries}")
                async with aclosing(self._once(named, trip)) as events_:
                    async for events in events_:
                        has_begun = True
                        yield events
                return
            except BusyError:
                yield (BUSY,)
                return
            except ReplicaLostError:
                if has_begun or time.monotonic() + wait_s > until:
                    yield (CUT if has_begun else LOST,)
                    return
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, MOST_WAIT_S)
            trip.num_retries += 1

    async def _once(self, call: Call, trip: Trip) -> AsyncGenerator[Events]:
        release = self.releases[trip.choice.release]
        if not call.stream:
            yield await release.complete(call)
            return
        async with aclosing(release.stream(call)) as stream:
            async for events in stream:
                yield events
