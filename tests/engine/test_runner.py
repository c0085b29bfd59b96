"""The decode loop in its own thread: many callers, cancel, a broken model, close."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from outrider.core import Fault, FinishReason, Request, SamplingParams, Update, UserError
from outrider.engine.runner import Runner
from outrider.testing import ScriptedModel, toy_engine


def ask(name: str, *, stream: bool = False, max_tokens: int = 8) -> Request:
    params = SamplingParams(max_tokens=max_tokens)
    return Request(request_id=name, prompt_ids=(1, 2), params=params, stream=stream)


def counting(prefix: tuple[int, ...]) -> list[float]:
    return [float(token == len(prefix) % 4) for token in range(5)]


def runner() -> Runner:
    return Runner(toy_engine(ScriptedModel(counting, vocab_size=5)))


def test_requests_from_many_threads_all_come_back() -> None:
    runner_ = runner()
    with ThreadPoolExecutor(8) as pool:
        futures = list(pool.map(lambda i: runner_.submit(ask(f"r{i}")), range(50)))
    assert {f.result(timeout=30).request_id for f in futures} == {f"r{i}" for i in range(50)}
    assert runner_.stats()["num_running"] == 0
    runner_.close()


def test_updates_come_as_the_tokens_do() -> None:
    runner_ = runner()
    seen: list[Update] = []
    done = runner_.submit(ask("r", stream=True), seen.append).result(timeout=30)
    assert len(seen) == 8
    assert "".join(update.text for update in seen) == done.text
    runner_.close()


def test_a_request_that_cannot_be_served_is_refused_where_it_is_submitted() -> None:
    runner_ = runner()
    with pytest.raises(UserError, match="prompt: it holds no tokens"):
        runner_.submit(Request(request_id="r", prompt_ids=()))
    runner_.close()


def test_a_cancelled_request_ends_as_aborted() -> None:
    gate = threading.Event()

    def held(prefix: tuple[int, ...]) -> list[float]:
        if len(prefix) > 3:
            gate.wait(10)
        return counting(prefix)

    runner_ = Runner(toy_engine(ScriptedModel(held, vocab_size=5)))
    future = runner_.submit(ask("r", max_tokens=100))
    runner_.cancel("r")
    gate.set()
    assert future.result(timeout=30).finish_reason is FinishReason.ABORT
    runner_.close()


def test_a_broken_model_fails_its_requests_instead_of_hanging_them() -> None:
    def broken(prefix: tuple[int, ...]) -> list[float]:
        raise RuntimeError("out of memory")

    runner_ = Runner(toy_engine(ScriptedModel(broken, vocab_size=5)))
    done = runner_.submit(ask("r")).result(timeout=30)
    assert done.finish_reason is FinishReason.ERROR
    assert "out of memory" in (done.error or "")
    with pytest.raises(Fault, match="out of memory"):
        runner_.submit(ask("next"))
    runner_.close()


def test_an_id_is_free_again_once_cancelled() -> None:
    """Cancelled and submitted again between two rounds: each future gets its own end."""
    gate = threading.Event()

    def held(prefix: tuple[int, ...]) -> list[float]:
        gate.wait(10)
        return counting(prefix)

    runner_ = Runner(toy_engine(ScriptedModel(held, vocab_size=5)))
    runner_.submit(ask("first"))  # the loop is in a round while the others are posted
    gone = runner_.submit(ask("r"))
    runner_.cancel("r")
    back = runner_.submit(ask("r"))
    runner_.cancel("r")
    runner_.cancel("r")
    stays = runner_.submit(ask("r"))
    gate.set()
    ends = [future.result(timeout=30).finish_reason for future in (gone, back, stays)]
    assert ends == [FinishReason.ABORT, FinishReason.ABORT, FinishReason.LENGTH]
    runner_.close()


def test_a_future_its_caller_gave_up_stops_nobody() -> None:
    runner_ = runner()
    for i in range(20):
        runner_.submit(ask(f"r{i}", max_tokens=50)).cancel()
    done = runner_.submit(ask("r")).result(timeout=30)
    assert done.finish_reason is FinishReason.LENGTH
    runner_.close()


def test_a_listener_that_raises_harms_nobody() -> None:
    """Nor its own request, which goes on untold."""
    runner_ = runner()
    heard: list[Update] = []

    def broken(update: Update) -> None:
        heard.append(update)
        raise ValueError("no room in the queue")

    futures = [runner_.submit(ask("bad", stream=True), broken), runner_.submit(ask("good"))]
    assert all(len(future.result(timeout=30).token_ids) == 8 for future in futures)
    assert len(heard) == 1
    runner_.close()


def test_a_call_that_fails_reaches_its_caller_only(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = toy_engine(ScriptedModel(counting, vocab_size=5))
    runner_ = Runner(engine)
    with monkeypatch.context() as patched:
        patched.setattr(engine, "stats", lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            runner_.stats()
    assert len(runner_.submit(ask("r")).result(timeout=30).token_ids) == 8
    runner_.close()


def test_closing_ends_what_is_in_flight() -> None:
    runner_ = runner()
    future = runner_.submit(ask("r", max_tokens=400))
    runner_.close()
    assert future.result(timeout=30).finish_reason in (FinishReason.ABORT, FinishReason.LENGTH)
    with pytest.raises(Fault, match="closed"):
        runner_.submit(ask("late"))
