"""One request to an OpenAI endpoint, read and checked: what passes from a gateway to an engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from outrider.core import Constraint, SamplingParams, Speculation


class Endpoint(StrEnum):
    """Which OpenAI endpoint's answer a request gets."""

    CHAT = "chat"
    TEXT = "text"


Prompt = str | tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """`n` choices for each prompt: choice `i` answers prompt `i // n`. Chat has one prompt.

    `params.seed` is 0: the seed of choice i follows from `seed`, or is drawn where that is None.
    """

    call_id: str  # "chatcmpl-..." or "cmpl-..."; unique
    endpoint: Endpoint
    model: str | None = None  # as the client wrote it
    messages: tuple[Mapping[str, str], ...] = ()  # chat
    prompts: tuple[Prompt, ...] = ()  # completions
    params: SamplingParams = field(default_factory=SamplingParams)
    seed: int | None = None
    n: int = 1
    stream: bool = False
    include_usage: bool = False
    continuous_usage_stats: bool = False  # as in vLLM's server: token counts with every chunk
    speculation: Speculation = field(default_factory=Speculation)
    constraint: Constraint | None = None
    user: str | None = None  # the caller's label: keeps a caller in one arm of a rollout
    kind: str = ""  # the caller's label for figures
    yields: bool = False  # nobody waits for it: begun only where an engine has a row free

    @property
    def num_prompts(self) -> int:
        return 1 if self.endpoint is Endpoint.CHAT else len(self.prompts)

    @property
    def num_choices(self) -> int:
        return self.num_prompts * self.n
