"""A registered release comes back as it was, or the job is told what no longer matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from outrider.config.load import load
from outrider.config.schema import Accepted, BenchJob, BulkJob, DrafterKind, ServeJob
from outrider.core import UserError
from outrider.models import HeadFiles, ModelFiles
from outrider.testing import MemoryRegistry
from outrider.tracking.provenance import Code, Hardware, Provenance
from outrider.tracking.rebuild import Registered, check_words
from outrider.tracking.registry import Alias
from outrider.tracking.release import Release, make_release
from outrider.tracking.release_record import SECTIONS

CHAMPION = "models:/outrider@champion"
TARGET = ModelFiles(
    source="path:a",
    folder=Path("a"),
    weights_digest="w" * 64,
    tokenizer_digest="t" * 64,
    chat_template_digest=None,
)
DRAFT = replace(TARGET, weights_digest="v" * 64)
HERE = Provenance(
    code=Code(revision="abc", lock_sha256="l" * 64),
    hardware=Hardware(cpu="a chip"),
    python="3",
    platform="here",
)
RELOCKED = replace(HERE, code=replace(HERE.code, lock_sha256="m" * 64))
TUNED = (
    *("model.source=path:mine", "model.dtype=float32", "model.num_threads=3", "temperature=0.5"),
    *("draft=model", "draft.model.source=path:small", "draft.length.max=3", "max_rows=2"),
)
JOBS: Mapping[type, tuple[str, ...]] = {
    BulkJob: ("input=a.jsonl", "job_dir=out"),
    ServeJob: (),
    BenchJob: (),
}


def settings(job: Any, *words: str) -> Any:
    name = job.__name__.removesuffix("Job").lower()
    return load(job, name, [*JOBS[job], *words])


def made(
    job: Any, target: ModelFiles = TARGET, draft: ModelFiles | None = DRAFT, here: Any = HERE
) -> Release:
    return make_release(job, target, draft, here)


@pytest.fixture
def registered() -> Registered:
    """The champion: TUNED, as a bulk job registered it."""
    registry = MemoryRegistry()
    registry.register(made(settings(BulkJob, *TUNED)).record, run_id="")
    registry.give(Alias.CHAMPION, 1)
    return Registered.found(registry, CHAMPION)


@pytest.mark.parametrize("job", JOBS)
def test_every_kind_of_job_decodes_as_it_was_registered(job: type, registered: Registered) -> None:
    own = settings(job)
    rebuilt = registered.rebuilt(own, given=())
    tuned = settings(BulkJob, *TUNED)
    for section in ("engine", "sampling"):
        assert getattr(rebuilt, section) == getattr(tuned, section)
    assert rebuilt.model == replace(tuned.model, source=f"path:{Path('mine').absolute()}")
    assert rebuilt.draft.drafter is DrafterKind.MODEL
    assert rebuilt.draft.model.source == f"path:{Path('small').absolute()}"
    assert rebuilt.tracking == own.tracking
    assert rebuilt.release == "models:/outrider/1"  # the champion may be another one tomorrow
    release = registered.confirmed(made(rebuilt))
    assert release.fingerprint == registered.record.fingerprint
    assert release.run_tags["release.version"] == "1"


def test_resources_that_are_given_win_and_others_stay_as_recorded(registered: Registered) -> None:
    own = settings(BulkJob, "max_rows=7", "model.kv_blocks=64")
    rebuilt = registered.rebuilt(own, given={"engine.max_rows", "model.kv_blocks"})
    assert (rebuilt.engine.max_rows, rebuilt.model.kv_blocks) == (7, 64)
    assert rebuilt.model.num_threads == 3
    registered.confirmed(made(rebuilt))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"target": replace(TARGET, weights_digest="x" * 64)}, "model.weights is xxxxxxxxxxxx"),
        ({"target": replace(TARGET, tokenizer_digest="x" * 64)}, "model.tokenizer is xxxxxxxx"),
        (
            {"target": replace(TARGET, chat_template_digest="x" * 64)},
            "model.chat_template is xxxxxxxxxxxx, registered none",
        ),
        ({"draft": replace(DRAFT, weights_digest="x" * 64)}, "draft.model.weights is xxxxxxxx"),
        (
            {"here": RELOCKED},
            "requirements.lock is mmmmmmmmmmmm, registered llllllllllll (accept=[lock] lets it",
        ),
    ],
)
def test_what_no_longer_matches_is_refused_by_name(
    registered: Registered, changes: dict[str, Any], said: str
) -> None:
    rebuilt = registered.rebuilt(settings(BulkJob), given=())
    with pytest.raises(UserError) as refused:
        registered.confirmed(made(rebuilt, **changes))
    assert refused.value.exit_status == 2
    assert str(refused.value).startswith(f"models:/outrider/1 can't be rebuilt here: {said}")
    assert str(refused.value).count("registered") == 1


def test_another_head_is_refused_by_its_digest() -> None:
    """A head's source may be a folder, in which another one was learnt since."""
    words = ("model.source=path:mine", "draft=head", "draft.head.source=path:head")
    job, head = (
        settings(BulkJob, *words),
        HeadFiles(source="", folder=Path(), weights_digest="h" * 64),
    )
    registry = MemoryRegistry()
    registry.register(make_release(job, TARGET, head, HERE).record, run_id="")
    found = Registered.found(registry, "models:/outrider/1")
    rebuilt = found.rebuilt(settings(ServeJob), given=())
    assert rebuilt.draft.head.source == f"path:{Path('head').absolute()}"
    found.confirmed(make_release(rebuilt, TARGET, head, HERE))
    other = replace(head, weights_digest="i" * 64)
    said = r"rebuilt here: draft\.head\.weights is iiiiiiiiiiii, registered hhhhhhhhhhhh$"
    with pytest.raises(UserError, match=said):
        found.confirmed(make_release(rebuilt, TARGET, other, HERE))


