"""One prompt of an evaluation set, as every contender gets it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from outrider.core import Request, SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A conversation with its sampling, and the labels that figures are told by.

    Each contender renders it by its own chat template: two targets may know other tokens.
    """

    name: str  # unique in its evaluation set
    messages: tuple[Mapping[str, Any], ...]  # OpenAI's form: role, content
    params: SamplingParams = field(default_factory=SamplingParams)
    kind: str = ""  # chat, code, edit, ...
    language: str = ""  # of the prompt: en, de, ...; empty: not said

    def request(self, prompt_ids: tuple[int, ...], request_id: str = "") -> Request:
        return Request(
            request_id=request_id or self.name,
            prompt_ids=prompt_ids,
            params=self.params,
            kind=self.kind,
            stream=True,
        )
