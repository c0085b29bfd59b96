"""`python jobs/sweep.py` from the outside: killed half-way, gone on with, over."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import finished, running, shoot

from outrider import wiring
from outrider.config.load import load
from outrider.config.schema import BenchJob, SweepJob
from outrider.core import UserError
from outrider.tracking.mlflow_history import MlflowHistory
from outrider.wiring.trials import make_trial

TEXTS = ("The ferry leaves at 22:40.", "A boat without a rudder drifts.", "Name: Ada, age: 36")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, fresh_store: Path) -> Path:
    folder = tmp_path_factory.mktemp("sweep")
    shutil.copy(fresh_store, folder / "runs.db")
    for name, count in (("prompts", 12), ("warm", 2)):
        rows = [
            {
                "id": f"{name}{i}",
                "kind": ("chat", "edit")[i % 2],
                "messages": [{"role": "user", "content": f"{i}. {TEXTS[i % 3]}"}],
            }
            for i in range(count)
        ]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def words(place: Path, model_folder: Path) -> list[str]:
    return [
        *(f"folder={place}/found", "first_prompts=2", "trial.confirmation_share=0.25"),
        'axes=["draft=none,fixed","draft.length.max=1,2"]',
        *(f"evaluation={place}/prompts.jsonl", f"trial.warmup={place}/warm.jsonl"),
        *("in_flight=2", "answer_tokens=24", "min_speedup=0.01"),
        f"tracking.uri=sqlite:///{place}/runs.db",
        *(f"model.source=path:{model_folder}", "model.runtime=torch", "model.dtype=float32"),
    ]


def progress(place: Path) -> dict[str, Any]:
    path = place / "found" / "sweep.json"
    return json.loads(path.read_text())["progress"] if path.exists() else {"rungs": []}


@pytest.mark.timeout(600)
def test_a_killed_search_goes_on_in_its_run_and_says_what_to_confirm(
    place: Path,
    model_folder: Path,
    words: list[str],
    cluster: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with running("sweep", place, *words, address=cluster.address) as killed:
        deadline = time.monotonic() + 240
        while not progress(place)["rungs"]:
            assert killed.poll() is None, killed.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
        shoot(killed)  # its engines end with it: Ray sees to that
    run_id, first = progress(place)["run_id"], place / "found" / "rung-1.group-1"
    assert progress(place)["outcome"] is None
    measured = {path: path.read_bytes() for path in first.iterdir()}

    shown, errors = finished("sweep", place, *words, address=cluster.address)
    assert all(path.read_bytes() == was for path, was in measured.items())
    assert "rung 1: 2 candidates, 2 prompts" in shown
    assert "opening" in errors

    runs = MlflowHistory(uri=f"sqlite:///{place}/runs.db", experiment="outrider").runs()
    (parent,) = [run for run in runs if run.kind == "sweep"]
    assert (parent.run_id, parent.status) == (run_id, "FINISHED")
    assert not [name for name in parent.tags if name.startswith("resumed.")]
    children = [run for run in runs if run.kind == "contender"]
    assert {run.parent_id for run in children} == {run_id}
    noted = [(run.name, run.tags["rung"]) for run in children]
    assert len(set(noted)) == len(noted), "no rung is recorded twice"

    written = yaml.safe_load((place / "found" / "recommended.yaml").read_text())
    assert written["config"]["model"]["source"] == f"path:{model_folder}"
    outcome = progress(place)["outcome"]
    if outcome["version"] is None:  # which of them is fast is not for a test to say
        assert "recommended: plain decoding" in shown
    else:
        confirm = shown.split("confirm it: ")[1].strip()
        assert f"releases=['models:/outrider/{outcome['version']}']" in confirm
        typed = shlex.split(confirm)[2:]
        trial = make_trial(load(BenchJob, "bench", typed), typed, lambda line: None)
        assert trial.contenders[1].release.fingerprint == outcome["fingerprint"], "it is the same"
        assert parent.tags["release.version"] == str(outcome["version"])
        assert parent.metrics["speedup_ratio"] == outcome["speedup"]["value"]

    capsys.readouterr()
    assert wiring.sweep(load(SweepJob, "sweep", words), words) == 0
    again = capsys.readouterr()
    assert again.out == shown
    assert "is over: nothing is measured" in again.err
    assert "opening" not in again.err

    other = [*words, "keep_ratio=0.3"]
    with pytest.raises(UserError, match=r"another sweep\.keep_ratio: name another folder"):
        wiring.sweep(load(SweepJob, "sweep", other), other)
