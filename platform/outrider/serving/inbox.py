"""From the decode thread to an asyncio loop: whoever takes gets all that has come since."""

from __future__ import annotations

import asyncio
import threading

from outrider.core import Update


class Inbox:
    """Made on the loop that reads it. At most one wake-up is under way at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._updates: list[Update] = []
        self._ready = asyncio.Event()
        self._is_woken = False

    def put(self, update: Update) -> None:
        """Called on the decode thread; returns at once."""
        with self._lock:
            self._updates.append(update)
            if self._is_woken:
                return
            self._is_woken = True
        self._loop.call_soon_threadsafe(self._ready.set)

    async def take(self) -> list[Update]:
        """Wait for something new; return all of it."""
        await self._ready.wait()
        self._ready.clear()
        with self._lock:
            updates, self._updates = self._updates, []
            self._is_woken = False
        return updates
