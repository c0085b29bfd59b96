"""From the decode thread to the loop: nothing is lost, nothing wakes the loop twice."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from outrider.core import Update
from outrider.serving.inbox import Inbox


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts wake-ups that come from other threads."""

    num_wakes = 0

    def call_soon_threadsafe(self, *args: Any, **kwargs: Any) -> asyncio.Handle:
        self.num_wakes += 1
        return super().call_soon_threadsafe(*args, **kwargs)


def update(number: int) -> Update:
    return Update(request_id="r", token_ids=(number,))


def in_a_thread(inbox: Inbox, numbers: range) -> None:
    thread = threading.Thread(target=lambda: [inbox.put(update(each)) for each in numbers])
    thread.start()
    thread.join()


def test_whoever_takes_late_gets_everything_at_once_for_one_wake_up() -> None:
    loop = CountingLoop()

    async def story() -> None:
        inbox = Inbox()
        in_a_thread(inbox, range(100))
        assert [each.token_ids[0] for each in await inbox.take()] == list(range(100))
        in_a_thread(inbox, range(100, 103))
        assert [each.token_ids[0] for each in await inbox.take()] == [100, 101, 102]
        assert loop.num_wakes == 2

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(story())


def test_a_reader_beside_the_writer_loses_nothing_and_keeps_the_order() -> None:
    async def story() -> list[int]:
        inbox, seen = Inbox(), list[int]()
        writer = threading.Thread(target=lambda: [inbox.put(update(i)) for i in range(3000)])
        writer.start()
        while len(seen) < 3000:
            seen.extend(each.token_ids[0] for each in await inbox.take())
        writer.join()
        return seen

    assert asyncio.run(asyncio.wait_for(story(), 30)) == list(range(3000))


def test_a_taker_waits_for_what_is_new() -> None:
    async def story() -> None:
        inbox = Inbox()
        waiting = asyncio.ensure_future(inbox.take())
        await asyncio.sleep(0)
        assert not waiting.done()
        inbox.put(update(1))
        assert await waiting == [update(1)]
        again = asyncio.ensure_future(inbox.take())
        await asyncio.sleep(0)
        assert not again.done()
        again.cancel()

    asyncio.run(story())
