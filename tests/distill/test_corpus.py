"""What is learnt from is what the engine saw: ids of prompts and answers, in two parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.core import UserError
from outrider.distill.corpus import Corpus, digest_of, read_corpus
from outrider.distill.vocabulary import vocabulary_of
from outrider.models import HfTokenizer

EOS = 2
WriteJob = Callable[..., Path]
ANSWERS = ("The ferry leaves.", "A boat drifts.", "Ada, age: 36", "The boat leaves at 22:40.")


@pytest.fixture(scope="module")
def tokenizer(model_folder: Path) -> HfTokenizer:
    return HfTokenizer.load(model_folder)


def read(source: Path, tokenizer: HfTokenizer, **changes: Any) -> Corpus:
    return read_corpus(source, tokenizer, **{"max_tokens": 64, "valid_share": 0.25} | changes)


def test_a_bulk_job_gives_the_ids_that_its_engine_saw(
    tokenizer: HfTokenizer, tmp_path: Path, write_job: WriteJob
) -> None:
    corpus = read(write_job(tmp_path, tokenizer, ANSWERS, skipped=[3, 39]), tokenizer)
    found = {each.name: each for each in (*corpus.train, *corpus.valid)}
    assert set(found) == {f"q{number}" for number in range(40)} - {"q3", "q39"}
    seventh = found["q7"]
    prompt = tokenizer.encode_chat([{"role": "user", "content": "Question 7?"}])
    assert list(seventh.tokens) == [*prompt, *tokenizer.encode(ANSWERS[3]), EOS]
    assert (seventh.num_prompt, seventh.kind) == (len(prompt), "chat")
    assert list(found["q5"].tokens)[-1] != EOS, "an answer that was cut has no end"
    assert corpus.parents == {
        "weights": "w" * 64,
        "corpus_input": "d" * 64,
        "releases": "",
        "run": "",
    }
    assert not corpus.dropped


def test_parts_share_no_prompt_whatever_the_ids_and_the_order(
    tokenizer: HfTokenizer, tmp_path: Path, write_job: WriteJob
) -> None:
    rows = [{"prompt": f"Number {n % 20}", "completion": "A boat drifts."} for n in range(40)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    one = read(path, tokenizer)
    prompts = [
        {tuple(each.tokens[: each.num_prompt]) for each in part} for part in (one.train, one.valid)
    ]
    assert not prompts[0] & prompts[1]
    assert len(prompts[0]) + len(prompts[1]) == 20
    path.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    other = read(path, tokenizer)
    assert {tuple(each.tokens) for each in one.valid} == {
        tuple(each.tokens) for each in other.valid
    }


def test_an_answer_whose_text_is_not_its_tokens_is_left_out_and_counted(
    tokenizer: HfTokenizer, tmp_path: Path, write_job: WriteJob
) -> None:
    job = write_job(tmp_path, tokenizer, ANSWERS)
    lines = (job / "output.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    first["response"]["body"]["usage"]["completion_tokens"] += 1
    (job / "output.jsonl").write_text("\n".join([json.dumps(first), *lines[1:]]) + "\n")
    corpus = read(job, tokenizer)
    assert dict(corpus.dropped) == {"the answer's text becomes other tokens than were generated": 1}
    assert len(corpus.train) + len(corpus.valid) == 39


def test_rows_are_cut_and_the_digest_is_of_everything_in_them(
    tokenizer: HfTokenizer, tmp_path: Path, write_job: WriteJob
) -> None:
    job = write_job(tmp_path, tokenizer, ANSWERS)
    whole, cut = read(job, tokenizer), read(job, tokenizer, max_tokens=30)
    longest = max(len(each.tokens) for each in (*whole.train, *whole.valid))
    assert longest > 30 >= max(len(each.tokens) for each in (*cut.train, *cut.valid))
    assert whole.digest == read(job, tokenizer).digest != cut.digest
    assert digest_of(whole.train) != digest_of(whole.train[1:])
    assert len({read(job, tokenizer, limit=n).digest for n in (39, 40)}) == 2


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['{"prompt": "a"}'], "row 1 has no completion"),
        (["{"], "line 1: not JSON"),
        (['{"prompt": "a", "messages": [], "completion": "b"}'], "must have a prompt or messages"),
        (['{"prompt": "a", "completion": "A boat"}'], "too few for two parts"),
        ([], "has no answer to learn from"),
    ],
)
def test_what_can_not_be_learnt_from_is_one_line(
    lines: list[str], said: str, tokenizer: HfTokenizer, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    with pytest.raises(UserError, match=said) as refused:
        read(path, tokenizer)
    assert str(refused.value).startswith("distill.input: ")
    assert "\n" not in str(refused.value)


def test_a_folder_that_is_no_job_or_not_done_is_refused(
    tokenizer: HfTokenizer, tmp_path: Path, write_job: WriteJob
) -> None:
    with pytest.raises(UserError, match=r"it has no manifest\.json"):
        read(tmp_path, tokenizer)
    job = write_job(tmp_path, tokenizer, ANSWERS)
    (job / "output.jsonl").unlink()
    with pytest.raises(UserError, match="let the bulk job end first"):
        read(job, tokenizer)


def test_an_input_that_was_changed_since_is_refused(
    tokenizer: HfTokenizer, tmp_path: Path, write_job: WriteJob
) -> None:
    job = write_job(tmp_path, tokenizer, ANSWERS)
    asked = (tmp_path / "asked.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "asked.jsonl").write_text(asked[0])
    with pytest.raises(UserError, match="answers 'q1', which"):
        read(job, tokenizer, limit=0)


def test_the_vocabulary_is_what_is_said_most_and_the_ends(
    tokenizer: HfTokenizer, tmp_path: Path, write_job: WriteJob
) -> None:
    corpus = read(write_job(tmp_path, tokenizer, ANSWERS), tokenizer)
    answers = [
        token for each in corpus.train for token in each.tokens[each.num_prompt :] if token != EOS
    ]
    small = vocabulary_of(corpus.train, {EOS}, 4)
    assert len(small.ids) == 4
    assert EOS in small.ids
    assert list(small.ids) == sorted(small.ids)
    least = min(answers.count(token) for token in small.ids if token != EOS)
    assert all(answers.count(token) <= least for token in set(answers) - set(small.ids))
    said = sum(token in small.ids for token in answers) + sum(
        token == EOS for each in corpus.train for token in each.tokens[each.num_prompt :]
    )
    num = sum(each.num_answer for each in corpus.train)
    assert small.coverage(corpus.train) == said / num < 1
    whole = vocabulary_of(corpus.train, {EOS}, 10_000)
    assert whole.coverage(corpus.train) == 1
    assert len(whole.ids) < 10_000, "what nobody said or asked is not filled up"
