"""`conf/`: every choice composes, every key is explained, settings and files have the same keys."""

import re
from dataclasses import is_dataclass
from itertools import chain
from pathlib import Path

import pytest

from outrider.config.comments import document
from outrider.config.folders import SHIPPED, Folders
from outrider.config.load import composed, load
from outrider.config.schema import (
    BenchJob,
    BulkJob,
    CompareJob,
    DistillJob,
    RolloutJob,
    ServeJob,
    SweepJob,
)
from outrider.config.typed import keys

JOBS = {
    "bulk": (BulkJob, ("bulk.input=a.jsonl", "bulk.job_dir=out")),
    "bench": (BenchJob, ()),
    "serve": (ServeJob, ()),
    "sweep": (SweepJob, ()),
    "compare": (CompareJob, ()),
    "distill": (DistillJob, ("distill.input=out", "distill.head_dir=head")),
    "rollout": (RolloutJob, ()),
}
DRAFT_MODEL = ("draft.model.source=hub:org/name@main",)
NEEDS = {
    "model=hub": ("model.source=hub:org/name@main",),
    "model=path": ("model.source=path:folder",),
    "draft=model": DRAFT_MODEL,
    "draft=composite_model": DRAFT_MODEL,
}
FILES = sorted(SHIPPED.rglob("*.yaml"))
UNIT = re.compile(
    r"\b(tokens|rows|blocks?|cores|threads|actors|seconds|logits|ratio|probability|rounds"
    r"|observations|number|times|requests|share|price)\b"
)


def choices() -> list[tuple[str, str]]:
    folders = Folders()
    return [
        (name, f"{group}={choice}")
        for name in JOBS
        for group in folders.groups(name)
        for choice in folders.choices(group)
    ]


@pytest.mark.parametrize(("name", "choice"), choices())
def test_every_choice_composes(name: str, choice: str) -> None:
    job, given = JOBS[name]
    load(job, name, [choice, *given, *NEEDS.get(choice, ())])


@pytest.mark.parametrize("preset", Folders().choices("preset"))
def test_every_preset_goes_with_every_choice(preset: str) -> None:
    """One choice of each group at a time, until there was every one."""
    job, given = JOBS["bulk"]
    folders = Folders()
    groups = {name: folders.choices(name) for name in folders.groups("bulk") if name != "preset"}
    for turn in range(max(map(len, groups.values()))):
        chosen = [f"{name}={each[turn % len(each)]}" for name, each in groups.items()]
        needed = chain.from_iterable(NEEDS.get(choice, ()) for choice in chosen)
        load(job, "bulk", [f"preset={preset}", *chosen, *given, *needed])


def test_every_file_belongs_to_a_job() -> None:
    groups = set(chain.from_iterable(Folders().groups(name) for name in JOBS))
    for path in FILES:
        relative = path.relative_to(SHIPPED)
        assert relative.parts[0] in groups or relative.stem in JOBS, relative


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SHIPPED)))
def test_every_file_says_what_it_is_and_every_key_says_its_unit(path: Path) -> None:
    read = document(path, SHIPPED)
    assert read.title
    for entry in read.entries:
        assert entry.comment or entry.is_section, f"{path}:{entry.line}: {entry.key} has no comment"


@pytest.mark.parametrize("name", JOBS)
def test_every_number_has_a_unit(name: str) -> None:
    job, _ = JOBS[name]
    hints = {key: hint for key, hint in keys(job) if hint in (int, float)}
    for path in FILES:
        for entry in document(path, SHIPPED).entries:
            said = UNIT.search(entry.comment)
            assert entry.key not in hints or said, f"{path}:{entry.line}: {entry.key} has no unit"


@pytest.mark.parametrize("name", JOBS)
def test_settings_and_files_have_the_same_keys(name: str) -> None:
    job, given = JOBS[name]
    drafts = "draft" in Folders().groups(name)
    model = ("draft=model", *DRAFT_MODEL) if drafts else ()  # with every optional section
    config = composed(job, name, [*given, *model])
    assert set(leaves(config)) == {key for key, hint in keys(job) if not is_section(hint)}


def leaves(config: object, path: str = "") -> list[str]:
    if not isinstance(config, dict):
        return [path]
    return [
        key for name, value in config.items() for key in leaves(value, f"{path}.{name}".lstrip("."))
    ]


def is_section(hint: object) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def test_files_are_small() -> None:
    for path in FILES:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 40, path
