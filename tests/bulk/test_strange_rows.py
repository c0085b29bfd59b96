"""Rows that JSON allows and nobody expects: each is answered or fails alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from workshop import Workshop, read_lines, request

SURROGATE = "a\ud800"


def errors(root: Path, row: Any) -> list[dict[str, Any]]:
    shop = Workshop(root, [row, request("good")])
    _, made = shop.run()
    assert made is not None
    assert (made.num_done, made.num_failed) == (1, 1)
    found: list[dict[str, Any]] = read_lines(shop.folder.errors)
    return found


@pytest.mark.parametrize("name", ["temperature", "top_p", "presence_penalty"])
def test_an_integer_too_large_for_a_float_is_its_rows_error(tmp_path: Path, name: str) -> None:
    [error] = errors(tmp_path, request("huge", **{name: 10**400}))
    assert error["code"] == "invalid_field"
    assert error["message"].startswith(f"{name} must be a number")


def test_a_custom_id_with_a_lone_surrogate_is_answered(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [request(SURROGATE, "hello")])
    shop.run()
    assert [line["custom_id"] for line in read_lines(shop.folder.output)] == [SURROGATE]
    table = pq.read_table(shop.folder.table)
    assert table["custom_id"].to_pylist() == ["a\\ud800"]


@pytest.mark.parametrize("kind", [SURROGATE, "two\nlines", "k" * 101])
def test_a_kind_that_cannot_head_a_row_of_figures_is_refused(tmp_path: Path, kind: str) -> None:
    [error] = errors(tmp_path, {**request("odd"), "kind": kind})
    assert error["message"].startswith("kind must be a printable label")


@pytest.mark.parametrize("field", ["custom_id", "url"])
def test_a_long_wrong_value_is_cut_in_the_message(tmp_path: Path, field: str) -> None:
    [error] = errors(tmp_path, {**request("long"), field: ["a"] * 10_000})
    assert len(error["message"]) < 200


def test_no_depth_of_nesting_fails_more_than_its_row(tmp_path: Path) -> None:
    """A value that could be parsed must be quoted too, so depths near the limit are tried."""
    depths = range(sys.getrecursionlimit() - 200, sys.getrecursionlimit())
    rows = [f'{{"id":"d{n}","prompt":"x","foo":{"[" * n}{"]" * n}}}' for n in depths]
    _, made = Workshop(tmp_path, [*rows, request("good")]).run()
    assert made is not None
    assert (made.num_done, made.num_failed) == (1, len(rows))
