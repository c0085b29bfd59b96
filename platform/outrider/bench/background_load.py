"""Requests that go on while something else happens: so many in flight, of kinds that may change."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType

from outrider.bench.http_client import HttpClient, Wish, open_client
from outrider.bench.load import ErrorKind
from outrider.bench.workload import Prompt
from outrider.core import SystemClock


class BackgroundLoad:
    """Entered, it asks `url` from a thread of its own until it is left. `kind` may be changed."""

    def __init__(
        self, url: str, prompts: Sequence[Prompt], wish: Wish, *, in_flight: int, kind: str
    ) -> None:
        self.kind = kind  # of the prompts that are asked from now on
        self.num_full = 0  # requests that ended in a full answer
        self.errors: Counter[ErrorKind] = Counter()
        self._url = url
        self._wish = wish
        self._in_flight = in_flight
        self._by_kind = _by_kind(prompts)
        self._random = random.Random(0)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> BackgroundLoad:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join(timeout=60)

    async def _run(self) -> None:
        async with open_client(self._url, clock=SystemClock()) as client:
            await asyncio.gather(*(self._client(client) for _ in range(self._in_flight)))

    async def _client(self, client: HttpClient) -> None:
        while not self._is_over.is_set():
            prompt = self._random.choice(self._by_kind[self.kind])
            user = f"user-{self._random.getrandbits(32):08x}"
            answer = await client.ask(prompt, replace(self._wish, user=user))
            if answer.error is None:
                self.num_full += 1
            else:
                self.errors[answer.error] += 1


def _by_kind(prompts: Sequence[Prompt]) -> Mapping[str, Sequence[Prompt]]:
    kinds = {prompt.kind for prompt in prompts}
    return {kind: [one for one in prompts if one.kind == kind] for kind in kinds}
