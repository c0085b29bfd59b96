"""Every origin has a digest of its own, which changes with it and with nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from outrider.config.load import load
from outrider.config.schema import BulkJob
from outrider.models import ModelFiles
from outrider.tracking.provenance import Code, Hardware, Provenance
from outrider.tracking.release import make_release

TARGET = ModelFiles(
    source="path:a",
    folder=Path("a"),
    weights_digest="w",
    tokenizer_digest="t",
    chat_template_digest="c",
)
HERE = Provenance(
    code=Code(revision="abc", lock_sha256="l"),
    hardware=Hardware(cpu="a chip"),
    python="3",
    platform="here",
    packages={"transformers": "5"},
)
ELSEWHERE = replace(HERE, hardware=Hardware(cpu="another chip"))
UPDATED = replace(HERE, packages={"transformers": "6"})
DIRTY = replace(HERE, code=replace(HERE.code, is_dirty=True, diff_sha256="d"))
RELOCKED = replace(HERE, code=replace(HERE.code, lock_sha256="other"))


def lineage(
    *words: str,
    target: ModelFiles = TARGET,
    draft: ModelFiles | None = None,
    here: Provenance = HERE,
) -> dict[str, str]:
    settings = load(BulkJob, "bulk", ["input=a.jsonl", "job_dir=out", *words])
    return dict(make_release(settings, target, draft, here).lineage)


def changed(**otherwise: object) -> set[str]:
    words = otherwise.pop("words", ())
    before, after = lineage(), lineage(*words, **otherwise)  # type: ignore[arg-type]
    return {name for name in before | after if before.get(name) != after.get(name)}


@pytest.mark.parametrize(
    ("otherwise", "names"),
    [
        ({}, set()),
        ({"target": replace(TARGET, weights_digest="other")}, {"weights"}),
        ({"target": replace(TARGET, tokenizer_digest="other")}, {"tokenizer", "preprocessing"}),
        ({"target": replace(TARGET, chat_template_digest="other")}, {"prompt", "preprocessing"}),
        ({"target": replace(TARGET, chat_template_digest=None)}, {"prompt", "preprocessing"}),
        ({"here": ELSEWHERE}, {"hardware"}),
        ({"here": UPDATED}, {"preprocessing"}),
        ({"here": DIRTY}, {"code"}),
        ({"here": RELOCKED}, {"lock"}),
        ({"words": ["temperature=0.5"]}, {"configuration", "policy"}),
        ({"words": ["draft=none"]}, {"configuration", "policy"}),
        ({"words": ["engine.rule=ratio"]}, {"configuration", "policy"}),
        ({"words": ["engine.max_rows=2"]}, {"configuration"}),
        ({"draft": TARGET}, {"draft_weights"}),
    ],
)
def test_a_digest_changes_with_its_origin_alone(
    otherwise: dict[str, object], names: set[str]
) -> None:
    assert changed(**otherwise) == names


def test_a_job_adds_the_data_that_it_ran_on() -> None:
    settings = load(BulkJob, "bulk", ["input=a.jsonl", "job_dir=out"])
    release = make_release(settings, TARGET, None, HERE)
    assert not {"source_data", "evaluation_set"} & release.lineage.keys()
    assert release.on_data(source_data="i").run_tags["lineage.source_data"] == "i"
    trial = release.on_data(evaluation_set="e").record
    assert trial.lineage["evaluation_set"] == "e"
    assert trial.fingerprint == release.fingerprint
    assert release.run_tags["code.revision"] == "abc"
