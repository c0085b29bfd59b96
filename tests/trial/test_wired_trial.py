"""`jobs/bench.py releases=[...]` on a tiny model: real Ray, real MLflow, nothing downloaded."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from outrider.config.load import load
from outrider.config.schema import BenchJob
from outrider.core import UserError
from outrider.telemetry.meters import meter_of
from outrider.tracking.fingerprint import fingerprint
from outrider.tracking.history import RecordedRun
from outrider.tracking.mlflow_history import MlflowHistory
from outrider.tracking.registry import Registry
from outrider.trial.record import TrialRecord
from outrider.trial.tables import read_observations, read_turns
from outrider.wiring.stores import registry as open_registry
from outrider.wiring.trials import make_trial

OBSERVATIONS = "observations.parquet"
TEXTS = ("The ferry leaves at 22:40.", "A boat without a rudder drifts.", "Name: Ada, age: 36")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, fresh_store: Path) -> Path:
    folder = tmp_path_factory.mktemp("trial")
    shutil.copy(fresh_store, folder / "runs.db")
    for name, count in (("prompts", 8), ("warm", 2)):
        rows = [
            {
                "id": f"{name}{i}",
                "kind": ("chat", "edit")[i % 2],
                "temperature": 0.8 * (i % 4 == 3),
                "messages": [{"role": "user", "content": f"{i}. {TEXTS[i % 3]}"}],
            }
            for i in range(count)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def uri(place: Path) -> str:
    return f"sqlite:///{place}/runs.db"


@pytest.fixture(scope="module")
def words(place: Path, uri: str, model_folder: Path) -> list[str]:
    return [
        f"model.source=path:{model_folder}",
        *("model.runtime=torch", "model.dtype=float32", "in_flight=[1,2]", "answer_tokens=10"),
        *(f"evaluation={place}/prompts.jsonl", f"trial.warmup={place}/warm.jsonl"),
        f"tracking.uri={uri}",
    ]


def measured(folder: Path, words: Sequence[str]) -> TrialRecord:
    """As the command does it, but for where its files go."""
    made = make_trial(load(BenchJob, "bench", words), words, lambda line: None)
    record = replace(made, folder=folder).run()
    made.tracker.close()
    return record


@pytest.fixture(scope="module")
def tuned(joined: None, place: Path, words: list[str]) -> TrialRecord:
    return measured(place / "tuned", ['releases=["draft=fixed length.max=2"]', *words])


@pytest.fixture(scope="module")
def runs(tuned: TrialRecord, uri: str) -> Sequence[RecordedRun]:
    return MlflowHistory(uri=uri, experiment="outrider").runs()


def test_a_release_is_measured_against_its_plain_decoding(tuned: TrialRecord, place: Path) -> None:
    assert [one.name for one in tuned.entrants] == ["plain", "draft=fixed length.max=2"]
    seen = read_observations(place / "tuned" / OBSERVATIONS)
    assert not [one for one in seen if one.error]
    assert {one.parity for one in seen if one.contender != "plain"} == {"equal"}
    assert any(one.drafted for one in seen)
    turns = read_turns(place / "tuned" / "turns.parquet")
    assert all(turn.seconds > 0 and turn.peak_memory_bytes > 0 for turn in turns)
    assert {turn.in_flight for turn in turns} == {1, 2}


def test_runs_are_found_by_the_catalogue_and_closed(
    tuned: TrialRecord, runs: Sequence[RecordedRun]
) -> None:
    assert {run.status for run in runs} == {"FINISHED"}
    (parent,) = [run for run in runs if run.kind == "bench"]
    children = [run for run in runs if run.kind == "contender"]
    assert {run.parent_id for run in children} == {parent.run_id}
    assert {(run.name, run.params["in_flight"]) for run in children} == {
        (one.name, number) for one in tuned.entrants for number in ("1", "2")
    }
    for run in children:
        assert run.metrics
        assert not [name for name in run.metrics if meter_of(name) is None]
        assert run.tags["evaluation.sha256"] == tuned.evaluation_sha256
    assert all("speedup_ratio_low" in run.metrics for run in children if run.tags["baseline"])
    assert parent.tags["criteria.sha256"] == tuned.criteria_sha256 == fingerprint(tuned.criteria)


def test_the_record_can_be_fetched_from_the_store(
    tuned: TrialRecord, runs: Sequence[RecordedRun], uri: str, tmp_path: Path
) -> None:
    (parent,) = [run for run in runs if run.kind == "bench"]
    path = MlflowHistory(uri=uri, experiment="outrider").fetch(
        parent.run_id, "trial.json", tmp_path
    )
    assert TrialRecord.from_json(path.read_text()).to_json() == tuned.to_json()


@pytest.fixture(scope="module")
def registry(tuned: TrialRecord, words: list[str]) -> Registry:
    return open_registry(load(BenchJob, "bench", words).tracking)


def test_what_was_registered_is_confirmed_on_other_prompts(
    tuned: TrialRecord, registry: Registry, place: Path, words: list[str]
) -> None:
    (version,) = registry.versions()
    assert version.number == tuned.entrants[1].version
    assert version.fingerprint == tuned.entrants[1].fingerprint

    shared = [word for word in words if not word.startswith(("model.", "in_flight"))]
    line = [f"releases=[{version.uri}]", "part=confirmation", "in_flight=[1]", *shared]
    record = measured(place / "confirmed", line)
    assert record.entrants[1].fingerprint == version.fingerprint, "the very same release"
    assert record.part == "confirmation"
    (version,) = registry.versions()
    assert len(version.tags[f"confirmation.{tuned.evaluation_sha256[:12]}"].split(",")) == 1
    seen, confirmed = (
        {one.case.partition("#")[0] for one in read_observations(place / name / OBSERVATIONS)}
        for name in ("tuned", "confirmed")
    )
    assert seen
    assert confirmed
    assert not seen & confirmed


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["num_repeats=3"], "num_repeats=3: bench.num_repeats says nothing"),
        (["part=confirmation", "tracking.enabled=false"], r"trial\.part=confirmation"),
        (["evaluation=none.jsonl"], r"trial\.evaluation: none\.jsonl"),
    ],
)
def test_what_can_not_be_meant_is_one_line(words: list[str], more: list[str], said: str) -> None:
    line = ['releases=["draft=ngram"]', *words, *more]
    with pytest.raises(UserError, match=said):
        make_trial(load(BenchJob, "bench", line), line, lambda _: None).run()
