"""A closed loop of requests: so many in flight, each end followed at once by the next beginning."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from outrider.bench.workload import Prompt


class ErrorKind(StrEnum):
    """How a request ended that did not end in a full answer."""

    REFUSED = "refused"  # an HTTP status and an error in OpenAI's shape
    EVENT = "error event"  # the same, inside a stream that had begun
    UNCLEAR = "unclear"  # an HTTP status of 400 or more with anything else
    CUT = "cut"  # the connection ended, and neither answer nor error was complete
    TIMEOUT = "timeout"
    UNREACHED = "unreached"  # no connection

    @property
    def is_clear(self) -> bool:
        """Does the client know what happened?"""
        return self in (ErrorKind.REFUSED, ErrorKind.EVENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back for one prompt, and when: seconds since the request was sent."""

    prompt: Prompt
    streamed: bool
    total_s: float
    arrivals_s: tuple[float, ...] = ()  # of each piece of text; one where it came whole
    num_tokens: int = 0  # as the answer's usage says
    status: int | None = None  # HTTP status
    error: ErrorKind | None = None

    @property
    def first_token_s(self) -> float | None:
        return self.arrivals_s[0] if self.streamed and self.arrivals_s else None

    @property
    def inter_token_s(self) -> float | None:
        """Mean seconds from token to token after the first piece."""
        if not self.streamed or self.num_tokens < 2 or not self.arrivals_s:  # noqa: PLR2004
            return None
        return (self.arrivals_s[-1] - self.arrivals_s[0]) / (self.num_tokens - 1)


Ask = Callable[[Prompt], Awaitable[Answer]]


async def closed_loop(ask: Ask, prompts: Iterable[Prompt], in_flight: int) -> list[Answer]:
    """Ask every prompt, `in_flight` at a time; answers in the order in which they ended."""
    waiting = iter(prompts)
    answers: list[Answer] = []

    async def client() -> None:
        for prompt in waiting:  # shared: whoever is free takes the next
            answers.append(await ask(prompt))

    async with asyncio.TaskGroup() as clients:
        for _ in range(in_flight):
            clients.create_task(client())
    return answers
