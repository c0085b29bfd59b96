"""A whole distillation on a tiny target: learnt, interrupted, recorded, drafted with."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from outrider import wiring
from outrider.config.load import load
from outrider.config.schema import BulkJob, DistillJob
from outrider.core import Completion, Fault, Request, SamplingParams, SystemClock, UserError
from outrider.distill import feature_cache
from outrider.distill.job import Distillation
from outrider.distill.report import DistillReport
from outrider.distill.training import Trainer
from outrider.engine.head import load_head
from outrider.models import HfTokenizer
from outrider.testing import MemoryRun, MemoryTracker
from outrider.tracking.heads import HeadVersion
from outrider.tracking.provenance import Code, Hardware, Provenance
from outrider.tracking.tracker import RunStatus
from outrider.wiring.distillation import target_of

PROVENANCE = Provenance(
    code=Code(revision="r1"), hardware=Hardware(), python="3", platform="here", packages={}
)
EXACT = ("model.runtime=torch", "model.dtype=float32", "model.num_threads=1")


class MemoryHeads:
    """A `HeadRegistry` that stays in memory."""

    def __init__(self, *, is_away: bool = False) -> None:
        self.is_away = is_away
        self.known: dict[str, dict[str, str]] = {}

    def register(
        self, folder: Path, fingerprint: str, tags: dict[str, str], run_id: str
    ) -> HeadVersion:
        if self.is_away:
            raise Fault("the registry is away")
        self.known[fingerprint] = {**tags, "run": run_id}
        return HeadVersion(number=len(self.known), alias="champion")


def words(source: Path, head_dir: Path, target: Path, *more: str) -> list[str]:
    return [
        *(f"input={source}", f"head_dir={head_dir}", f"model.source=path:{target}"),
        *EXACT,
        *("valid_share=0.2", "max_tokens=64", "batch_tokens=256", "train_dtype=float32"),
        *("num_steps=3", "learning_rate=0.01", "num_epochs=10", "eval_updates=20"),
        *more,
    ]


def distillation(
    given: Sequence[str],
    cache_dir: Path,
    tracker: MemoryTracker | None = None,
    heads: MemoryHeads | None = None,
    said: io.StringIO | None = None,
) -> Distillation:
    job = load(DistillJob, "distill", given)
    console = Console(file=said or io.StringIO(), width=200)
    return Distillation(
        job=job,
        target=target_of(job.model, cache_dir, console),
        tracker=tracker or MemoryTracker(),
        registry=heads,
        provenance=PROVENANCE,
        words=given,
        cache_dir=cache_dir,
        clock=SystemClock(),
        console=console,
    )


@pytest.fixture(scope="module")
def done(
    taught_folder: Path, answers: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, DistillReport, MemoryRun, MemoryHeads]:
    """The folder that was made, and what was recorded."""
    place, tracker, heads = tmp_path_factory.mktemp("done"), MemoryTracker(), MemoryHeads()
    given = words(answers, place / "head", taught_folder)
    report, source = distillation(given, place / "cache", tracker, heads).run()
    assert source == "mlflow:models:/outrider-draft/1"
    return place, report, tracker.runs[0], heads


def test_a_head_learns_to_agree_with_its_target(
    done: tuple[Path, DistillReport, MemoryRun, MemoryHeads], taught_folder: Path
) -> None:
    place, report, _, _ = done
    assert report.metrics["agreement_ratio_1"] > 0.9
    assert report.metrics["tokens_per_round_3"] > 3
    assert report.coverage_ratio == 1
    assert DistillReport.load(place / "head" / "report.json") == report
    target = target_of(
        load(DistillJob, "distill", words(place, place, taught_folder)).model,
        place / "cache",
        Console(file=io.StringIO()),
    )
    head = load_head(place / "head", target.files)
    assert head.config.provenance["lineage.weights"] == target.files.weights_digest
    assert head.config.feature_layers == report.feature_layers == (0, 1)


def test_the_card_tells_what_a_reader_asks(
    done: tuple[Path, DistillReport, MemoryRun, MemoryHeads], taught_folder: Path
) -> None:
    place, report, _, _ = done
    said = (place / "head" / "README.md").read_text()
    assert said.startswith("---\nlicense: unknown\n")
    assert f"# A draft head for path:{taught_folder}\n" in said
    assert "on layers 0 and 1 of its target" in said
    assert "python jobs/distill.py " in said
    for value in (str(report.num_answer_tokens), *report.parents.values()):
        assert value in said
    assert f"| 1 | {report.metrics['agreement_ratio_1']:.1%} |" in said
    assert "{" not in said


def test_the_run_has_the_course_the_result_and_the_parents(
    done: tuple[Path, DistillReport, MemoryRun, MemoryHeads],
) -> None:
    _, report, run, heads = done
    assert (run.kind, run.status) == ("distill", RunStatus.FINISHED)
    steps = [step for step, _, _ in run.windows]
    assert steps == sorted(steps)
    assert len(steps) > 2
    assert {"train_loss", "learning_rate", "agreement_ratio_8"} <= run.windows[0][2].keys()
    assert run.final["agreement_ratio_1"] == report.metrics["agreement_ratio_1"]
    names = {"head/config.json", "head/model.safetensors", "head/README.md", "head/report.json"}
    assert names <= run.artifacts.keys()
    assert run.params["distill.num_steps"] == "3"
    told = heads.known[report.fingerprint]
    assert told["run"] == run.run_id
    for name in ("lineage.source_data", "lineage.weights", "lineage.tokenizer", "code.revision"):
        assert told[name] == run.tags[name]
    assert run.tags["head.version"] == "1"


def test_what_is_done_is_not_done_again_but_registered_where_it_was_not(
    done: tuple[Path, DistillReport, MemoryRun, MemoryHeads],
    taught_folder: Path,
    answers: Path,
    tmp_path: Path,
) -> None:
    place, report, _, _ = done
    shutil.copytree(place / "head", tmp_path / "head")
    given = words(answers, tmp_path / "head", taught_folder, f"features_dir={tmp_path}/none")
    before = {path: path.read_bytes() for path in (tmp_path / "head").iterdir() if path.is_file()}
    said, away = io.StringIO(), MemoryHeads(is_away=True)
    found, source = distillation(given, place / "cache", heads=away, said=said).run()
    assert (found, source) == (report, f"path:{tmp_path}/head")
    assert "nothing to learn" in said.getvalue()
    assert "not registered: the registry is away" in said.getvalue()
    heads = MemoryHeads()
    distillation(given, place / "cache", heads=heads).run()
    assert list(heads.known) == [report.fingerprint]
    assert all(path.read_bytes() == was for path, was in before.items())
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("where", ["features", "training"])
def test_what_was_interrupted_ends_in_the_same_head(
    where: str,
    done: tuple[Path, DistillReport, MemoryRun, MemoryHeads],
    taught_folder: Path,
    answers: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place, report, _, _ = done
    given = words(answers, tmp_path / "head", taught_folder)
    tracker, said = MemoryTracker(), io.StringIO()
    with monkeypatch.context() as breaking:
        breaking.setattr(feature_cache, "SHARD_ROWS", 16)
        cut = {
            "features": (feature_cache.FeatureCache, "_write", 1),
            "training": (Trainer, "_learn", 30),
        }[where]
        breaking.setattr(cut[0], cut[1], interrupted_after(cut[2], getattr(cut[0], cut[1])))
        with pytest.raises(KeyboardInterrupt):
            distillation(given, tmp_path / "cache", tracker, said=said).run()
    assert tracker.runs[0].status is RunStatus.KILLED
    assert f"what is done is kept in {tmp_path}/head: the same command goes on" in said.getvalue()
    monkeypatch.setattr(feature_cache, "SHARD_ROWS", 16)
    found, _ = distillation(given, tmp_path / "cache", tracker).run()
    assert len(tracker.runs) == 1, "it goes on in its run"
    assert tracker.runs[-1].status is RunStatus.FINISHED
    assert found.metrics == report.metrics
    theirs = (place / "head" / "model.safetensors").read_bytes()
    assert (tmp_path / "head" / "model.safetensors").read_bytes() == theirs


def interrupted_after(calls: int, done: Callable[..., object]) -> Callable[..., object]:
    """`done`, until it was called so often: then Ctrl-C comes."""
    left = [calls]

    def call(*arguments: object) -> object:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return done(*arguments)

    return call


def test_a_folder_that_another_input_or_setting_began_is_refused(
    done: tuple[Path, DistillReport, MemoryRun, MemoryHeads],
    taught_folder: Path,
    answers: Path,
    tmp_path: Path,
) -> None:
    place, _, _, _ = done
    other = tmp_path / "other.jsonl"
    other.write_text("".join(answers.read_text().splitlines(keepends=True)[:-1]))
    for given in (
        words(answers, place / "head", taught_folder, "num_steps=2"),
        words(other, place / "head", taught_folder),
    ):
        with pytest.raises(UserError, match=r"^distill\.head_dir: .* was begun with another"):
            distillation(given, place / "cache").run()


def test_answers_of_another_model_are_refused(
    taught_folder: Path, tmp_path: Path, write_job: Callable[..., Path]
) -> None:
    job = write_job(tmp_path, HfTokenizer.load(taught_folder), ["A boat drifts."])
    with pytest.raises(UserError, match=r"^distill\.input: another model wrote the answers"):
        distillation(words(job, tmp_path / "head", taught_folder), tmp_path / "cache").run()
    assert not (tmp_path / "head" / "model.safetensors").exists()


def generate(source: Path, cache_dir: Path, *more: str) -> list[Completion]:
    given = [f"model.source=path:{source}", *EXACT, "input=a", "job_dir=b", *more]
    decoder, tokenizer = wiring.engine_recipe(load(BulkJob, "bulk", given), cache_dir)()
    params = [SamplingParams(max_tokens=40), SamplingParams(temperature=0.7, seed=5, max_tokens=40)]
    try:
        futures = [
            decoder.submit(
                Request(
                    request_id=f"r{number}",
                    prompt_ids=tuple(tokenizer.encode("A boat without a")),
                    params=replace(each, ignore_eos=True),
                )
            )
            for number, each in enumerate(params)
        ]
        return [future.result(timeout=60) for future in futures]
    finally:
        decoder.close()


def test_the_engine_says_the_same_with_the_head_in_fewer_rounds(
    done: tuple[Path, DistillReport, MemoryRun, MemoryHeads], taught_folder: Path
) -> None:
    place, _, _, _ = done
    torch.set_num_threads(1)
    drafting = ("draft=head", f"draft.head.source=path:{place}/head")
    fixed = ("draft.length.policy=fixed", "draft.length.max=3")
    plain = generate(taught_folder, place / "cache", "draft=none")
    drafted = generate(taught_folder, place / "cache", *drafting, *fixed)
    assert [each.token_ids for each in drafted] == [each.token_ids for each in plain]
    counters = drafted[0].counters
    assert counters.accepted / counters.evaluated > 0.8
    assert counters.num_rounds < 20
    assert json.loads((place / "head" / "config.json").read_text())["kind"] == "outrider-draft-head"


def test_the_command_shows_how_far_drafts_go_and_how_to_use_the_head(
    taught_folder: Path,
    answers: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OUTRIDER_CACHE", str(tmp_path / "cache"))
    given = words(answers, tmp_path / "head", taught_folder, "num_epochs=1", "tracking=off")
    assert wiring.distill(load(DistillJob, "distill", given), given) == 0
    said = capsys.readouterr()
    assert "draft position" in said.out
    assert f"use it with draft=head draft.head.source=path:{tmp_path}/head" in said.out
    assert "answers to learn from" in said.err
    assert "the best so far" in said.err
    missing = words(tmp_path / "nothing", tmp_path / "other", taught_folder)
    with pytest.raises(UserError, match=r"^distill\.input: no file or folder"):
        wiring.distill(load(DistillJob, "distill", missing), missing)
