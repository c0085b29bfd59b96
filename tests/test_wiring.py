"""Settings become the objects that they describe, in this process or another."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from outrider.bulk.ports import ChatTokenizer, Decoder
from outrider.config.load import load
from outrider.config.schema import BenchJob, BulkJob, DrafterKind
from outrider.core import Completion, Request, SamplingParams, UserError
from outrider.engine.head import save_head
from outrider.models import resolve
from outrider.testing import toy_head
from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.tracker import NoTracker
from outrider.wiring import bench, engine_recipe, tracker
from outrider.wiring.shipped import with_shipped_head

TURNS = ["The ferry leaves at 22:40. The ferry", "Name: Ada, age: 36\nName: Ada,"]


def settings(*words: str) -> BulkJob:
    return load(BulkJob, "bulk", ["input=a.jsonl", "job_dir=out", *words])


def exact(folder: Path, *words: str) -> BulkJob:
    """The slow way that has no rounding to speak of."""
    return settings(
        f"model.source=path:{folder}",
        *("model.runtime=torch", "model.dtype=float64", "model.num_threads=1"),
        *words,
    )


def generate(engine: tuple[Decoder, ChatTokenizer], max_tokens: int = 24) -> list[Completion]:
    decoder, tokenizer = engine
    params = [SamplingParams(max_tokens=max_tokens), SamplingParams(temperature=1.0, seed=3)]
    try:
        answers = [
            decoder.submit(
                Request(
                    request_id=f"r{index}",
                    prompt_ids=tuple(tokenizer.encode_chat([{"role": "user", "content": turn}])),
                    params=replace(params[index], max_tokens=max_tokens, ignore_eos=True),
                )
            )
            for index, turn in enumerate(TURNS)
        ]
        return [answer.result(timeout=60) for answer in answers]
    finally:
        decoder.close()


def tokens(completions: list[Completion]) -> list[tuple[int, ...]]:
    return [completion.token_ids for completion in completions]


@pytest.mark.parametrize("draft", ["ngram", "fixed", "model", "composite_model"])
def test_whoever_drafts_the_tokens_are_those_of_plain_decoding(
    draft: str, model_folder: Path, draft_folder: Path, tmp_path: Path
) -> None:
    words = [f"draft={draft}"]
    if draft in ("model", "composite_model"):
        words += [f"draft.model.source=path:{draft_folder}", "draft.model.runtime=torch"]
        words += ["draft.model.dtype=float64", "draft.length.policy=fixed", "draft.length.max=4"]
    plain = generate(engine_recipe(exact(model_folder, "draft=none"), tmp_path)())
    drafted = generate(engine_recipe(exact(model_folder, *words), tmp_path)())
    assert tokens(drafted) == tokens(plain)
    assert [len(ids) for ids in tokens(plain)] == [24, 24]
    assert sum(completion.counters.drafted for completion in plain) == 0
    assert sum(completion.counters.drafted for completion in drafted) > 0


def write_head(folder: Path, model_folder: Path, **changes: str) -> Path:
    """A random head for the model in `model_folder`."""
    files = resolve(f"path:{model_folder}", cache_dir=folder / "cache", notice=lambda line: None)
    config = json.loads((model_folder / "config.json").read_text())
    digests = {
        "target_weights": files.weights_digest,
        "target_tokenizer": files.tokenizer_digest,
        **changes,
    }
    head = toy_head(vocab_size=config["vocab_size"], hidden_size=config["hidden_size"], **digests)
    save_head(head, folder / "head")
    return folder / "head"


@pytest.mark.parametrize("draft", ["head", "composite"])
def test_a_head_drafts_and_the_tokens_are_those_of_plain_decoding(
    draft: str, model_folder: Path, tmp_path: Path
) -> None:
    head = write_head(tmp_path, model_folder)
    words = [f"draft={draft}", f"draft.head.source=path:{head}", "draft.length.policy=fixed"]
    plain = generate(engine_recipe(exact(model_folder, "draft=none"), tmp_path)())
    decoder, tokenizer = engine_recipe(exact(model_folder, *words), tmp_path)()
    drafted = generate((decoder, tokenizer))
    assert tokens(drafted) == tokens(plain)
    assert sum(completion.counters.drafted for completion in drafted) > 0


def test_auto_is_the_shipped_head_or_prompt_lookup_alone(
    model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = write_head(tmp_path, model_folder)
    job = exact(model_folder, "draft=composite")
    found = with_shipped_head(job.model, job.draft, "", head.parent)
    assert found.head.source == "shipped:head"
    assert found.drafter is DrafterKind.COMPOSITE
    assert capsys.readouterr().err == ""
    alone = with_shipped_head(job.model, job.draft, "", tmp_path / "nothing")
    assert (alone.drafter, alone.head.source) == (DrafterKind.NGRAM, "")
    assert f"no draft head is shipped for path:{model_folder}: " in capsys.readouterr().err
    job = exact(model_folder, "draft=head")
    with pytest.raises(UserError, match=r"^draft\.head\.source=auto: no draft head is shipped for"):
        with_shipped_head(job.model, job.draft, "", tmp_path / "nothing")


def test_a_head_of_another_model_is_refused(model_folder: Path, tmp_path: Path) -> None:
    head = write_head(tmp_path, model_folder, target_weights="another's")
    words = ("draft=head", f"draft.head.source=path:{head}")
    with pytest.raises(UserError, match=r"^draft\.head\.source: .*: a head of another model"):
        engine_recipe(exact(model_folder, *words), tmp_path)()


def test_a_recipe_gives_the_same_engine_in_another_process(
    model_folder: Path, tmp_path: Path
) -> None:
    recipe = engine_recipe(exact(model_folder), tmp_path)
    again = pickle.loads(pickle.dumps(recipe))
    assert again == recipe
    assert tokens(generate(again())) == tokens(generate(recipe()))


def test_a_draft_with_other_tokens_is_refused(
    model_folder: Path, foreign_folder: Path, tmp_path: Path
) -> None:
    words = ("draft=model", f"draft.model.source=path:{foreign_folder}")
    recipe = engine_recipe(exact(model_folder, *words, "draft.model.runtime=torch"), tmp_path)
    with pytest.raises(UserError, match=r"^draft\.model\.source: \d+ tokens of the draft differ"):
        recipe()


def test_a_trace_is_on_disk_when_the_answers_are_there(model_folder: Path, tmp_path: Path) -> None:
    job = exact(model_folder, "trace=true", f"job_dir={tmp_path / 'out'}")
    decoder, tokenizer = engine_recipe(job, tmp_path)()
    answer = decoder.submit(
        Request(
            request_id="r",
            prompt_ids=tuple(tokenizer.encode(TURNS[0])),
            params=SamplingParams(max_tokens=16, ignore_eos=True),
        )
    ).result(timeout=60)
    rounds = pq.read_table(tmp_path / "out" / "trace").to_pylist()
    assert len(rounds) == answer.counters.num_rounds
    assert sum(len(each["drafted"]) for each in rounds) == answer.counters.drafted
    assert sum(each["length_after"] - each["length_before"] for each in rounds) == 16
    assert all(len(each["p"]) == len(each["q"]) == len(each["drafted"]) for each in rounds)
    decoder.close()


def test_nothing_is_traced_unless_asked(model_folder: Path, tmp_path: Path) -> None:
    job = exact(model_folder, f"job_dir={tmp_path / 'out'}")
    generate(engine_recipe(job, tmp_path)(), max_tokens=4)
    assert not (tmp_path / "out").exists()


def test_a_worker_runs_on_the_cores_it_was_given(tmp_path: Path) -> None:
    given = engine_recipe(settings("cpus_per_worker=3"), tmp_path)
    assert given.model.num_threads == 3
    chosen = engine_recipe(settings("cpus_per_worker=3", "model.num_threads=2"), tmp_path)
    assert chosen.model.num_threads == 2


def test_tracking_is_on_or_off(tmp_path: Path) -> None:
    assert isinstance(tracker(settings("tracking=off").tracking), NoTracker)
    uri = f"sqlite:///{tmp_path}/runs.db"
    on = tracker(settings(f"tracking.uri={uri}").tracking)
    assert isinstance(on, MlflowTracker)
    assert uri in on.open_command
    with pytest.raises(UserError, match=r"^tracking\.uri="):
        tracker(settings("tracking.uri=sqlite:///runs.db").tracking)


def test_prompts_to_confirm_with_need_releases_to_confirm() -> None:
    with pytest.raises(UserError, match=r"^trial\.part=confirmation needs releases"):
        bench(load(BenchJob, "bench", ["part=confirmation"]))
