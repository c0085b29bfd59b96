"""One client of an OpenAI server that notes when what came.

aiohttp parses HTTP in C: on two cores that serve as well, the client must cost little.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from outrider.bench.http_sse import EventReader
from outrider.bench.load import Answer, ErrorKind
from outrider.bench.workload import Prompt
from outrider.core import Clock, Fault

_BAD_REQUEST = 400
_DONE = "[DONE]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How a prompt is asked: greedily, for at most `max_tokens`."""

    max_tokens: int
    stream: bool = True
    speculate: bool = True
    ignore_eos: bool = False
    user: str = ""  # keeps who asks in one arm of a rollout

    def body(self, prompt: Prompt, model: str) -> dict[str, object]:
        body: dict[str, object] = {
            "model": model,
            "messages": list(prompt.messages),
            "max_tokens": self.max_tokens,
            "temperature": 0.0,
        }
        if self.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        if not self.speculate:
            body["speculation"] = {"enabled": False}
        if self.ignore_eos:
            body["ignore_eos"] = True
        if self.user:
            body["user"] = self.user
        return body


@dataclass(slots=True)
class _Reading:
    """What has come so far of one answer."""

    clock: Clock
    started: float
    status: int | None = None
    arrivals_s: list[float] = field(default_factory=list)
    num_tokens: int = 0
    is_finished: bool = False  # a finish reason came
    error: ErrorKind | None = None

    def take(self, part: Mapping[str, Any]) -> None:
        """A whole answer or a chunk of one."""
        if "error" in part:
            self.error = ErrorKind.EVENT
            return
        for choice in part.get("choices", ()):
            said = choice.get("delta") or choice.get("message") or {}
            if said.get("content"):
                self.arrivals_s.append(self.now_s())
            self.is_finished |= choice.get("finish_reason") in ("stop", "length")
        if usage := part.get("usage"):
            self.num_tokens = usage["completion_tokens"]

    def now_s(self) -> float:
        return self.clock.monotonic() - self.started

    def answer(self, prompt: Prompt, wish: Wish, error: ErrorKind | None) -> Answer:
        return Answer(
            prompt=prompt,
            streamed=wish.stream,
            total_s=self.now_s(),
            arrivals_s=tuple(self.arrivals_s),
            num_tokens=self.num_tokens,
            status=self.status,
            error=error,
        )


class HttpClient:
    """Keeps its connections. Use `open_client`."""

    def __init__(
        self, session: aiohttp.ClientSession, *, model: str, clock: Clock, timeout_s: float
    ) -> None:
        self._session = session
        self._model = model
        self._clock = clock
        self._timeout_s = timeout_s

    async def ask(self, prompt: Prompt, wish: Wish) -> Answer:
        """Read one answer to its end. Never raises for what a server or a network does."""
        reading = _Reading(self._clock, self._clock.monotonic())
        try:
            async with asyncio.timeout(self._timeout_s), self._post(prompt, wish) as response:
                reading.status = response.status
                error = await _read(response, wish, reading)
        except TimeoutError:
            error = ErrorKind.TIMEOUT
        except (aiohttp.ClientConnectorError, ConnectionRefusedError):
            error = ErrorKind.UNREACHED
        except (aiohttp.ClientError, OSError, ValueError, LookupError, TypeError, AttributeError):
            # The connection went, or what came is not JSON of an answer.
            error = ErrorKind.CUT
        return reading.answer(prompt, wish, error)

    @asynccontextmanager
    async def begun(self, prompt: Prompt, wish: Wish) -> AsyncIterator[float]:
        """Yield the seconds to the first token once it is there; then close the socket."""
        reading = _Reading(self._clock, self._clock.monotonic())
        async with asyncio.timeout(self._timeout_s), self._post(prompt, wish) as response:
            events = _events(response)
            async for part in events:
                reading.take(part)
                if reading.arrivals_s:
                    break
            else:
                raise Fault(f"a stream ended before its first token (status {response.status})")
            yield reading.arrivals_s[0]
            response.close()

    async def get(self, path: str) -> Any:
        """The JSON at `path`."""
        async with self._session.get(path) as response:
            response.raise_for_status()
            return await response.json()

    async def put(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON that answers. Fault where it is refused."""
        async with self._session.put(path, json=body) as response:
            if response.status >= _BAD_REQUEST:
                raise Fault(f"{path}: {(await response.text())[:300]}")
            return await response.json()

    def _post(self, prompt: Prompt, wish: Wish) -> Any:
        return self._session.post("/v1/chat/completions", json=wish.body(prompt, self._model))


async def _read(
    response: aiohttp.ClientResponse, wish: Wish, reading: _Reading
) -> ErrorKind | None:
    if response.status >= _BAD_REQUEST:
        return _refusal(await response.read())
    if wish.stream:
        async for part in _events(response):
            reading.take(part)
    else:
        reading.take(json.loads(await response.read()))
    if reading.error is None and not reading.is_finished:
        return ErrorKind.CUT
    return reading.error


def _refusal(body: bytes) -> ErrorKind:
    try:
        message = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        return ErrorKind.UNCLEAR
    return ErrorKind.REFUSED if message else ErrorKind.UNCLEAR


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    """Chunks of a streamed answer, up to [DONE] or the end of the connection."""
    reader = EventReader()
    async for data in response.content.iter_any():
        for event in reader.feed(data):
            if event == _DONE:
                continue  # read on: what follows is the end, and the connection is kept
            yield json.loads(event)


@asynccontextmanager
async def open_client(
    url: str, *, clock: Clock, timeout_s: float = 600.0, key: str = ""
) -> AsyncIterator[HttpClient]:
    """A client of the server at `url` for the first model it lists."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with aiohttp.ClientSession(
        url,
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(total=None),
        headers=headers,
    ) as session:
        yield HttpClient(
            session, model=await _first_model(session), clock=clock, timeout_s=timeout_s
        )


async def _first_model(session: aiohttp.ClientSession) -> str:
    async with session.get("/v1/models") as response:
        response.raise_for_status()
        return str((await response.json())["data"][0]["id"])
