"""Work that nobody waits for any more is not done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from fastapi import Request
from starlette.responses import Response

LEFT = 499  # what proxies write where the client has left


async def until_gone(request: Request, answer: Coroutine[Any, Any, Response]) -> Response:
    """The answer; its work is cancelled where the client leaves before it is there.

    The request's body has been read: what else it receives is its end.
    """
    working = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else Response(status_code=LEFT)
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
