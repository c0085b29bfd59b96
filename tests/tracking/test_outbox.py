"""The store being away never stops a job and loses nothing: what waits is sent when it is back."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from outrider.testing import ManualClock
from outrider.tracking import outbox as outbox_module
from outrider.tracking.entry import Closed, Entry, Figures, Opened, Tagged, TextKept
from outrider.tracking.outbox import OutageError, Outbox, RejectedError
from outrider.tracking.spool import Spool

CLOSED = Closed(status="FINISHED", at_s=9.0)


class ShelfStore:
    """A store whose door the test opens and shuts."""

    def __init__(self) -> None:
        self.is_away = False
        self.gives_in_at: int | None = None  # goes away after so many entries
        self.refused: Entry | None = None
        self.groups: list[int] = []  # sizes of what was written at once
        self.runs: dict[str, list[Entry]] = {}
        self.opens: list[str] = []  # keys, in order
        self.num_sweeps = 0
        self.hang = threading.Event()
        self.hang.set()

    def connect(self) -> None:
        self._reach()

    def open(self, opened: Opened) -> str:
        self._reach()
        self.opens.append(opened.key)
        self.runs.setdefault(f"store-{opened.key}", [])
        return f"store-{opened.key}"

    def write(self, run_id: str, entries: Sequence[Entry]) -> None:
        self._reach()
        if any(entry == self.refused for entry in entries):
            raise RejectedError("never")
        self.runs[run_id].extend(entries)
        self.groups.append(len(entries))
        if self.gives_in_at is not None and len(self.runs[run_id]) >= self.gives_in_at:
            self.is_away, self.gives_in_at = True, None

    def sweep(self) -> None:
        self._reach()
        self.num_sweeps += 1

    def _reach(self) -> None:
        self.hang.wait(20.0)
        if self.is_away:
            raise OutageError("nobody is there")


def opened(key: str = "a") -> Opened:
    return Opened(key=key, name="job", at_s=0.0, params={"k": "v"})


def window(step: int) -> Figures:
    return Figures(metrics={"tokens_per_s": float(step)}, step=step, at_s=float(step))


@pytest.fixture
def store() -> ShelfStore:
    return ShelfStore()


def test_entries_arrive_in_order(store: ShelfStore, tmp_path: Path) -> None:
    outbox = Outbox(store, Spool(tmp_path / "spool"))
    mail = outbox.open(opened())
    entries = [window(1), window(2), CLOSED]
    for entry in entries:
        outbox.put(mail, entry)
    assert outbox.flush(20.0)
    assert store.runs == {"store-a": entries}
    assert mail.opened.run_id == "store-a"
    assert not (tmp_path / "spool").exists()


def test_a_run_that_begins_in_an_outage_is_sent_when_the_store_is_back(
    store: ShelfStore, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store.is_away = True
    outbox = Outbox(store, Spool(tmp_path))
    mail = outbox.open(opened())
    assert mail.answered.wait(20.0)
    assert mail.opened.run_id == ""
    with caplog.at_level(logging.WARNING):
        outbox.put(mail, window(1))
        assert outbox.flush(20.0)
    assert store.runs == {}
    store.is_away = False
    outbox.put(mail, window(2))
    outbox.put(mail, CLOSED)
    assert outbox.flush(20.0)
    assert store.runs == {"store-a": [window(1), window(2), CLOSED]}
    assert mail.opened.run_id == "store-a"
    assert list(tmp_path.iterdir()) == []


def test_an_outage_in_the_middle_keeps_order_and_sends_each_entry_once(
    store: ShelfStore, tmp_path: Path
) -> None:
    store.gives_in_at = 2
    outbox = Outbox(store, Spool(tmp_path))
    mail = outbox.open(opened())
    entries = [Tagged(tags={"step": str(step)}) for step in range(6)]
    for entry in entries:
        outbox.put(mail, entry)
    assert outbox.flush(20.0)
    store.is_away, store.gives_in_at = False, 4  # and away again while the spool is sent
    assert outbox.flush(20.0)
    assert store.runs == {"store-a": entries[:4]}
    store.is_away = False
    assert outbox.flush(20.0)
    assert store.runs == {"store-a": entries}
    assert list(tmp_path.iterdir()) == []


def test_an_entry_that_is_refused_holds_up_no_other(store: ShelfStore, tmp_path: Path) -> None:
    store.refused = Tagged(tags={"a": "b"})
    outbox = Outbox(store, Spool(tmp_path))
    mail = outbox.open(opened())
    for entry in (window(1), store.refused, CLOSED):
        outbox.put(mail, entry)
    assert outbox.flush(20.0)
    assert store.runs == {"store-a": [window(1), CLOSED]}
    assert outbox.num_rejected == 1


def test_what_waited_is_sent_many_at_once_and_only_what_is_refused_is_lost(
    store: ShelfStore, tmp_path: Path
) -> None:
    store.is_away = True
    store.refused = window(7)
    outbox = Outbox(store, Spool(tmp_path))
    mail = outbox.open(opened())
    entries = [*(window(step) for step in range(250)), CLOSED]
    for entry in entries:
        outbox.put(mail, entry)
    assert outbox.flush(20.0)
    store.is_away = False
    assert outbox.flush(20.0)
    assert store.runs == {"store-a": [entry for entry in entries if entry != window(7)]}
    assert outbox.num_rejected == 1
    assert store.groups == [1] * 99 + [100, 50, 1]


def test_a_store_that_hangs_does_not_hold_the_end_of_the_job(
    store: ShelfStore, tmp_path: Path
) -> None:
    outbox = Outbox(store, Spool(tmp_path))
    mail = outbox.open(opened())
    assert outbox.flush(20.0)
    store.hang.clear()
    outbox.put(mail, window(1))
    outbox.put(mail, CLOSED)
    assert not outbox.flush(0.05)
    found = Spool(tmp_path).read("a")
    assert found is not None
    assert found[0].run_id == "store-a"
    assert found[1] == [window(1), CLOSED]
    assert not outbox.flush(3600.0)  # once is enough
    store.hang.set()


def test_only_the_last_try_asks_a_store_that_is_away_at_once(
    store: ShelfStore, tmp_path: Path
) -> None:
    clock = ManualClock()
    store.is_away = True
    outbox = Outbox(store, Spool(tmp_path), clock)
    mail = outbox.open(opened())
    assert outbox.flush(20.0)
    store.is_away = False
    outbox.put(mail, CLOSED)
    assert outbox.flush(20.0, is_last_try=False)
    assert store.runs == {}
    assert outbox.flush(20.0)
    assert store.runs == {"store-a": [CLOSED]}


def test_windows_are_dropped_and_counted_when_too_many_wait(
    store: ShelfStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox_module, "MAX_WAITING", 3)
    store.hang.clear()
    outbox = Outbox(store, Spool(tmp_path))
    mail = outbox.open(opened())
    for step in range(10):
        outbox.put(mail, window(step))
    outbox.put(mail, CLOSED)
    store.hang.set()
    assert outbox.flush(20.0)
    sent = store.runs["store-a"]
    assert sent[-1] == CLOSED  # the end is never dropped
    assert len(sent) - 1 + outbox.num_dropped == 10
    assert outbox.num_dropped >= 7


def test_a_full_disk_and_no_store_lose_entries_but_not_the_job(
    store: ShelfStore, tmp_path: Path
) -> None:
    store.is_away = True
    (tmp_path / "spool").touch()  # no folder can be made here
    outbox = Outbox(store, Spool(tmp_path / "spool"))
    mail = outbox.open(opened())
    outbox.put(mail, window(1))
    assert outbox.flush(20.0)
    assert mail.answered.is_set()
    assert outbox.num_dropped == 2


LEAVE_A_SPOOL = """
import sys
from pathlib import Path
from outrider.tracking.entry import Closed, Figures, Opened
from outrider.tracking.spool import Spool
run = Opened(key="old", name="job", at_s=0.0, params={"k": "v"})
spool = Spool(Path(sys.argv[1]))
spool.append(run, [Figures(metrics={"x": 1.0}, step=1, at_s=1.0)])
print("kept", flush=True)
sys.stdin.read()
"""


def test_what_a_dead_process_left_is_sent_by_the_next_and_a_living_one_is_left_alone(
    store: ShelfStore, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LEAVE_A_SPOOL, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"kept\n"
        first = Outbox(store, Spool(tmp_path))
        first.open(opened("first"))
        assert first.flush(20.0)
        assert store.runs.keys() == {"store-first"}
        other.kill()
    with (tmp_path / "old.jsonl").open("a") as file:
        file.write('{"kind": "Figures", "metr')  # killed while it wrote a line
    second = Outbox(store, Spool(tmp_path))
    second.open(opened("second"))
    assert second.flush(20.0)
    assert store.runs["store-old"] == [Figures(metrics={"x": 1.0}, step=1, at_s=1.0)]
    assert store.num_sweeps == 2
    assert list(tmp_path.iterdir()) == []


LEAVE_A_FAMILY = """
import sys
from pathlib import Path
from outrider.tracking.entry import Opened
from outrider.tracking.spool import Spool
spool = Spool(Path(sys.argv[1]))
for run in (
    Opened(key="z", name="parent", at_s=1.0),
    Opened(key="a", name="child", at_s=1.0, parent="local-z"),
    Opened(key="b", name="goes on", at_s=2.0, resumes="local-a"),
):
    spool.append(run, [])