def test_another_lock_can_be_accepted_and_nothing_else(registered: Registered) -> None:
    rebuilt = registered.rebuilt(settings(BulkJob), given=())
    registered.confirmed(made(rebuilt, here=RELOCKED), accept=[Accepted.LOCK])
    other = made(rebuilt, replace(TARGET, weights_digest="x" * 64), here=RELOCKED)
    with pytest.raises(UserError, match=r"model\.weights") as refused:
        registered.confirmed(other, accept=[Accepted.LOCK])
    assert "lock" not in str(refused.value)


def test_another_engine_is_refused_before_its_settings_are_read(registered: Registered) -> None:
    engine = {**registered.record.settings["engine"], "version": "9.9"}
    record = replace(
        registered.record,
        settings={**registered.record.settings, "engine": engine},
        config={"a section": "of another version"},
    )
    with pytest.raises(UserError, match=r"engine\.version is \S+, registered 9\.9"):
        replace(registered, record=record).rebuilt(settings(BulkJob), given=())


def test_settings_that_the_record_was_not_made_of_are_refused(registered: Registered) -> None:
    """Whatever else should come to differ: the fingerprint has the last word."""
    rebuilt = registered.rebuilt(settings(BulkJob), given=())
    other = made(replace(rebuilt, sampling=replace(rebuilt.sampling, top_k=9)))
    with pytest.raises(UserError, match=r"rebuilt here: sampling\.top_k$"):
        registered.confirmed(other)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"draft.length.max": "length.max=4"}, "draft.length.max"),
        ({"draft": "draft=fixed"}, "draft"),
        ({"sampling.temperature": "temperature=1"}, "sampling.temperature"),
        ({"model.dtype": "preset=exact"}, r"preset=exact \(model\.dtype\)"),
    ],
)
def test_words_that_say_otherwise_are_refused_in_one_line(
    given: dict[str, str], shown: str
) -> None:
    rest = rf": release={CHAMPION} says what decodes; leave it out, or leave out release"
    with pytest.raises(UserError, match=f"^{shown}{rest}$"):
        check_words(CHAMPION, given)


def test_resources_and_other_sections_may_be_said() -> None:
    check_words(CHAMPION, {"engine.max_rows": "max_rows=2", "bulk.limit": "limit=2"})


def test_a_record_holds_what_decodes_and_folders_that_mean_the_same_everywhere() -> None:
    record = made(settings(BulkJob, *TUNED)).record
    assert tuple(record.config) == SECTIONS
    assert record.config["model"]["source"] == f"path:{Path('mine').absolute()}"
    assert record.settings["engine"]["version"]
    assert "source" not in record.settings["model"]
    assert type(record).from_json(record.to_json()) == record
