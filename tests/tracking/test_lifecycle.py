"""A run ends as FINISHED, FAILED or KILLED, whatever ends its job."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from outrider.config.interruption import Terminated
from outrider.testing import MemoryRun, MemoryTracker
from outrider.tracking.lifecycle import closing, terminate_as_exception
from outrider.tracking.tracker import RunStatus


def new_run() -> MemoryRun:
    return MemoryTracker().start_run("name", "test", {})


def send(number: int) -> None:
    os.kill(os.getpid(), number)


def exit_with(code: int | str | None) -> Callable[[], None]:
    def leave() -> None:
        raise SystemExit(code)

    return leave


def fail() -> None:
    raise ValueError("broken")


def break_over(number: int) -> None:
    try:
        send(number)
    finally:
        fail()


@pytest.mark.parametrize(
    ("ending", "error", "status"),
    [
        (lambda: send(signal.SIGTERM), Terminated, RunStatus.KILLED),
        (lambda: send(signal.SIGINT), KeyboardInterrupt, RunStatus.KILLED),
        (lambda: break_over(signal.SIGINT), ValueError, RunStatus.KILLED),
        (fail, ValueError, RunStatus.FAILED),
        (exit_with(0), SystemExit, RunStatus.FINISHED),
        (exit_with(None), SystemExit, RunStatus.FINISHED),
        (exit_with(1), SystemExit, RunStatus.FAILED),
        (exit_with("message"), SystemExit, RunStatus.FAILED),
        (exit_with(143), SystemExit, RunStatus.KILLED),
        (exit_with(signal.SIGTERM), SystemExit, RunStatus.KILLED),  # what Ray's handler does
    ],
)
def test_the_status_tells_how_the_job_ended(
    ending: Callable[[], None], error: type[BaseException], status: RunStatus
) -> None:
    """P14: SIGTERM and Ctrl-C are KILLED, an exception is FAILED."""
    run = new_run()
    with pytest.raises(error), terminate_as_exception(), closing(run):
        ending()
    assert run.status is status


def test_a_job_that_comes_to_its_end_is_finished() -> None:
    run = new_run()
    with terminate_as_exception(), closing(run) as same:
        assert same is run
        assert run.status is None
    assert run.status is RunStatus.FINISHED


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_not_break_the_closing(first: int, second: int) -> None:
    class SlowRun(MemoryRun):
        def close(self, status: RunStatus) -> None:
            send(second)
            super().close(status)

    run = SlowRun("id", "name", "test", {}, {})
    with pytest.raises((Terminated, KeyboardInterrupt)), terminate_as_exception(), closing(run):
        send(first)
    assert run.status is RunStatus.KILLED


def test_a_signal_while_closing_a_finished_run_is_not_lost() -> None:
    class InterruptedRun(MemoryRun):
        def close(self, status: RunStatus) -> None:
            super().close(status)
            if self.num_closes == 0:
                self.num_closes += 1
                send(signal.SIGTERM)

        num_closes = 0

    run = InterruptedRun("id", "name", "test", {}, {})
    with pytest.raises(Terminated), terminate_as_exception(), closing(run):
        pass
    assert run.status is RunStatus.FINISHED


@pytest.mark.parametrize(
    ("ending", "error", "status"),
    [
        (lambda: send(signal.SIGTERM), Terminated, RunStatus.KILLED),
        (fail, ValueError, RunStatus.FAILED),
    ],
)
def test_what_ends_a_child_ends_its_parent_behind_it(
    ending: Callable[[], None], error: type[BaseException], status: RunStatus
) -> None:
    closed: list[tuple[str, RunStatus]] = []

    class NotedRun(MemoryRun):
        def close(self, status: RunStatus) -> None:
            closed.append((self.name, status))
            super().close(status)

    parent, first, second = (NotedRun("id", name, "test", {}, {}) for name in ("p", "a", "b"))

    def search() -> None:
        with closing(parent):
            with closing(first):
                pass
            with closing(second):
                ending()

    with pytest.raises(error), terminate_as_exception():
        search()
    assert closed == [("a", RunStatus.FINISHED), ("b", status), ("p", status)]


def test_a_child_that_fails_alone_leaves_its_parent_running() -> None:
    parent, child = new_run(), new_run()
    with closing(parent):
        with suppress(ValueError), closing(child):
            fail()
        assert (child.status, parent.status) == (RunStatus.FAILED, None)
    assert parent.status is RunStatus.FINISHED


def test_handlers_from_before_come_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with pytest.raises(Terminated), terminate_as_exception():
        send(signal.SIGTERM)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_another_thread_puts_no_handler() -> None:
    before = signal.getsignal(signal.SIGTERM)
    seen: list[object] = []

    def work() -> None:
        with terminate_as_exception():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_a_library_forks_ends_as_if_it_had_no_handler_of_ours(
    capfd: pytest.CaptureFixture[str],
) -> None:
    forking = multiprocessing.get_context("fork")
    with terminate_as_exception():
        is_there = forking.Event()
        child = forking.Process(target=lambda: (is_there.set(), time.sleep(60)))
        child.start()
        assert is_there.wait(timeout=30)  # before, Python drops what comes
        child.terminate()
        child.join(timeout=30)
    assert child.exitcode == -signal.SIGTERM
    assert "Terminated" not in capfd.readouterr().err
