"""The prompts that figures are measured on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from outrider.core import Request, SamplingParams, Speculation, UserError


class HasKind(Protocol):
    """Whatever is told by a kind."""

    @property
    def kind(self) -> str: ...


KindT = TypeVar("KindT", bound=HasKind)
RenderChat = Callable[[Sequence[Mapping[str, Any]]], list[int]]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One tokenised prompt; `kind` is the label that figures are told by."""

    name: str
    kind: str
    ids: tuple[int, ...]
    messages: tuple[Mapping[str, Any], ...] = ()  # what `ids` were rendered from; HTTP sends it

    def request(
        self, max_tokens: int, speculation: Speculation, *, stream: bool = False
    ) -> Request:
        """A greedy request for at most `max_tokens` tokens."""
        return Request(
            request_id=self.name,
            prompt_ids=self.ids,
            params=SamplingParams(max_tokens=max_tokens),
            speculation=speculation,
            kind=self.kind,
            stream=stream,
        )


def load_workload(path: Path, encode_chat: RenderChat) -> list[Prompt]:
    """Read JSONL lines with `id`, `kind` and `messages`, or OpenAI batch lines with a `kind`.

    UserError names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UserError(f"bench.workload: {path}: {error.strerror}") from error
    return [_prompt(path, number, line, encode_chat) for number, line in enumerate(lines, start=1)]


def _prompt(path: Path, number: int, line: str, encode_chat: RenderChat) -> Prompt:
    try:
        row = json.loads(line)
        name = row["id"] if "id" in row else row["custom_id"]
        messages = row["messages"] if "messages" in row else row["body"]["messages"]
        return Prompt(name, row["kind"], tuple(encode_chat(messages)), tuple(messages))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"bench.workload: {path}:{number}: not a line with id, kind and messages ({error})"
        ) from error


def of_kind(prompts: Sequence[KindT], kind: str) -> list[KindT]:
    return [prompt for prompt in prompts if prompt.kind == kind]


def one_of_each_kind(prompts: Sequence[Prompt]) -> list[Prompt]:
    return [of_kind(prompts, kind)[0] for kind in dict.fromkeys(p.kind for p in prompts)]


def one_by_one(prompts: Sequence[Prompt]) -> list[Sequence[Prompt]]:
    return [[prompt] for prompt in prompts]


def mixed(prompts: Sequence[KindT]) -> list[KindT]:
    """All kinds side by side: one of each in turn."""
    kinds = list(dict.fromkeys(prompt.kind for prompt in prompts))
    columns = [of_kind(prompts, kind) for kind in kinds]
    longest = max(map(len, columns), default=0)
    return [column[i] for i in range(longest) for column in columns if i < len(column)]


def repeated(prompts: Sequence[Prompt], times: int) -> list[Prompt]:
    """The prompts `times` over under names of their own; for more in flight than there are."""
    return [
        replace(prompt, name=f"{prompt.name}#{index}")
        for index in range(times)
        for prompt in prompts
    ]
