"""What a bulk job asks of the engine and the tokenizer. Nothing here imports either."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from outrider.core import Completion, Request, Tokenizer, Update


class Decoder(Protocol):
    """A running engine. Many threads may submit."""

    def submit(
        self, request: Request, on_update: Callable[[Update], None] | None = None
    ) -> Future[Completion]:
        """Take a request. `UserError`: it can never fit. The future ends with a Completion.

        `on_update` hears of every round's tokens, on the decode thread; it is quick.
        """
        ...

    def cancel(self, request_id: str) -> None: ...

    def stats(self) -> Mapping[str, object]:
        """State of the engine. `Fault`: its decode loop has stopped."""
        ...

    def reset_prefix_cache(self) -> None:
        """Forget cached prompt beginnings, so that the next pass starts as the first did."""
        ...

    def close(self) -> None: ...


class ChatTokenizer(Tokenizer, Protocol):
    """A tokenizer that knows its model's chat template."""

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        """Ids of a conversation. `UserError`: no template, or it refuses the messages."""
        ...


class EngineFactory(Protocol):
    """Builds the engine inside the worker. Must be picklable; `UserError` names what is wrong."""

    def __call__(self) -> tuple[Decoder, ChatTokenizer]: ...
