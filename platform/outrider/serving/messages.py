"""What passes between the gateway and a replica. Plain data, cheap to pickle."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Protocol

from outrider.core import Counters, Mode
from outrider.engine.draft_sums import NOTHING_DRAFTED, DraftSums
from outrider.openai.answer import TokenText
from outrider.openai.call import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What is new of one choice. The last piece of a choice has a `finish_reason`."""

    index: int  # choice
    text: str = ""
    token_ids: tuple[int, ...] = ()
    logprobs: tuple[TokenText, ...] | None = None  # one a token, where the call wants them
    finish_reason: str | None = None  # stop | length | error
    stop_reason: str | int | None = None

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """First event of a call, sent together with its first piece."""

    replica: str
    mode: Mode
    num_prompt_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """Last event of a call that was served: the counters of all its choices."""

    num_prompt_tokens: int
    num_completion_tokens: int
    counters: Counters
    mode: Mode
    queue_s: float | None = None  # in the engine, before the first round of any choice
    first_token_s: float | None = None  # in the engine, from its arrival there
    total_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Only or last event of a call that was not served, or not to its end."""

    status: int  # HTTP status, where nothing has been sent yet
    message: str
    kind: str  # OpenAI's `type`: invalid_request_error | rate_limit_error | server_error ...
    param: str | None = None
    code: str | None = None
    retry_after_s: float | None = None


Event = Begun | Piece | Ended | Refusal
Events = tuple[Event, ...]
"""Everything that is new since the last message: a slow reader gets fewer, larger ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """How all replicas of a release decode, changed while they serve.

    The last one said holds, whether an operator said it or the release's guard (`serving.guard`).
    """

    mode: Mode = Mode.SPECULATIVE
    max_draft_length: int | None = None  # tokens; None: the release's own
    probe_share: float | None = None  # of the rows, which draft though the mode is plain
    guard_wait_s: float = 0.0  # the guard's last wait before it tried again; 0: it never fell


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStats:
    """What a replica tells about itself."""

    release: str
    replica: str
    mode: Mode
    max_draft_length: int | None = None  # tokens, as /admin/control said; None: the release's own
    pid: int = 0  # process on its node
    num_running: int = 0  # rows
    num_waiting: int = 0
    queued_tokens: int = 0  # prompt tokens to compute and tokens still to emit, at most
    num_free_blocks: int = 0
    num_blocks: int = 0
    num_rounds: int = 0
    max_waiting: int = 0  # rows; one more is a 429
    num_open_rows: int = 0  # rows whose own breaker is not closed
    breaker_phase: str = ""  # closed | open | half_open; empty: the decode thread does not answer
    breaker_sentence: str = ""
    drafts: DraftSums = NOTHING_DRAFTED
    counters: Counters = field(default_factory=Counters)
    by_drafter: dict[str, Counters] = field(default_factory=dict)

    @property
    def has_counted(self) -> bool:
        """Whether `counters` are known: a decode thread that does not answer tells none."""
        return bool(self.breaker_phase) or self.counters != Counters()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """The little that a replica can tell at any time, without waiting for a round."""

    replica: str
    control: Control
    drafts: DraftSums  # since its engine began


class Release(Protocol):
    """Replicas of one release, seen from the gateway."""

    @property
    def name(self) -> str: ...

    def stream(self, call: Call) -> AsyncGenerator[Events]:
        """Events as they come; closing the generator cancels the call in the engine.

        Raises `ReplicaLostError` where the replica is gone, `BusyError` where every queue is full.
        """
        ...

    async def complete(self, call: Call) -> Events:
        """All events in one message; cancelling the task cancels the call in the engine."""
        ...

    async def control(self, control: Control) -> None:
        """Tell every replica, now and those that come later. None leaves routing."""
        ...

    async def stats(self) -> list[ReplicaStats]: ...

    async def pulses(self) -> list[Pulse]:
        """Of every replica that answers at once."""
        ...


class ReplicaLostError(Exception):
    """The replica that had the call is gone."""


class BusyError(Exception):
    """Every replica's queue is full."""
