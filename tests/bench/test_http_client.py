"""What a client sees is what the server did: every way in which a request may end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import aiohttp
import pytest
import uvicorn
from toy_server import NUM_TOKENS, Toy

from outrider.bench.http_client import HttpClient, Wish, open_client
from outrider.bench.http_server import free_port, is_ready
from outrider.bench.http_sse import EventReader
from outrider.bench.http_summary import Percentiles, summarize
from outrider.bench.load import Answer, ErrorKind, closed_loop
from outrider.bench.workload import Prompt
from outrider.core import SystemClock

WISH = Wish(max_tokens=8)
WHOLE = Wish(max_tokens=8, stream=False)


@pytest.fixture(scope="module")
def toy() -> Toy:
    return Toy()


@pytest.fixture(scope="module")
def url(toy: Toy) -> Iterator[str]:
    port = free_port()
    config = uvicorn.Config(toy.app(), host="127.0.0.1", port=port, log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    url = f"http://127.0.0.1:{port}"
    while not is_ready(url):
        thread.join(0.02)
    yield url
    server.should_exit = True
    thread.join()


def prompt(text: str) -> Prompt:
    return Prompt(text, "chat", (1,), ({"role": "user", "content": text},))


def ask(url: str, text: str, wish: Wish, timeout_s: float = 30.0) -> Answer:
    async def once() -> Answer:
        async with open_client(url, clock=SystemClock(), timeout_s=timeout_s) as client:
            return await client.ask(prompt(text), wish)

    return asyncio.run(once())


def test_a_streamed_answer_tells_when_each_piece_came(url: str) -> None:
    answer = ask(url, "hello", WISH)
    assert (answer.error, answer.status, answer.num_tokens) == (None, 200, NUM_TOKENS)
    assert len(answer.arrivals_s) == NUM_TOKENS, "the role is no token"
    assert answer.arrivals_s == tuple(sorted(answer.arrivals_s))
    assert 0 < answer.first_token_s <= answer.arrivals_s[-1] <= answer.total_s


def test_a_whole_answer_has_no_first_token(url: str) -> None:
    answer = ask(url, "hello", WHOLE)
    assert (answer.error, answer.num_tokens) == (None, NUM_TOKENS)
    assert answer.first_token_s is None
    assert answer.inter_token_s is None


@pytest.mark.parametrize(
    ("text", "error", "status", "began"),
    [
        ("refuse", ErrorKind.REFUSED, 429, False),
        ("unclear", ErrorKind.UNCLEAR, 500, False),
        ("event", ErrorKind.EVENT, 200, True),
        ("cut", ErrorKind.CUT, 200, True),
    ],
)
def test_an_answer_that_is_not_full_is_told_by_kind(
    url: str, text: str, error: ErrorKind, status: int, began: bool
) -> None:
    answer = ask(url, text, WISH)
    assert (answer.error, answer.status) == (error, status)
    assert (answer.first_token_s is not None) == began


def test_a_request_that_hangs_ends_as_a_timeout(url: str) -> None:
    answer = ask(url, "hello", Wish(max_tokens=8, ignore_eos=True), timeout_s=0.2)
    assert answer.error is ErrorKind.TIMEOUT
    assert not answer.error.is_clear


def test_a_server_that_is_not_there_is_unreached() -> None:
    async def nowhere() -> Answer:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{free_port()}") as session:
            client = HttpClient(session, model="toy", clock=SystemClock(), timeout_s=30.0)
            return await client.ask(prompt("hello"), WISH)

    assert asyncio.run(nowhere()).error is ErrorKind.UNREACHED


def test_plain_requests_say_so_and_nothing_is_sent_that_was_not_asked_for(
    url: str, toy: Toy
) -> None:
    toy.seen.clear()
    ask(url, "hello", Wish(max_tokens=8, speculate=False))
    ask(url, "hello", WHOLE)
    plain, whole = toy.seen
    assert plain["speculation"] == {"enabled": False}
    assert plain["stream_options"] == {"include_usage": True}
    assert whole.keys() == {"model", "messages", "max_tokens", "temperature"}
    assert whole["model"] == "toy"


def test_a_begun_stream_is_closed_and_the_server_hears_of_it(url: str, toy: Toy) -> None:
    async def close() -> tuple[int, int]:
        async with open_client(url, clock=SystemClock()) as client:
            async with client.begun(prompt("hello"), Wish(max_tokens=8, ignore_eos=True)):
                during = toy.num_rows
            while toy.num_rows:
                await asyncio.sleep(0.01)
            return during, toy.num_rows

    assert asyncio.run(close()) == (1, 0)


def test_so_many_are_in_flight_and_all_are_answered(url: str) -> None:
    running = most = 0

    async def load() -> list[Answer]:
        async with open_client(url, clock=SystemClock()) as client:

            async def watched(each: Prompt) -> Answer:
                nonlocal running, most
                running += 1
                most = max(most, running)
                answer = await client.ask(each, WISH)
                running -= 1
                return answer

            return await closed_loop(watched, [prompt(f"p{i}") for i in range(9)], 3)

    answers = asyncio.run(load())
    assert most == 3
    assert sorted(answer.prompt.name for answer in answers) == [f"p{i}" for i in range(9)]
    assert all(answer.error is None for answer in answers)


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_events_are_read_wherever_the_bytes_are_cut(size: int, end: str) -> None:
    lines = [": hello", 'data: {"ä": 1}', "", "event: x", "data:a", "data: b", "", "", "data: cut"]
    data = end.join(lines).encode()
    reader, events = EventReader(), list[str]()
    for begin in range(0, len(data), size):
        events += reader.feed(data[begin : begin + size])
    assert events == ['{"ä": 1}', "a\nb"]


def answered(name: str, arrivals_s: tuple[float, ...], **other: object) -> Answer:
    fields = {"total_s": arrivals_s[-1] if arrivals_s else 1.0, "num_tokens": 5, "status": 200}
    return Answer(prompt=prompt(name), streamed=True, arrivals_s=arrivals_s, **{**fields, **other})


def test_latencies_are_of_full_answers_and_errors_are_counted_by_kind() -> None:
    summary = summarize(
        [
            answered("a", (0.1, 0.3, 0.5)),
            answered("b", (0.3, 0.4, 0.7)),
            answered("c", (9.0,), error=ErrorKind.EVENT),
            answered("d", (), status=429, error=ErrorKind.REFUSED),
            answered("e", (), status=None, error=ErrorKind.UNREACHED),
        ],
        seconds=2.0,
    )
    assert (summary.num_requests, summary.num_complete, summary.num_tokens) == (5, 2, 10)
    assert summary.tokens_per_s == 5.0
    assert summary.first_token_s.p50 == pytest.approx(0.2)
    assert summary.inter_token_s.p50 == pytest.approx(0.1)
    assert summary.gap_s.p99 == pytest.approx(0.3, abs=0.01)
    assert summary.errors == {"error event 200": 1, "refused 429": 1, "unreached": 1}


def test_no_value_has_no_percentile() -> None:
    assert Percentiles.of([None]) is None
