"""The input is indexed in one pass and flat memory, or refused in one line."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outrider.bulk.corpus import Line, shard_lines
from outrider.bulk.index import Index, build_index
from outrider.core import Fault, UserError


def make(tmp_path: Path, content: bytes, name: str = "in.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def index(source: Path, shard_rows: int = 2, limit: int = 0) -> Index:
    return build_index(source, source.parent / "scratch", shard_rows=shard_rows, limit=limit)


def lines(found: Index) -> list[list[Line]]:
    return [shard_lines(found.source, shard) for shard in found.shards()]


def rows(*ids: str) -> bytes:
    return b"".join(json.dumps({"custom_id": i, "prompt": i}).encode() + b"\n" for i in ids)


def test_shards_hold_every_row_once_in_order(tmp_path: Path) -> None:
    found = index(make(tmp_path, rows("a", "b", "c", "d", "e")))
    assert [[line.custom_id for line in shard] for shard in lines(found)] == [
        ["a", "b"],
        ["c", "d"],
        ["e"],
    ]
    assert (found.num_rows, found.num_shards) == (5, 3)


@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    chunks=st.lists(
        st.sampled_from(
            [b'{"prompt":"x"}', b"", b"  ", b"broken", b"\xff", b'{"prompt":"\xc3\xa9"}']
        ),
        min_size=1,
        max_size=12,
    ),
    end=st.sampled_from([b"\n", b"\r\n"]),
    is_ended=st.booleans(),
    shard_rows=st.integers(1, 4),
)
def test_line_numbers_count_blank_and_broken_lines(
    tmp_path: Path, chunks: list[bytes], end: bytes, is_ended: bool, shard_rows: int
) -> None:
    expected = [number for number, chunk in enumerate(chunks, 1) if chunk.strip()]
    source = make(tmp_path, b"\xef\xbb\xbf" + end.join(chunks) + (end if is_ended else b""))
    if not expected:
        with pytest.raises(UserError, match="no rows"):
            index(source, shard_rows)
        return
    shards = lines(index(source, shard_rows))
    assert [line.number for shard in shards for line in shard] == expected
    assert all(len(shard) == shard_rows for shard in shards[:-1])


def test_a_byte_order_mark_is_no_part_of_the_first_row(tmp_path: Path) -> None:
    found = index(make(tmp_path, b"\xef\xbb\xbf" + rows("a")))
    assert lines(found)[0][0].custom_id == "a"


def test_two_lines_with_one_custom_id_are_refused_by_both_numbers(tmp_path: Path) -> None:
    """P05."""
    with pytest.raises(UserError, match=r"lines 2 and 4 have the same custom_id 'b'"):
        index(make(tmp_path, rows("a", "b", "c", "b")))


def test_duplicates_far_apart_are_found_too(tmp_path: Path) -> None:
    """P05, across transactions of the scratch file."""
    ids = [str(number) for number in range(1, 9001)]
    ids[8999] = "17"
    with pytest.raises(UserError, match="lines 17 and 9000"):
        index(make(tmp_path, rows(*ids)), shard_rows=64)


def test_a_line_number_that_stands_in_for_an_id_may_not_clash(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="lines 1 and 2 have the same custom_id '2'"):
        index(make(tmp_path, rows("2") + b'{"prompt":"x"}\n'))


def test_the_digest_is_that_of_the_file_even_with_a_limit(tmp_path: Path) -> None:
    content = rows("a", "b", "c", "d", "e")
    for limit, expected in ((0, 5), (3, 3), (5, 5), (9, 5)):
        found = index(make(tmp_path, content), limit=limit)
        assert found.digest == hashlib.sha256(content).hexdigest()
        assert found.num_rows == expected


def test_an_input_that_changes_under_way_is_noticed(tmp_path: Path) -> None:
    source = make(tmp_path, rows("a", "b"))
    found = index(source)
    make(tmp_path, rows("a", "c"))
    with pytest.raises(Fault, match="changed while the job ran"):
        lines(found)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("in.jsonl", b"", "is empty"),
        ("in.jsonl", b"\n \n", "no rows"),
        ("in.csv", b"a", "must end in .jsonl"),
        ("in.jsonl", "x".encode("utf-16"), "UTF-16"),
        ("in.parquet", b"PAR1 not", "not readable as Parquet"),
    ],
)
def test_what_is_no_input_is_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    with pytest.raises(UserError, match=words) as caught:
        index(make(tmp_path, content, name))
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        index(tmp_path / "none.jsonl")
    with pytest.raises(UserError, match="not a file"):
        index(tmp_path)


def test_parquet_rows_read_like_json_lines(tmp_path: Path) -> None:
    table = pa.table(
        {
            "id": ["a", "b", None],
            "messages": [[{"role": "user", "content": "x"}]] * 3,
            "max_tokens": [3, None, 5],
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    found = index(tmp_path / "in.parquet")
    read = [line for shard in lines(found) for line in shard]
    assert [line.custom_id for line in read] == ["a", "b", "3"]
    assert read[1].value == {"id": "b", "messages": [{"role": "user", "content": "x"}]}
    assert found.digest == hashlib.sha256((tmp_path / "in.parquet").read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("column", "words"), [("text", "prompt or messages"), ("colour", "colour")]
)
def test_parquet_columns_are_checked_by_name(tmp_path: Path, column: str, words: str) -> None:
    columns = {column: ["x"]} | ({} if column == "text" else {"prompt": ["x"]})
    pq.write_table(pa.table(columns), tmp_path / "in.parquet")
    with pytest.raises(UserError, match=words):
        index(tmp_path / "in.parquet")


def test_memory_stays_flat_as_the_file_grows(tmp_path: Path) -> None:
    """P04."""

    def peak(num_rows: int) -> int:
        source = tmp_path / f"{num_rows}.jsonl"
        with source.open("w") as file:
            file.writelines(f'{{"prompt":"x","id":"row {n}"}}\n' for n in range(num_rows))
        tracemalloc.start()
        found = index(source, shard_rows=16)
        for shard in found.shards():
            shard_lines(found.source, shard)
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak(100)
    assert peak(40_000) < 1.3 * peak(10_000)
