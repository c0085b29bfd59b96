"""`python jobs/bulk.py` from the outside: a file goes in, a folder comes out."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import bulk, finished
from mlflow import MlflowClient

from outrider.bulk.glance import JobState, all_jobs

TURNS = ["The ferry leaves at 22:40.", "Name: Ada, age: 36\nName: Ada,", "A boat", "Drifts"]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, fresh_store: Path) -> Path:
    folder = tmp_path_factory.mktemp("bulk")
    shutil.copy(fresh_store, folder / "runs.db")
    rows = [{"id": f"row-{index}", "prompt": turn} for index, turn in enumerate(TURNS)]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "my.jsonl").write_text(text + "not JSON\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def words(place: Path, model_folder: Path) -> list[str]:
    return [
        "input=my.jsonl",
        "job_dir=out",
        f"model.source=path:{model_folder}",
        *("model.runtime=torch", "model.dtype=float32", "max_tokens=12", "baseline=all"),
        *(f"tracking.uri=sqlite:///{place}/runs.db", f"beacons_dir={place}/beacons"),
    ]


def test_a_file_goes_in_and_a_folder_comes_out(
    place: Path,
    words: list[str],
    joined: None,
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    said, _ = finished("bulk", place, *words)
    output = (place / "out" / "output.jsonl").read_bytes()
    assert [json.loads(line)["custom_id"] for line in output.splitlines()] == [
        f"row-{index}" for index in range(len(TURNS))
    ]
    assert len((place / "out" / "errors.jsonl").read_text().splitlines()) == 1
    report = json.loads((place / "out" / "report.json").read_text())
    assert (report["num_rows_done"], report["num_rows_failed"]) == (len(TURNS), 1)
    assert report["parity"]["num_mismatches"] == 0
    assert report["run_id"] in said
    assert "mlflow ui --backend-store-uri" in said
    (seen,) = all_jobs(place / "beacons")
    assert (seen.state, seen.num_rows_done) == (JobState.FINISHED, len(TURNS))

    bulk(place, *words)
    assert "nothing to do" in capsys.readouterr().err
    assert (place / "out" / "output.jsonl").read_bytes() == output

    monkeypatch.chdir(place)
    assert "sampling.temperature" in refused("bulk", *words, "temperature=0.7")
    assert (place / "out" / "output.jsonl").read_bytes() == output

    # A run's params are immutable: another configuration is another run.
    bulk(place, *words, "temperature=0.7", "new_attempt=true")
    later = json.loads((place / "out" / "report.json").read_text())
    client = MlflowClient(f"sqlite:///{place}/runs.db")
    runs = [client.get_run(each["run_id"]) for each in (report, later)]
    assert [run.data.params["sampling.temperature"] for run in runs] == ["0.0", "0.7"]
    assert [run.info.status for run in runs] == ["FINISHED", "FINISHED"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ("input=nowhere.jsonl", "outrider: bulk.input: no file nowhere.jsonl"),
        ("model.source=path:nowhere", "outrider: model.source: "),
        ("tracking.uri=sqlite:///relative.db", "outrider: tracking.uri="),
    ],
)
def test_what_is_not_there_is_one_line(
    place: Path,
    words: list[str],
    refused: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    changed: str,
    said: str,
) -> None:
    monkeypatch.chdir(place)
    assert refused("bulk", *words, changed, "job_dir=never").startswith(said)
    assert not (place / "never").exists()
