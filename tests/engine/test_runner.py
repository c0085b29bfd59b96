"""The decode loop in its own thread: many callers, cancel, a broken model, close."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from outrider.core import Fault, FinishReason, Mode, Request, SamplingParams, Update, UserError
from outrider.engine.load import EngineLoad
from outrider.engine.runner import Runner
from outrider.testing import ManualClock, ScriptedDrafter, ScriptedModel, WedgedModel, toy_engine


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
    heard: list[Update] = []
    done = runner_.submit(ask("r"), heard.append).result(timeout=30)
    assert done.finish_reason is FinishReason.ERROR
    assert "out of memory" in (done.error or "")
    assert [update.completion for update in heard] == [done]
    assert runner_.is_stalled(1e9)
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


def wedged() -> tuple[Runner, threading.Event, ManualClock]:
    model, clock = WedgedModel(ScriptedModel(counting, vocab_size=5)), ManualClock()
    model.gate.clear()
    return Runner(toy_engine(model), clock=clock), model.gate, clock


def test_a_decode_thread_that_stands_still_is_told_from_one_that_rests() -> None:
    """P10"""
    runner_, gate, clock = wedged()
    clock.advance(100.0)
    assert not runner_.is_stalled(10.0)  # nothing to do
    future = runner_.submit(ask("r"))
    clock.advance(9.0)
    assert not runner_.is_stalled(10.0)
    clock.advance(2.0)
    assert runner_.is_stalled(10.0)
    gate.set()
    future.result(timeout=30)
    runner_.stats()  # the loop came round again
    assert not runner_.is_stalled(10.0)
    runner_.close()


def test_load_is_read_while_a_round_lasts_and_counts_what_was_just_handed_over() -> None:
    runner_, gate, _ = wedged()
    futures = [runner_.submit(ask(f"r{i}")) for i in range(20)]
    load = runner_.load()
    assert load.num_waiting + load.num_running == 20
    assert load.queued_tokens == 20 * (2 + 8)
    gate.set()
    for future in futures:
        future.result(timeout=30)
    assert runner_.load().is_idle
    assert runner_.load().queued_tokens == 0
    runner_.close()


def test_cancelled_requests_leave_no_row_and_no_block_and_disturb_nobody() -> None:
    """P07, P09"""
    runner_, gate, _ = wedged()
    alone = runner().submit(ask("kept", max_tokens=100)).result(timeout=30)
    kept = runner_.submit(ask("kept", max_tokens=100))
    others = [runner_.submit(ask(f"r{i}", stream=True, max_tokens=400)) for i in range(200)]
    for i in range(200):
        runner_.cancel(f"r{i}")
    gate.set()
    reasons = {future.result(timeout=30).finish_reason for future in others}
    assert reasons == {FinishReason.ABORT}
    assert kept.result(timeout=30).token_ids == alone.token_ids
    load = runner_.load()
    idle = EngineLoad(
        num_free_blocks=load.num_blocks, num_blocks=load.num_blocks, num_rounds=load.num_rounds
    )
    assert load == idle
    runner_.close()


def test_mode_and_draft_length_change_while_a_row_decodes() -> None:
    model = ScriptedModel(counting, vocab_size=5)
    drafter = ScriptedDrafter(lambda tokens, k: [(len(tokens) + i) % 4 for i in range(k)])
    engine = toy_engine(model, drafter, length=3)
    engine.submit(ask("r", max_tokens=64))
    engine.step()  # the prompt's
    lengths: list[list[list[int]]] = []
    for mode, most in [(Mode.SPECULATIVE, None), (Mode.PLAIN, None), (Mode.SPECULATIVE, 2)]:
        engine.set_control(mode, most)
        drafter.lengths.clear()
        engine.step()
        lengths.append(list(drafter.lengths))
    assert lengths == [[[3]], [], [[2]]]
    assert set(engine.stats()["by_drafter"]) == {"scripted"}  # type: ignore[call-overload]


def test_a_native_panic_fails_the_requests_too() -> None:
    """What is no Exception would end the thread and leave every caller waiting."""

    class PanicError(BaseException):
        pass

    def panicking(prefix: tuple[int, ...]) -> list[float]:
        raise PanicError("index out of bounds")

    runner_ = Runner(toy_engine(ScriptedModel(panicking, vocab_size=5)))
    done = runner_.submit(ask("r")).result(timeout=30)
    assert done.error == "the decode loop stopped: PanicError: index out of bounds"
    runner_.close()


def test_who_listens_hears_that_a_request_was_not_opened() -> None:
    runner_, gate, _ = wedged()
    heard: list[Update] = []
    runner_.submit(ask("r"))
    twin = runner_.submit(ask("r", stream=True), heard.append)
    gate.set()
    with pytest.raises(UserError, match="already in flight"):
        twin.result(timeout=30)
    runner_.close()
    assert [update.completion and update.completion.finish_reason for update in heard] == [
        FinishReason.ERROR
    ]


def test_control_reaches_rows_that_decode_and_is_taken_back() -> None:
    clock = ManualClock()
    drafter = ScriptedDrafter(lambda tokens, k: [(len(tokens) + i) % 4 for i in range(k)])
    engine = toy_engine(ScriptedModel(counting, vocab_size=5), drafter, length=3, clock=clock)
    runner_ = Runner(engine)

    def drafted(name: str) -> int:
        done = runner_.submit(ask(name, max_tokens=64)).result(timeout=30)
        return done.counters.drafted

    runner_.set_control(Mode.PLAIN)
    assert drafted("plain") == 0
    assert runner_.stats()["mode"] == "plain"
    runner_.set_control(Mode.SPECULATIVE, 1)
    assert drafted("short") > 0
    assert {most for lengths in drafter.lengths for most in lengths} == {1}
    runner_.set_control(Mode.SPECULATIVE)
    assert drafted("full") > 0
    assert max(most for lengths in drafter.lengths for most in lengths) == 3
    runner_.close()


def test_draining_refuses_what_is_new_and_waits_for_the_rest() -> None:
    runner_, gate, _ = wedged()
    futures = [runner_.submit(ask(f"r{i}")) for i in range(20)]
    assert not runner_.drain(0.01)  # the model stands still
    with pytest.raises(Fault, match="draining"):
        runner_.submit(ask("late"))
    gate.set()
    assert runner_.drain(30)
    assert all(future.done() and len(future.result().token_ids) == 8 for future in futures)
    assert runner_.load().is_idle
    runner_.close()


def test_a_closed_engine_tells_those_who_listen(caplog: pytest.LogCaptureFixture) -> None:
    """What was generated so far is theirs; a round that does not end is not waited for for ever."""
    reached, go_on = threading.Event(), threading.Event()

    def held(prefix: tuple[int, ...]) -> list[float]:
        if len(prefix) == 7:
            reached.set()
            go_on.wait(30)
        return counting(prefix)

    runner_ = Runner(toy_engine(ScriptedModel(held, vocab_size=5)))
    seen: list[Update] = []
    future = runner_.submit(ask("r", stream=True, max_tokens=400), seen.append)
    assert reached.wait(30)
    runner_.close(wait_s=0.01)
    assert "did not end in 0.01 s" in caplog.text
    assert not future.done()
    go_on.set()
    done = future.result(timeout=30)
    assert seen[-1].completion is done
    assert (done.finish_reason, done.error) == (FinishReason.ABORT, "the engine was closed")
    assert len(done.token_ids) == done.counters.emitted == 6
    assert tuple(token for update in seen for token in update.token_ids) == done.token_ids
