"""On a cluster: the same lines, the same features, and the same head up to rounding."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file
from toy_target import NotedTarget, ScriptedTarget

from outrider import wiring
from outrider.config.load import load
from outrider.config.schema import DistillJob
from outrider.core import Fault, SystemClock, UserError
from outrider.distill.backend import Backend, OneProcess
from outrider.distill.corpus import Example, read_corpus
from outrider.distill.feature_cache import SHARD_ROWS, FeatureCache
from outrider.distill.job import Distillation
from outrider.distill.material import FeatureOrder
from outrider.distill.texts import file_lines
from outrider.distill.training import Trainer
from outrider.models import HfTokenizer
from outrider.testing import MemoryRun, MemoryTracker
from outrider.tracking.provenance import Code, Hardware, Provenance
from outrider.tracking.tracker import RunStatus
from outrider.wiring.distillation import target_of

# Ray Data 2.60 sets fields of its own that it deprecates when it copies its context.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context"),
    pytest.mark.filterwarnings("ignore:`target_shuffle_max_block_size` is deprecated"),
]

PATIENCE_S = 120.0
NUM_ROWS = 2 * SHARD_ROWS + 20
PROVENANCE = Provenance(
    code=Code(revision="r1"), hardware=Hardware(), python="3", platform="here", packages={}
)


@pytest.fixture(autouse=True)
def joined(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever starts a Ray joins that of the tests. One thread, as workers are told below."""
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def two_workers() -> Backend:
    from outrider.distill.ray_backend import RayBackend

    return RayBackend(2)


# What is read


STRANGE = ["plain", "", "a\u2028b", "c\u0085d\x0be", "long " * 40, "  ", "\u00c5\u2026"]


def test_lines_are_those_of_the_file_in_its_order(tmp_path: Path) -> None:
    from outrider.distill.ray_lines import ray_lines

    whole, open_end, empty = (tmp_path / name for name in ("whole", "open", "empty"))
    whole.write_text("".join(f"{text}\n" for text in STRANGE * 3), encoding="utf-8")
    open_end.write_bytes(b"\n\nx\r\ny")
    empty.touch()
    with two_workers().session(tmp_path / "ray.log"):
        for path, size in ((whole, 150), (whole, 2**20), (open_end, 3), (empty, 3)):
            found = list(ray_lines(path, range_bytes=size))
            assert found == list(file_lines(path)), (path.name, size)


def test_a_bad_line_is_refused_as_on_one_machine(tmp_path: Path, taught_folder: Path) -> None:
    from outrider.distill.ray_lines import ray_lines

    path = write_rows(tmp_path / "rows.jsonl", 9)
    path.write_bytes(path.read_bytes() + b"\n{no JSON}\n" + path.read_bytes())
    lines = partial(ray_lines, range_bytes=300)
    read = partial(
        read_corpus, path, HfTokenizer.load(taught_folder), max_tokens=64, valid_share=0.5
    )
    with pytest.raises(UserError) as alone:
        read()
    with two_workers().session(tmp_path / "ray.log"):
        with pytest.raises(UserError) as together:
            read(lines=lines)
        with pytest.raises(UserError, match=r"^distill\.input: cannot read .*: No such file"):
            read_corpus(
                tmp_path / "none",
                HfTokenizer.load(taught_folder),
                max_tokens=64,
                valid_share=0.5,
                lines=lines,
            )
    assert str(together.value) == str(alone.value)
    assert "line 11: not JSON" in str(alone.value)


def write_rows(path: Path, num_rows: int) -> Path:
    with path.open("w", encoding="utf-8") as out:
        for number in range(num_rows):
            said = "A boat without a rudder drifts. Name: Ada, age: 36. "[number % 7 :]
            row = {"id": f"r{number}", "prompt": f"The ferry {number}", "completion": said}
            out.write(json.dumps(row) + "\n")
    return path


# What is computed


