"""What was seen of one request, and of one turn: the two tables that every figure comes from.

They are the artifacts `observations.parquet` and `turns.parquet` of a trial's run.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One request of one contender. Equal (in_flight, batch, case) of two contenders are a pair."""

    contender: str
    in_flight: int
    batch: int
    case: str
    kind: str
    language: str
    temperature: float
    num_prompt_tokens: int
    submitted_s: float  # since the trial began
    first_token_s: float | None = None  # since it was submitted
    inter_token_s: float | None = None  # mean from token to token behind the first
    total_s: float = 0.0  # since it was submitted
    active_s: float = 0.0  # its even share of its rounds' seconds
    emitted: int = 0  # tokens
    drafted: int = 0
    evaluated: int = 0
    accepted: int = 0
    num_rounds: int = 0
    num_draft_rounds: int = 0
    position_attempts: tuple[int, ...] = ()  # [draft position]
    position_accepts: tuple[int, ...] = ()
    token_ids: tuple[int, ...] = ()
    finish_reason: str = ""  # `core.FinishReason` by value; empty: none was given
    error: str = ""  # `trial.failure.Failure` by value; empty: a full answer
    parity: str = "not_compared"  # with the baseline: `engine.parity.Verdict` by value


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One batch decoded by one contender, so many in flight, alone on the machine."""

    contender: str
    in_flight: int
    batch: int
    seconds: float
    emitted: int  # tokens of full answers
    num_requests: int
    num_failed: int
    cpu_s: float  # of the contender's process
    peak_memory_bytes: int  # of the contender's process so far
    gpu_ratio: float | None = None  # mean share of the device that was busy; None: no device
    energy_j: float | None = None  # None: the machine does not tell


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Everything that one trial has seen."""

    observations: tuple[Observation, ...] = ()
    turns: tuple[Turn, ...] = ()

    def __add__(self, other: Measured) -> Measured:
        return Measured(
            observations=self.observations + other.observations, turns=self.turns + other.turns
        )
