"""What the user names as releases, and what each is compared with."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from outrider.config.load import load
from outrider.config.schema import BenchJob, DrafterKind, RuleKind
from outrider.core import UserError
from outrider.tracking.rebuild import Registered
from outrider.tracking.registry import Version
from outrider.tracking.release_record import ReleaseRecord
from outrider.trial.entry import Entry, entries, without_releases


def compose(words: Sequence[str]) -> BenchJob:
    return load(BenchJob, "bench", words)


def rebuild(uri: str) -> tuple[BenchJob, Registered]:
    record = ReleaseRecord(fingerprint="f", settings={}, config={})
    version = Version(number=3, fingerprint="f")
    return compose(["draft=fixed"]), Registered(version=version, record=record)


def lineup(*releases: str, words: Sequence[str] = ()) -> list[Entry]:
    return entries(releases, words, compose, rebuild)


def test_releases_of_one_model_share_one_plain_decoding() -> None:
    found = lineup("draft=ngram", "draft=fixed length.max=4", "models:/outrider/3")
    assert [(one.name, one.baseline) for one in found] == [
        ("plain", ""),
        ("draft=ngram", "plain"),
        ("draft=fixed length.max=4", "plain"),
        ("models:/outrider/3", "plain"),
    ]
    base, _, fixed, registered = found
    assert base.job.draft.drafter is DrafterKind.NONE
    assert fixed.job.draft.length.max == 4
    assert registered.registered is not None


def test_another_model_or_engine_has_its_own_and_the_rule_alone_has_not() -> None:
    found = lineup(
        "draft=ngram", "engine.rule=ratio", "model.dtype=float32", "model.dtype=float32 draft=fixed"
    )
    assert [one.baseline for one in found] == ["", "plain", "plain", "", "plain 2", "plain 2"]
    assert found[0].job.engine.rule is RuleKind.COUPLED


def test_what_else_was_typed_is_where_each_release_starts() -> None:
    words = ["releases=[a]", "model.dtype=float32", "trial.releases=[b]", "in_flight=[2]"]
    assert without_releases(words) == ["model.dtype=float32", "in_flight=[2]"]
    found = lineup("draft=ngram", words=without_releases(words))
    assert {one.job.model.dtype.value for one in found} == {"float32"}


@pytest.mark.parametrize(
    ("releases", "said"),
    [
        (("draft=ngram", "draft=ngram"), "is there already"),
        (("plain",), "is there already"),
        (("",), "a release is empty"),
        (("draft='ngram",), "No closing quotation"),
        (("draft=ngram min_speedup=2",), "sets criteria"),
        (("part=confirmation",), "sets trial"),
        (("draft.length.max=abc",), "draft.length.max"),
        (("engine.max_rows=4",), "engine.max_rows=8"),
    ],
)
def test_what_is_no_release_is_one_line(releases: tuple[str, ...], said: str) -> None:
    with pytest.raises(UserError) as error:
        lineup(*releases)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
