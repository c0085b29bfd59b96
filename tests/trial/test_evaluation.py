"""The file of prompts: read strictly, its mistakes told by line."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from outrider.config.folders import SHIPPED
from outrider.core import UserError
from outrider.trial.evaluation import read_evaluation

GOOD = {"id": "a", "kind": "chat", "messages": [{"role": "user", "content": "Hello"}]}


def written(folder: Path, *rows: object) -> Path:
    path = folder / "prompts.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines))
    return path


def test_labels_and_sampling_are_the_prompts_own(tmp_path: Path) -> None:
    rows = [GOOD, {**GOOD, "id": "b", "language": "de", "temperature": 0.8, "max_tokens": 9}]
    evaluation = read_evaluation(written(tmp_path, *rows), answer_tokens=64)
    greedy, sampled = evaluation.cases
    assert greedy.params.is_greedy
    assert greedy.params.max_tokens == 64
    assert (sampled.language, sampled.params.temperature) == ("de", 0.8)
    assert sampled.params.max_tokens == 9
    again = read_evaluation(written(tmp_path, *rows), answer_tokens=64)
    assert again == evaluation, "seeds come from ids"
    assert greedy.params.seed != sampled.params.seed


def test_the_digest_is_of_every_byte(tmp_path: Path) -> None:
    one = read_evaluation(written(tmp_path, GOOD), answer_tokens=8)
    two = read_evaluation(written(tmp_path, {**GOOD, "language": "en"}), answer_tokens=8)
    assert one.sha256 != two.sha256


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("{", "prompts.jsonl:2"),
        ({**GOOD, "kind": 3}, "'kind' can't be 3"),
        ({"id": "b", "kind": "chat"}, "there is no 'messages'"),
        ({**GOOD, "id": "b", "top_p": 0.5}, "'top_p' is not known"),
        ({**GOOD, "id": "b", "messages": []}, "messages is empty"),
        ({**GOOD, "id": "b", "messages": [{"role": "user"}]}, "a role and a content"),
        ({**GOOD, "id": "b", "temperature": -1}, "temperature must be at least 0"),
        (GOOD, "id 'a' is there"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, row: Any, said: str) -> None:
    with pytest.raises(UserError) as error:
        read_evaluation(written(tmp_path, GOOD, row), answer_tokens=8)
    assert said in str(error.value)
    assert ":2" in str(error.value)


def test_a_file_that_is_not_there_or_empty_is_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", written(tmp_path)):
        with pytest.raises(UserError, match=r"trial\.evaluation"):
            read_evaluation(path, answer_tokens=8)


def test_the_shipped_set_has_all_kinds_languages_and_temperatures() -> None:
    cases = read_evaluation(SHIPPED / "data" / "evaluation.jsonl", answer_tokens=128).cases
    assert Counter(case.kind for case in cases) == {"chat": 16, "code": 16, "edit": 16}
    assert {case.language for case in cases} == {"en", "de", "fr", "es"}
    assert sum(not case.params.is_greedy for case in cases) == 16
    warm = read_evaluation(SHIPPED / "data" / "workload.jsonl", answer_tokens=128).cases
    assert not {str(c.messages) for c in cases} & {str(c.messages) for c in warm}
