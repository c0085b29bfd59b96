"""The corpus that ships: valid batch lines of three kinds, in blocks, of one piece each."""

from __future__ import annotations

import json
from pathlib import Path

DATA = Path(__file__).parents[1] / "conf" / "data"
BLOCK = 16  # rows of one kind that follow each other


def rows_of(name: str) -> list[dict]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


def content_of(row: dict) -> str:
    (message,) = row["body"]["messages"]
    assert message["role"] == "user"
    return message["content"]


def test_there_are_enough_rows_of_each_kind_in_blocks() -> None:
    kinds = [row["kind"] for row in rows_of("sample.jsonl")]
    blocks = [set(kinds[start : start + BLOCK]) for start in range(0, len(kinds), BLOCK)]
    assert blocks == [{"chat"}, {"edit"}, {"code"}] * 2


def test_every_row_is_a_batch_request_with_an_id_of_its_own() -> None:
    rows = rows_of("sample.jsonl")
    assert len({row["custom_id"] for row in rows}) == len(rows)
    for row in rows:
        assert (row["method"], row["url"]) == ("POST", "/v1/chat/completions")
        assert row["body"]["max_tokens"] > 0
        assert row["body"]["temperature"] == 0


def test_no_text_comes_twice_or_out_of_the_measured_workload() -> None:
    texts = [content_of(row) for row in rows_of("sample.jsonl")]
    measured = {
        message["content"] for row in rows_of("workload.jsonl") for message in row["messages"]
    }
    assert len(set(texts)) == len(texts)
    assert not measured & set(texts)


def test_edits_bring_their_passage_and_code_rows_their_snippet() -> None:
    for row in rows_of("sample.jsonl"):
        text = content_of(row)
        if row["kind"] == "edit":
            assert len(text.split()) > 90, row["custom_id"]
        if row["kind"] == "code":
            assert text.count("```") == 2, row["custom_id"]
