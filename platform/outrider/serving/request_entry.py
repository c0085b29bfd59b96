"""What is kept of a request that has ended."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestEntry:
    """One line of the request log. `prompt` and `answer` stay empty unless they are asked for."""

    at_s: float  # seconds since 1970, when it came
    request_id: str
    endpoint: str  # chat | text
    release: str  # empty where it was turned away before one was chosen
    arm: str  # stable | candidate
    mode: str = ""  # speculative | plain; empty where no replica had it
    replica: str = ""
    status: int = 200  # HTTP status; 499: the client left
    error: str = ""  # code or type of what went wrong
    finish_reasons: str = ""  # of the choices, with commas
    stream: bool = False
    kind: str = ""
    num_retries: int = 0
    num_prompt_tokens: int = 0
    num_completion_tokens: int = 0
    num_rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    queue_s: float | None = None  # in the engine, before its first round
    first_token_s: float | None = None  # at the gateway, from the request's arrival
    total_s: float = 0.0
    prompt: str = ""
    answer: str = ""
