"""The two tables of a trial, as whoever reads them later finds them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from outrider.core import Fault
from outrider.trial.observation import Observation, Turn
from outrider.trial.tables import (
    read_observations,
    read_turns,
    write_observations,
    write_turns,
)

SEEN = Observation(
    contender="x",
    in_flight=8,
    batch=3,
    case="chat-01#2",
    kind="chat",
    language="de",
    temperature=0.8,
    num_prompt_tokens=40,
    submitted_s=1.5,
    first_token_s=0.25,
    emitted=2,
    position_attempts=(3, 1),
    position_accepts=(2, 0),
    token_ids=(7, 2),
    finish_reason="stop",
    parity="near_tie",
)
LOST = Observation(
    contender="x",
    in_flight=8,
    batch=3,
    case="chat-02",
    kind="chat",
    language="",
    temperature=0.0,
    num_prompt_tokens=0,
    submitted_s=0.0,
    error="lost",
)
TURN = Turn(
    contender="x",
    in_flight=8,
    batch=3,
    seconds=2.0,
    emitted=2,
    num_requests=2,
    num_failed=1,
    cpu_s=3.5,
    peak_memory_bytes=10**9,
    energy_j=12.5,
)


def test_what_is_written_is_read_back_as_it_was(tmp_path: Path) -> None:
    write_observations(tmp_path / "o", [SEEN, LOST])
    write_turns(tmp_path / "t", [TURN])
    assert read_observations(tmp_path / "o") == (SEEN, LOST)
    assert read_turns(tmp_path / "t") == (TURN,)


def test_a_trial_that_saw_nothing_has_tables_all_the_same(tmp_path: Path) -> None:
    write_observations(tmp_path / "o", [])
    assert read_observations(tmp_path / "o") == ()


def test_columns_of_a_later_version_are_left_unread(tmp_path: Path) -> None:
    write_turns(tmp_path / "t", [TURN])
    table = pq.read_table(tmp_path / "t")
    pq.write_table(table.append_column("new", pa.array([1])), tmp_path / "t")
    assert read_turns(tmp_path / "t") == (TURN,)


@pytest.mark.parametrize("content", [b"", b"PAR1 no table", None])
def test_what_is_no_such_table_is_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "observations.parquet"
    if content is None:
        pq.write_table(pa.table({"a": [1]}), path)
    else:
        path.write_bytes(content)
    with pytest.raises(Fault, match=r"^observations\.parquet is not a trial's table"):
        read_observations(path)
