"""What a replica asks of the engine and the tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from outrider.core import Completion, Mode, Request, Tokenizer, Update
from outrider.engine.load import EngineLoad


class LiveDecoder(Protocol):
    """A running engine (`outrider.engine.runner.Runner`). Many threads may call."""

    def submit(
        self, request: Request, on_update: Callable[[Update], None] | None = None
    ) -> Future[Completion]: ...

    def check(self, request: Request) -> None: ...

    def cancel(self, request_id: str) -> None: ...

    def load(self) -> EngineLoad: ...

    def is_stalled(self, stall_s: float) -> bool: ...

    def set_control(
        self,
        mode: Mode,
        max_draft_length: int | None = None,
        probe_share: float | None = None,
    ) -> None: ...

    def stats(self) -> Mapping[str, Any]: ...

    def close(self) -> None: ...


class ChatTokenizer(Tokenizer, Protocol):
    """A tokenizer that knows its model's chat template."""

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]: ...


class OpenEngine(Protocol):
    """Builds the engine inside the replica. Picklable; `UserError` names what is wrong."""

    def __call__(self) -> tuple[LiveDecoder, ChatTokenizer]: ...
