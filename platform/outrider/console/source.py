"""Something that blocks and is read again and again: never twice at once, never waited for long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Generic, TypeVar

from outrider.core import Fault, UserError

T = TypeVar("T")

WAIT_S = 3.0  # for one reading

_LOG = logging.getLogger(__name__)


class Source(Generic[T]):
    """On one asyncio loop; the reading is done in a thread.

    `value` is the last answer. Where the last reading failed it is None, and `note` says why: what
    was true once is not shown as true.
    """

    def __init__(self, name: str, look: Callable[[], T], *, wait_s: float = WAIT_S) -> None:
        """`name`: how a sentence about it begins. `look` raises Fault or UserError in one line."""
        self.value: T | None = None
        self.note = ""
        self._name = name
        self._look = look
        self._wait_s = wait_s
        self._reading: asyncio.Future[T] | None = None

    async def read(self) -> None:
        """Once; never raises for what the source does. One that still hangs is not asked again."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(asyncio.to_thread(self._look))
            self._reading.add_done_callback(_retrieved)
        reading = self._reading
        await asyncio.wait({reading}, timeout=self._wait_s)
        if not reading.done():
            self._tell(None, f"{self._name}: no answer within {self._wait_s:g} s")
            return
        try:
            self._tell(reading.result(), "")
        except (Fault, UserError) as error:
            self._tell(None, f"{self._name}: {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, the others are shown
            self._tell(None, f"{self._name}: can't be read now ({type(error).__name__})")

    def _tell(self, value: T | None, note: str) -> None:
        if note and note != self.note:
            _LOG.warning("%s", note)
        self.value, self.note = value, note


def _retrieved(reading: asyncio.Future[T]) -> None:
    """Nobody may be there any more to hear of its end."""
    if not reading.cancelled():
        reading.exception()