"""


def test_a_run_that_others_refer_to_is_sent_before_them(store: ShelfStore, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", LEAVE_A_FAMILY, str(tmp_path)], check=True)
    outbox = Outbox(store, Spool(tmp_path))
    outbox.open(opened("new"))
    assert outbox.flush(20.0)
    assert store.opens == ["new", "z", "a", "b"]


def test_a_run_that_goes_on_waits_for_what_its_process_left(
    store: ShelfStore, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-c", LEAVE_A_FAMILY, str(tmp_path)], check=True)
    outbox = Outbox(store, Spool(tmp_path))
    outbox.open(Opened(key="c", name="job", at_s=2.0, resumes="local-z"))
    assert outbox.flush(20.0)
    assert store.opens == ["z", "c", "a", "b"]


def test_text_with_odd_line_ends_survives_the_spool(store: ShelfStore, tmp_path: Path) -> None:
    store.is_away = True
    outbox = Outbox(store, Spool(tmp_path))
    mail = outbox.open(opened())
    odd = TextKept(text="a\u2028b\x85c\x0cd\r\ne", name="note.txt")
    outbox.put(mail, odd)
    assert outbox.flush(20.0)
    store.is_away = False
    assert outbox.flush(20.0)
    assert store.runs == {"store-a": [odd]}


def test_a_file_that_is_no_spool_is_put_aside(store: ShelfStore, tmp_path: Path) -> None:
    (tmp_path / "odd.jsonl").write_text("not json\n")
    outbox = Outbox(store, Spool(tmp_path))
    outbox.open(opened())
    assert outbox.flush(20.0)
    assert store.runs.keys() == {"store-a"}
    assert (tmp_path / "odd.broken").read_text() == "not json\n"