def order_of(folder: Path, notes: Path) -> FeatureOrder:
    """Four shards, each of one forward."""
    notes.mkdir()
    rows = [
        Example(f"e{number}", "", array("i", [(number + at) % 40 for at in range(9)]), 4)
        for number in range(3 * SHARD_ROWS + 5)
    ]
    return FeatureOrder(
        cache=FeatureCache(folder, {"corpus": "c"}, rows, 3, "float32"),
        target=ScriptedTarget(notes, notes / "wedge"),
        layers=(0,),
        most_tokens=4096,
        device=torch.device("cpu"),
    )


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("shard-*"))}


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)


def test_a_killed_actor_costs_its_shard_and_the_features_stay_the_same(tmp_path: Path) -> None:
    alone = order_of(tmp_path / "alone", tmp_path / "here")
    OneProcess().fill(alone, lambda: None)
    order = order_of(tmp_path / "together", tmp_path / "notes")
    killer, told = killer_of_one(tmp_path / "notes"), list[int]()
    backend = two_workers()
    with backend.session(tmp_path / "ray.log"):
        backend.fill(order, lambda: told.append(len(order.cache.missing)))
        killer.join()
        before = notes_of(tmp_path / "notes")
        backend.fill(order, lambda: told.append(-1))
    assert shards(tmp_path / "together") == shards(tmp_path / "alone")
    assert len(shards(tmp_path / "alone")) == len(told) == 4
    assert told[-1] == 0
    assert notes_of(tmp_path / "notes") == before, "what is written is not computed again"
    assert len(before) == 3, "two actors, and one in the place of the one that was killed"
    assert sum(map(len, before)) == 4 + 1, "a forward for each shard, and that which was lost"


def notes_of(folder: Path) -> list[str]:
    """What each process left."""
    return [each.read_text() for each in sorted(folder.iterdir())]


# What is learnt


def distillation(
    root: Path,
    name: str,
    model: Path,
    *more: str,
    tracker: MemoryTracker | None = None,
    backend: Backend | None = None,
    notes: Path | None = None,
    said: io.StringIO | None = None,
) -> Distillation:
    given = [
        *(f"input={root}/rows.jsonl", f"head_dir={root}/{name}", f"model.source=path:{model}"),
        *("model.runtime=torch", "model.dtype=float32", "model.num_threads=1"),
        *("valid_share=0.2", "max_tokens=64", "batch_tokens=512", "train_dtype=float32"),
        *("num_steps=3", "learning_rate=0.01", "num_epochs=2", "eval_updates=10"),
        *(f"features_dir={root}/features", *more),
    ]
    job, console = load(DistillJob, "distill", given), Console(file=said or io.StringIO())
    target = target_of(job.model, root / "cache", console)
    if notes is not None:
        target = replace(target, open=NotedTarget(target.open, notes, os.getpid()))
    return Distillation(
        job=job,
        target=target,
        tracker=tracker or MemoryTracker(),
        registry=None,
        provenance=PROVENANCE,
        words=given,
        cache_dir=root / "cache",
        clock=SystemClock(),
        console=console,
        backend=backend or OneProcess(),
    )


