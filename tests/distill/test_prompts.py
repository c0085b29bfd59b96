"""Prompts to learn from: as many as asked for, all different, balanced, and no measured one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from outrider.bulk.corpus import shard_lines
from outrider.bulk.index import build_index
from outrider.bulk.openai_batch import RowReader
from outrider.config.schema import SamplingSettings
from outrider.core import UserError
from outrider.distill.document import Document, parsed, read_document
from outrider.distill.overlap import refuse_overlap
from outrider.distill.prompts import expand

DATA = Path(__file__).parents[2] / "conf" / "data"
MEASURED = ("workload", "evaluation", "sample")
NUM = 12_000
SEED = 1

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def shipped() -> Document:
    return read_document(DATA / "distillation")


@pytest.fixture(scope="module")
def rows(shipped: Document) -> Rows:
    return list(expand(shipped, NUM, SEED))


def small(**lists: Any) -> Document:
    """Two kinds; one of them has two families of different shares."""
    return parsed(
        {
            "kinds": {
                "chat": {"share": 3, "max_tokens": 5},
                "edit": {"share": 1, "max_tokens": 9},
            },
            "families": [
                {"name": "tell", "kind": "chat", "share": 2, "templates": ["Tell {a} of {b}."]},
                {"name": "ask", "kind": "chat", "templates": ["Ask {a}.", "Why {a}?"]},
                {"name": "fix", "kind": "edit", "system": "Fix.", "templates": ["Fix {c.text}"]},
            ],
            "lists": {
                "a": [f"a{n}" for n in range(6)],
                "b": [f"b{n}" for n in range(4)],
                "c": [{"text": f"c{n}"} for n in range(9)],
            }
            | lists,
        }
    )


def family(row: Mapping[str, Any]) -> str:
    return str(row["custom_id"].rsplit("-", 1)[0])


def said(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(message["content"] for message in row["body"]["messages"])


def test_there_are_enough_and_no_two_are_alike(rows: Rows) -> None:
    assert len(rows) == NUM
    assert len({said(row) for row in rows}) == NUM
    assert len({row["custom_id"] for row in rows}) == NUM


def test_kinds_have_their_shares_at_every_point(rows: Rows) -> None:
    for end in (200, 1_000, NUM):
        counts = Counter(row["kind"] for row in rows[:end])
        assert counts["chat"] / end == pytest.approx(0.60, abs=0.01)
        assert counts["code"] / end == pytest.approx(0.25, abs=0.01)
        assert counts["edit"] / end == pytest.approx(0.15, abs=0.01)


def test_no_prompt_is_measured(rows: Rows) -> None:
    measured = [
        json.loads(line)
        for name in MEASURED
        for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    refuse_overlap(rows, measured)


def test_a_share_is_sampled_with_a_seed_and_the_rest_is_greedy(rows: Rows) -> None:
    sampled = [row["body"] for row in rows if row["body"]["temperature"]]
    assert len(sampled) / NUM == pytest.approx(0.15, abs=0.01)
    assert {body["temperature"] for body in sampled} == {0.8}
    assert len({body["seed"] for body in sampled}) > 0.99 * len(sampled)
    assert not any("seed" in row["body"] for row in rows if not row["body"]["temperature"])


def test_no_prompt_is_empty_ragged_or_long(rows: Rows) -> None:
    for row in rows:
        assert 2 <= sum(len(text.split()) for text in said(row)) < 250, row["custom_id"]
        assert all(text == text.strip() for text in said(row)), row["custom_id"]


def test_code_stands_between_fences(rows: Rows) -> None:
    assert all(text.count("```") in (0, 2) for row in rows for text in said(row))


def test_edits_speak_of_words_that_their_passage_has(shipped: Document) -> None:
    for passage in shipped.lists["passage"]:
        assert isinstance(passage, Mapping)
        assert passage["old"] in passage["text"]
        assert passage["number"] in passage["text"]
        assert passage["extra"] not in passage["text"]


def test_bulk_reads_every_row(shipped: Document, tmp_path: Path) -> None:
    source = tmp_path / "prompts.jsonl"
    made = list(expand(shipped, 200, SEED))
    source.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    index = build_index(source, tmp_path / "scratch", shard_rows=64, limit=0)
    lines = [line for shard in index.shards() for line in shard_lines(index.source, shard)]
    reader = RowReader(SamplingSettings(), seed=0)
    for line, row in zip(lines, made, strict=True):
        assert line.value is not None
        assert line.custom_id is not None
        read = reader.row(line.value, line.number, line.custom_id)
        assert (read.custom_id, read.kind) == (row["custom_id"], row["kind"])
        assert read.params.max_tokens == shipped.kinds[row["kind"]].max_tokens
        assert read.params.temperature == row["body"]["temperature"]


def test_fewer_rows_are_the_first_of_more() -> None:
    assert list(expand(small(), 20, 5)) == list(expand(small(), 30, 5))[:20]


def test_another_seed_is_another_order_of_the_same_prompts() -> None:
    one, other = (list(expand(small(), 45, seed)) for seed in (1, 2))
    assert one != other
    assert {row["custom_id"] for row in one} == {row["custom_id"] for row in other}


def test_the_order_is_the_same_on_every_machine() -> None:
    assert [said(row)[-1] for row in expand(small(), 4, 1)] == [
        "Tell a4 of b0.",
        "Tell a2 of b3.",
        "Ask a5.",
        "Fix c7",
    ]


def test_families_share_their_kind_and_subjects_take_turns() -> None:
    chats = [row for row in expand(small(), 24, 3) if row["kind"] == "chat"]
    assert Counter(map(family, chats)) == {"chat-tell": 12, "chat-ask": 6}
    for name, times in (("chat-tell", 2), ("chat-ask", 1)):
        mine = [said(row)[0] for row in chats if family(row) == name]
        counts = Counter(f"a{n}" for n in range(6) for text in mine if f"a{n}" in text)
        assert set(counts.values()) == {times}


def test_every_combination_comes_once() -> None:
    whole = list(expand(small(), 6 * 4 + 2 * 6 + 9, 1))
    assert Counter(map(family, whole)) == {"chat-tell": 24, "chat-ask": 12, "edit-fix": 9}


def test_three_lists_meet_in_every_way() -> None:
    document = parsed(
        {
            "kinds": {"chat": {"share": 1, "max_tokens": 5}},
            "families": [{"name": "all", "kind": "chat", "templates": ["{a} {b} {c}"]}],
            "lists": {name: [f"{name}{n}" for n in range(4)] for name in "abc"},
        }
    )
    assert len({said(row) for row in expand(document, 64, 1)}) == 64


def test_more_than_the_templates_make_is_refused() -> None:
    with pytest.raises(UserError, match="make 45 different prompts, not 46"):
        list(expand(small(), 46, 1))


def test_a_text_that_two_families_have_comes_once() -> None:
    rows = list(expand(small(a=["x", "x"]), 4 + 2 + 9, 1))
    assert Counter(map(family, rows))["chat-ask"] == 2


def test_a_system_message_comes_first() -> None:
    row = next(row for row in expand(small(), 10, 1) if row["kind"] == "edit")
    assert [message["role"] for message in row["body"]["messages"]] == ["system", "user"]


def test_an_overlap_is_found_whatever_the_case_and_the_commas() -> None:
    def row(text: str) -> dict[str, Any]:
        return {"custom_id": "r", "messages": [{"role": "user", "content": text}]}

    measured = [row("Please tell me why the sea, of all things, is salty.")]
    refuse_overlap([row("tell me why the sea of all waters")], measured)
    with pytest.raises(UserError, match="r has words of the benchmark: 'tell me why the sea of"):
        refuse_overlap([row("So: TELL ME why the sea of all things?")], measured)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"b": []}, "family tell: there is no list b"),
        ({"c": ["plain"]}, "family fix: {c.text} is no text of 'plain'"),
        ({"a": [{"text": "x"}]}, "family tell: {a} is no text of"),
    ],
)
def test_a_template_that_asks_for_what_is_not_there_is_refused(
    changed: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        small(**changed)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[kinds", r"bad\.toml: "),
        ("[other]\nx = 1", "other is not known"),
        ("[kinds.chat]\nshare = 1\nmax_tokens = 2", "kinds.chat stands in another file"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "a.toml").write_text("[kinds.chat]\nshare = 1\nmax_tokens = 2\n")
    (tmp_path / "bad.toml").write_text(content)
    with pytest.raises(UserError, match=words):
        read_document(tmp_path)


def test_a_key_that_is_not_known_is_named() -> None:
    with pytest.raises(UserError, match="'colour'"):
        parsed({"kinds": {"chat": {"share": 1, "max_tokens": 2, "colour": 3}}})


def test_a_folder_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no \.toml file"):
        read_document(tmp_path)
