"""The request log: whole files, turned by rows and by time, no text unless asked for."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from outrider.serving.request_entry import RequestEntry
from outrider.serving.request_log import RequestLog

ENTRY = RequestEntry(
    at_s=1.0,
    request_id="r",
    endpoint="chat",
    release="main",
    arm="stable",
    num_completion_tokens=5,
    prompt="secret question",
    answer="secret answer",
)


class Ear(logging.Handler):
    """Keeps what it hears."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def ear(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ear]:
    """On the logger itself: libraries that configure logging silence those that they find."""
    logger, found = logging.getLogger("outrider.serving.request_log"), Ear()
    monkeypatch.setattr(logger, "disabled", False)
    monkeypatch.setattr(logging.root.manager, "disable", logging.NOTSET)
    logger.setLevel(logging.WARNING)
    logger.addHandler(found)
    yield found
    logger.removeHandler(found)


def rows(folder: Path) -> list[dict[str, object]]:
    files = sorted(folder.glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def test_files_turn_after_so_many_rows_and_closing_writes_the_rest(tmp_path: Path) -> None:
    log = RequestLog(tmp_path, rows=3, period_s=60.0, with_text=False)
    for index in range(7):
        log.add(replace(ENTRY, request_id=f"r{index}"))
    log.close()
    assert [row["request_id"] for row in rows(tmp_path)] == [f"r{i}" for i in range(7)]
    assert len(list(tmp_path.glob("*.parquet"))) == 3
    assert not list(tmp_path.glob("*.tmp"))


def test_an_entry_is_written_after_a_while_without_others(tmp_path: Path) -> None:
    log = RequestLog(tmp_path, rows=1000, period_s=0.1, with_text=False)
    log.add(ENTRY)
    until = time.monotonic() + 20
    while not rows(tmp_path):
        assert time.monotonic() < until
        time.sleep(0.05)
    log.close()


@pytest.mark.parametrize("with_text", [False, True])
def test_text_is_there_only_where_it_was_asked_for(tmp_path: Path, with_text: bool) -> None:
    log = RequestLog(tmp_path, rows=10, period_s=60.0, with_text=with_text)
    log.add(ENTRY)
    log.close()
    whole = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert ("prompt" in rows(tmp_path)[0]) is with_text
    assert (b"secret" in whole) is with_text


def test_a_folder_that_cannot_be_written_stops_nobody(tmp_path: Path, ear: Ear) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    log = RequestLog(blocked / "log", rows=1, period_s=60.0, with_text=False)
    for _ in range(3):
        log.add(ENTRY)
    log.close()
    assert log.num_dropped == 3
    assert len(ear.records) == 1


def test_half_a_surrogate_pair_is_one_odd_row_and_loses_no_other(tmp_path: Path) -> None:
    log = RequestLog(tmp_path, rows=10, period_s=60.0, with_text=True)
    log.add(replace(ENTRY, prompt="odd \ud83d end"))
    log.add(ENTRY)
    log.close()
    assert [row["prompt"] for row in rows(tmp_path)] == ["odd \\ud83d end", "secret question"]
    assert log.num_dropped == 0


def test_two_gateways_share_a_folder(tmp_path: Path) -> None:
    logs = [
        RequestLog(tmp_path, rows=10, period_s=60.0, with_text=False, clock=lambda: 0.0)
        for _ in range(2)
    ]
    for index, log in enumerate(logs):
        log.add(replace(ENTRY, request_id=f"r{index}"))
        log.close()
    assert {row["request_id"] for row in rows(tmp_path)} == {"r0", "r1"}


def test_what_comes_after_the_end_is_counted_and_waits_for_nobody(tmp_path: Path) -> None:
    log = RequestLog(tmp_path, rows=10, period_s=60.0, with_text=False)
    log.close()
    log.close()
    log.add(ENTRY)
    assert log.num_dropped == 1


def test_a_table_of_more_than_64_bits_drops_its_file_and_no_later_one(
    tmp_path: Path, ear: Ear
) -> None:
    log = RequestLog(tmp_path, rows=1, period_s=60.0, with_text=False)
    log.add(replace(ENTRY, num_retries=2**70))
    log.add(ENTRY)
    log.close()
    assert len(rows(tmp_path)) == log.num_dropped == len(ear.records) == 1
    assert not list(tmp_path.glob("*.tmp"))


def test_what_a_process_that_died_left_unfinished_goes_after_an_hour(tmp_path: Path) -> None:
    for name, age_s in (("requests-old.tmp", 4000.0), ("requests-new.tmp", 10.0)):
        (tmp_path / name).write_bytes(b"half")
        os.utime(tmp_path / name, (time.time() - age_s,) * 2)
    RequestLog(tmp_path, rows=1, period_s=60.0, with_text=False).close()
    assert [path.name for path in tmp_path.iterdir()] == ["requests-new.tmp"]
