"""A copy of a stable request, decoded by the candidate for nobody.

Its answer is never sent. It is not among the users' requests: not in their counters of /metrics
and not in the request log. What is kept of it are a sample and how like it was to what was sent.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from outrider.openai.call import Call
from outrider.serving.account import Account
from outrider.serving.book import sample_of
from outrider.serving.choices import SEED_BITS
from outrider.serving.desk import Desk, Trip, attempt
from outrider.serving.http_errors import FIRST_SERVER_STATUS
from outrider.serving.likeness import compare, is_comparable, with_rivals
from outrider.serving.messages import BusyError, Events, Refusal, Release, ReplicaLostError
from outrider.serving.refusals import BUSY, LOST, failed
from outrider.serving.sample import Comparison, Likeness
from outrider.serving.split import Arm, Choice, Plan
from outrider.serving.transcript import Transcript

_LOG = logging.getLogger(__name__)


class NoShadow:
    """Of a request that is not mirrored."""

    def see(self, events: Events) -> None:
        """What was sent."""

    def end(self) -> None:
        """Nothing more is sent."""


NO_SHADOW = NoShadow()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What is mirrored, under which plan."""

    call: Call  # as it was sent
    request_id: str
    plan: Plan
    name: str  # of the release, in the plan
    release: Release
    epoch: str
    is_comparable: bool


class Shadow(NoShadow):
    """One mirrored request beside its primary, which it never holds up."""

    def __init__(self, what: _Task, desk: Desk, on_decoded: Callable[[], None]) -> None:
        self._what = what
        self._desk = desk
        self._on_decoded = on_decoded
        self._sent = Transcript()
        self._has_ended = asyncio.Event()
        self._is_decoding = True
        self._task = asyncio.get_running_loop().create_task(self._run())
        self._task.add_done_callback(lambda _: self._decoded())  # also where it never began

    def see(self, events: Events) -> None:
        self._sent.see(events)

    def end(self) -> None:
        """It goes with its primary, where that was cancelled or failed."""
        if self._sent.is_whole:
            self._has_ended.set()
        else:
            self._task.cancel()

    async def _run(self) -> None:
        what, mirrored = self._what, Transcript()
        call = replace(what.call, call_id=f"{what.call.call_id}-shadow", yields=True)
        if what.is_comparable:
            call = with_rivals(call)
        choice = Choice(what.name, Arm.CANDIDATE)
        account = Account(call, Trip(choice), what.request_id, with_text=False)
        refusal = await self._decode(call, account, mirrored)
        self._decoded()
        if refusal is not None and refusal.status == BUSY.status:
            self._desk.drop_shadow(what.name)
            return
        if refusal is not None and refusal.status < FIRST_SERVER_STATUS:
            account.see((failed(refusal.message, "refused"),))  # what stable served
        sample = sample_of(account.entry(), is_shadow=True)
        await self._has_ended.wait()
        if sample is not None:
            self._desk.book.add(sample, what.epoch)
        comparison = self._compare(mirrored)
        self._desk.candidate_counts.compare(what.name, comparison.likeness)
        self._desk.book.add(comparison, what.epoch)

    def _decoded(self) -> None:
        if self._is_decoding:
            self._is_decoding = False
            self._on_decoded()

    async def _decode(self, call: Call, account: Account, mirrored: Transcript) -> Refusal | None:
        """What ended it before its time; BUSY where there was no room or no time for it."""
        told: Refusal | None = None
        deadline = asyncio.timeout(self._what.plan.shadow_deadline_s)
        try:
            async with deadline, aclosing(attempt(self._what.release, call)) as tries:
                async for events in tries:
                    account.see(events)
                    mirrored.see(events)
                    told = events[-1] if isinstance(events[-1], Refusal) else None
            return told
        except (TimeoutError, BusyError):
            return BUSY
        except ReplicaLostError:
            told = LOST
        except Exception as error:  # noqa: BLE001 - whatever it is, users do not hear of it
            _LOG.exception("a mirrored call to release %s failed", self._what.name)
            told = failed(type(error).__name__, code="gateway")
        account.see((told,))
        mirrored.see((told,))
        return told

    def _compare(self, mirrored: Transcript) -> Comparison:
        what = self._what
        if not (mirrored.is_whole and what.is_comparable):
            return Comparison(likeness=Likeness.UNCOMPARED, request_id=what.request_id)
        return compare(
            what.call,
            self._sent,
            mirrored,
            near_tie=what.plan.near_tie,
            request_id=what.request_id,
        )


class Mirror:
    """Begins shadows while there is room for them; what finds none is dropped and counted."""

    def __init__(
        self,
        desk: Desk,
        are_coupled: Callable[[str, str], bool],
        draw_seed: Callable[[], int] = lambda: secrets.randbits(SEED_BITS),
    ) -> None:
        """`are_coupled`: whether two releases draw the same tokens with the same seed."""
        self._desk = desk
        self._are_coupled = are_coupled
        self._draw_seed = draw_seed
        self.num_in_flight = 0

    def prepared(self, call: Call, trip: Trip) -> Call:
        """With a seed that both releases use, where the call is mirrored, drawn and has none."""
        is_ready = trip.choice.mirror is None or call.params.is_greedy or call.seed is not None
        return call if is_ready else replace(call, seed=self._draw_seed())

    def begin(self, call: Call, trip: Trip, request_id: str) -> NoShadow:
        """Call it when the request is handed to stable."""
        name, plan = trip.choice.mirror, self._desk.plan
        if name is None or name != plan.candidate or name not in self._desk.releases:
            return NO_SHADOW
        is_full = self.num_in_flight >= plan.shadow_in_flight
        if is_full or not self._desk.has_room_to_spare:
            self._desk.drop_shadow(name)
            return NO_SHADOW
        self.num_in_flight += 1
        are_coupled = self._are_coupled(trip.choice.release, name)
        what = _Task(
            call=call,
            request_id=request_id,
            plan=plan,
            name=name,
            release=self._desk.releases[name],
            epoch=trip.epoch,
            is_comparable=is_comparable(call, are_coupled=are_coupled),
        )
        return Shadow(what, self._desk, self._ended)

    def _ended(self) -> None:
        self.num_in_flight -= 1
