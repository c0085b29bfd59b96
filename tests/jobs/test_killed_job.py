"""A real model in float64, killed half-way: resumed, it ends with an undisturbed job's bytes."""

import json
import time
from pathlib import Path

import pytest
from commands import bulk, running, shoot

NUM_ROWS = 16


def words(model: Path, job_dir: str) -> list[str]:
    return [
        *("input=rows.jsonl", f"job_dir={job_dir}", f"model.source=path:{model}"),
        *("model.runtime=torch", "model.dtype=float64", "tracking=off"),
        *("shard_rows=2", "max_rows=2", "max_tokens=96", "beacons_dir=beacons"),
    ]


def parts(place: Path, job_dir: str) -> list[Path]:
    return sorted((place / job_dir / "parts").glob("part-*.jsonl"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half of the rows greedy, half sampled (rule coupled), some with a repeating prompt."""
    folder = tmp_path_factory.mktemp("killed")
    rows = [
        {
            "id": f"row-{index}",
            "prompt": f"Name: Ada, age: {index}. " * (1 + index % 3),
            "temperature": index % 2,
        }
        for index in range(NUM_ROWS)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.timeout(600)
def test_a_job_killed_with_its_workers_ends_with_the_same_bytes(
    place: Path, model_folder: Path, joined: None
) -> None:
    """P03: one row per id, what was done kept, the whole equal to an undisturbed run."""
    bulk(place, *words(model_folder, "whole"))
    whole = (place / "whole" / "output.jsonl").read_bytes()
    assert len(whole.splitlines()) == NUM_ROWS

    with running("bulk", place, *words(model_folder, "killed")) as killed:
        deadline = time.monotonic() + 240
        while len(parts(place, "killed")) < 3:
            assert killed.poll() is None, killed.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.02)
        shoot(killed)
    done = {path.name: path.read_bytes() for path in parts(place, "killed")}
    assert not (place / "killed" / "output.jsonl").exists()

    bulk(place, *words(model_folder, "killed"))
    assert (place / "killed" / "output.jsonl").read_bytes() == whole
    for name, content in done.items():
        assert (place / "killed" / "parts" / name).read_bytes() == content
