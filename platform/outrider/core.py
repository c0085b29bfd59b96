"""Nouns that every part of Outrider shares. Standard library only."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


class UserError(Exception):
    """Something the user can mend: one line that names the key, line or file. Exit status 2."""

    exit_status = 2


class Fault(Exception):  # noqa: N818 - a fault is not an error of the user's
    """Something that broke while the input was fine: one line that says what. Exit status 1."""

    exit_status = 1


class FinishReason(StrEnum):
    """Why a request ended."""

    STOP = "stop"  # EOS, a stop id or a stop string
    LENGTH = "length"  # max_tokens or the context limit
    ABORT = "abort"  # cancelled
    ERROR = "error"  # this request failed; `Completion.error` says why


class Rule(StrEnum):
    """Verification rule.

    RATIO: accept with min(1, p/q), resample from (p - q)+ (Leviathan et al. 2023, Algorithm 1).
    COUPLED: draft and target share Gumbel noise keyed by (seed, position); accept while equal.
    """

    RATIO = "ratio"
    COUPLED = "coupled"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """How tokens of one request are chosen. Zero temperature is greedy.

    Penalties follow the OpenAI and vLLM convention: presence and frequency count generated tokens
    only, repetition counts prompt and generated tokens.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # 0: off
    min_p: float = 0.0
    seed: int = 0
    max_tokens: int = 128
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    top_logprobs: int | None = None  # None: no logprobs; 0: the chosen token's only

    @property
    def is_greedy(self) -> bool:
        return self.temperature == 0.0

    @property
    def has_penalties(self) -> bool:
        return (
            self.presence_penalty != 0.0
            or self.frequency_penalty != 0.0
            or self.repetition_penalty != 1.0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """What one request allows: `enabled=False` or `max_draft_length=0` is plain decoding."""

    enabled: bool = True
    max_draft_length: int | None = None  # None: the engine's limit


class Mode(StrEnum):
    """How a replica decodes now."""

    SPECULATIVE = "speculative"
    PLAIN = "plain"  # every draft length at 0


class ConstraintKind(StrEnum):
    """What language a `Constraint` is written in."""

    JSON_OBJECT = "json_object"  # any JSON object; `text` is empty
    JSON_SCHEMA = "json_schema"  # `text` is the schema as JSON
    REGEX = "regex"
    GRAMMAR = "grammar"  # llguidance's Lark dialect


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the output must match. It is checked at every position of a block."""

    kind: ConstraintKind
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One prompt, already tokenised. `request_id` is unique among the requests in flight."""

    request_id: str
    prompt_ids: tuple[int, ...]
    params: SamplingParams = SamplingParams()
    speculation: Speculation = Speculation()
    kind: str = ""  # the user's label, for figures by kind
    stream: bool = False  # an Update each round, not only at the end
    constraint: Constraint | None = None  # structured output


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Log probability of one emitted token under the raw target, and of the likeliest others."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...] = ()  # (token id, logprob), likeliest first


@dataclass(slots=True)
class Counters:
    """What happened to one request, or to many: add with `+=`.

    Invariants: 0 <= accepted <= evaluated <= drafted; emitted = accepted + num_rounds - cropped,
    where a round is one in which the row was sampled and `cropped` counts tokens that a stop cut.
    The sum of `rounds_by_length` is num_rounds, and weighted by the length it is drafted.
    """

    drafted: int = 0  # proposed and sent to the target
    evaluated: int = 0  # tested by the rule (a rejection ends the testing)
    accepted: int = 0
    emitted: int = 0
    cropped: int = 0
    num_rounds: int = 0  # rounds that emitted at least one token for this row
    num_draft_rounds: int = 0  # those with at least one drafted token
    num_drafter_failures: int = 0
    num_caught_up: int = 0  # tokens a drafter had to compute late, after k = 0 rounds or preemption
    num_preemptions: int = 0
    num_cached_tokens: int = 0  # prompt tokens found in the prefix cache
    active_s: float = 0.0  # this row's even share of the seconds of the rounds it was in
    position_attempts: list[int] = field(default_factory=list)  # [draft position] tested
    position_accepts: list[int] = field(default_factory=list)  # [draft position] accepted
    rounds_by_length: list[int] = field(default_factory=list)  # [draft length from 0] rounds

    def __iadd__(self, other: Counters) -> Counters:
        for name in self.__slots__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, list):
                add_by_position(mine, theirs)
            else:
                setattr(self, name, mine + theirs)
        return self

    def to_dict(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


def add_by_position(total: list[int], more: list[int]) -> None:
    """Add `more` into `total` in place, position by position."""
    total.extend([0] * (len(more) - len(total)))
    for position, count in enumerate(more):
        total[position] += count


def count_at(total: list[int], position: int) -> None:
    """Add one into `total` in place, at `position`."""
    total.extend([0] * (position + 1 - len(total)))
    total[position] += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """The end of one request. `token_ids`, `logprobs` and `text` agree and end at the stop.

    `token_ids` includes the EOS or the token that completed a stop string; `text` does not.
    """

    request_id: str
    token_ids: tuple[int, ...]
    text: str
    finish_reason: FinishReason
    stop_reason: str | int | None = None  # the stop string or id that ended it
    logprobs: tuple[TokenLogprob, ...] | None = None
    error: str | None = None
    num_prompt_tokens: int = 0
    counters: Counters = field(default_factory=Counters)
    queue_s: float | None = None  # seconds from submit to its first round; None: it was in none
    first_token_s: float | None = None  # seconds from submit to the first token
    total_s: float = 0.0  # seconds from submit to the end


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What a round added to one request. `text` never holds the beginning of a stop string."""

    request_id: str
    token_ids: tuple[int, ...] = ()
    text: str = ""
    logprobs: tuple[TokenLogprob, ...] = ()
    completion: Completion | None = None  # set on the last update


class Tokenizer(Protocol):
    """Text to ids and back."""

    @property
    def eos_ids(self) -> frozenset[int]: ...
    @property
    def vocabulary(self) -> Mapping[str, int]: ...
    def encode(self, text: str) -> list[int]: ...
    def decode(self, token_ids: list[int]) -> str: ...


class Clock(Protocol):
    """Where time comes from, so that tests can turn it by hand."""

    def monotonic(self) -> float: ...
    def time(self) -> float: ...


class SystemClock:
    """The machine's own time, in seconds."""

    def monotonic(self) -> float:
        return time.perf_counter()

    def time(self) -> float:
        return time.time()
