"""The tokens of one call's choices, as they pass by."""

from __future__ import annotations

from collections.abc import Iterable

from outrider.openai.answer import TokenText
from outrider.serving.messages import Begun, Ended, Event, Piece


class Transcript:
    """What a mirrored answer and the one that was sent are compared by."""

    def __init__(self) -> None:
        self.token_ids: dict[int, list[int]] = {}  # by choice
        self.logprobs: dict[int, list[TokenText]] = {}  # one a token, or none at all
        self.num_prompt_tokens = 0
        self.is_whole = False  # it was served to its end

    def see(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Piece):
                self.token_ids.setdefault(event.index, []).extend(event.token_ids)
                self.logprobs.setdefault(event.index, []).extend(event.logprobs or ())
            elif isinstance(event, Begun):
                self.num_prompt_tokens = event.num_prompt_tokens
            else:
                self.is_whole = isinstance(event, Ended)
