"""One prompt of an evaluation set, as every contender decodes it."""

from __future__ import annotations

from dataclasses import dataclass

from outrider.core import Request, SamplingParams


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A tokenised prompt with its sampling, and the labels that figures are told by."""

    name: str  # unique in its evaluation set
    prompt_ids: tuple[int, ...]
    params: SamplingParams
    kind: str = ""  # chat, code, edit, ...
    language: str = ""  # of the prompt: en, de, ...; empty: not said

    def request(self, request_id: str) -> Request:
        return Request(
            request_id=request_id,
            prompt_ids=self.prompt_ids,
            params=self.params,
            kind=self.kind,
            stream=True,
        )
