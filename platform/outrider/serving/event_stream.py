"""The answer of a call that streams."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from outrider.serving.messages import Events
from outrider.serving.sse import StreamWriter


class EventStream(StreamingResponse):
    """Server-sent events of `first` and of what `stream` brings. Closes `stream`, whatever ends
    it: a client that leaves, even before the first byte, frees its rows.
    """

    def __init__(
        self,
        writer: StreamWriter,
        first: Events,
        stream: AsyncGenerator[Events],
        *,
        headers: Mapping[str, str],
    ) -> None:
        self._writer = writer
        self._stream = stream
        super().__init__(self._chunks(first), media_type="text/event-stream", headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._stream.aclose()

    async def _chunks(self, first: Events) -> AsyncGenerator[bytes]:
        yield self._writer.write(first)
        async for events in self._stream:
            chunk = self._writer.write(events)
            if chunk:
                yield chunk