@pytest.fixture(scope="module")
def alone(taught_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder with the rows and a head that one process has learnt; its report."""
    root = tmp_path_factory.mktemp("alone")
    write_rows(root / "rows.jsonl", NUM_ROWS)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    report, _ = distillation(root, "alone", taught_folder).run()
    torch.set_num_threads(threads)
    return root, report


def assert_same_head(root: Path, name: str) -> None:
    """Weights before they are shortened: those of the best head in the checkpoint."""
    ours, theirs = (
        load_file(root / each / "training" / "checkpoint.safetensors") for each in (name, "alone")
    )
    assert ours.keys() == theirs.keys()
    for key, weight in theirs.items():
        torch.testing.assert_close(ours[key], weight, atol=1e-5, rtol=1e-4)


def test_two_workers_learn_the_head_of_one_process(
    alone: tuple[Path, Any], taught_folder: Path
) -> None:
    root, report = alone
    tracker = MemoryTracker()
    apart = f"features_dir={root}/features-of-both"
    job = distillation(root, "both", taught_folder, apart, tracker=tracker, backend=two_workers())
    found, _ = job.run()
    [features] = (root / "features-of-both").iterdir()
    assert shards(features) == shards(root / "features" / features.name)
    assert len(shards(features)) == 3
    assert_same_head(root, "both")
    assert (found.num_updates, found.best_update) == (report.num_updates, report.best_update)
    assert found.metrics == pytest.approx(report.metrics, abs=1e-3)
    [run] = tracker.runs
    assert run.status is RunStatus.FINISHED
    assert [step for step, _, _ in run.windows][-1] == report.num_updates
    assert not (Path.home() / "ray_results" / "distill").exists()


def test_what_was_killed_or_stopped_goes_on_from_its_checkpoint_wherever_it_is(
    alone: tuple[Path, Any], taught_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, report = alone
    tracker, said = MemoryTracker(), io.StringIO()
    make = partial(distillation, root, "killed", taught_folder, tracker=tracker, said=said)
    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_learn", stopped_after(11, Trainer._learn))
        with pytest.raises(KeyboardInterrupt):
            make().run()

    killer = killer_of_one(tmp_path)
    with pytest.raises(Fault) as lost:
        make(backend=two_workers(), notes=tmp_path).run()
    killer.join()
    [line] = str(lost.value).splitlines()
    assert line.startswith("a worker of the training was lost (")
    assert line.endswith("): the same command goes on from the last checkpoint")

    told: list[int] = []

    def stop(*_: object, step: int, **__: object) -> None:
        told.append(step)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MemoryRun, "log_window", stop)
        with pytest.raises(KeyboardInterrupt):
            make(backend=two_workers()).run()
    assert told == [report.num_updates], "the judgement at 10 was not made again"
    assert [run.status for run in tracker.runs] == [RunStatus.KILLED]
    assert said.getvalue().count("the same command goes on") == 2

    make().run()
    assert tracker.runs[0].status is RunStatus.FINISHED
    assert_same_head(root, "killed")


def stopped_after(calls: int, done: Callable[..., Any]) -> Callable[..., Any]:
    """`done`, until it was called so often: then Ctrl-C comes."""
    left = [calls]

    def call(*arguments: object) -> Any:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return done(*arguments)

    return call


def killer_of_one(notes: Path) -> threading.Thread:
    """Ends one of two workers that wait, as `NotedTarget` makes them; then the other goes on."""
    wedge = notes / "wedge"
    wedge.touch()

    def pids() -> list[int]:
        return [int(each.name) for each in notes.iterdir() if each.name.isdigit()]

    def kill() -> None:
        try:
            wait_for(lambda: len(pids()) == 2)
            os.kill(pids()[0], signal.SIGKILL)
        finally:
            wedge.unlink()

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


@pytest.mark.parametrize(("kind", "raised"), [("fault", Fault), ("user_error", UserError)])
def test_what_stops_a_worker_is_raised_as_it_was_said(kind: str, raised: type[Exception]) -> None:
    from outrider.distill.ray_training import read

    with pytest.raises(raised, match=r"^the loss is not a number$"):
        read({kind: "the loss is not a number"}, print, print)


# What is refused


def test_workers_need_a_cluster_and_room(
    alone: tuple[Path, Any], taught_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [f"input={alone[0]}/rows.jsonl", f"head_dir={tmp_path}/h", "tracking=off"]
    given += [f"model.source=path:{taught_folder}", "num_workers=9"]
    with pytest.raises(UserError, match=r"^distill\.num_workers=9: the cluster has 4 cores"):
        wiring.distill(load(DistillJob, "distill", given), given)
    monkeypatch.delenv("RAY_ADDRESS")
    with pytest.raises(UserError, match=r"^distill\.num_workers=9 needs a cluster: set RAY_ADD"):
        wiring.distill(load(DistillJob, "distill", given), given)
