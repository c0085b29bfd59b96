"""What makes two releases the same, and what a run's record says of one."""

from dataclasses import replace
from pathlib import Path

import pytest

from outrider.bulk.release import make_release
from outrider.config.load import load
from outrider.config.schema import BulkJob
from outrider.models import HeadFiles, ModelFiles
from outrider.tracking.fingerprint import fingerprint
from outrider.tracking.provenance import Code, Hardware, Provenance
from outrider.tracking.release import release_settings

TARGET = ModelFiles(
    source="path:a",
    folder=Path("a"),
    weights_digest="w",
    tokenizer_digest="t",
    chat_template_digest=None,
)
HERE = Provenance(
    code=Code(revision="abc"), hardware=Hardware(cpu="a chip"), python="3", platform="here"
)


def settings(*words: str) -> BulkJob:
    return load(BulkJob, "bulk", ["input=a.jsonl", "job_dir=out", *words])


def identity(*words: str, target: ModelFiles = TARGET) -> str:
    return fingerprint(release_settings(settings(*words), target, None))


@pytest.mark.parametrize(
    "word",
    [
        "input=b.jsonl",
        "job_dir=elsewhere",
        "tracking=off",
        "num_workers=2",
        "model.num_threads=1",
        "model.kv_blocks=64",
        "engine.max_rows=4",
        "trace=true",
    ],
)
def test_where_and_how_fast_is_not_what(word: str) -> None:
    assert identity(word) == identity()


def test_a_head_is_told_by_its_digest_and_not_by_its_place() -> None:
    def drafted(folder: str, digest: str) -> str:
        source = f"path:{folder}"
        head = HeadFiles(source=source, folder=Path(folder), weights_digest=digest)
        job = settings("draft=head", f"draft.head.source={source}")
        return fingerprint(release_settings(job, TARGET, head))

    assert drafted("/a", "h") == drafted("/b", "h") != drafted("/a", "g")


@pytest.mark.parametrize(
    "word",
    [
        "sampling.temperature=0.5",
        "sampling.max_tokens=7",
        "model.dtype=float32",
        "engine.rule=ratio",
        "engine.seed=1",
        "draft=none",
        "draft.length.max=3",
        "draft.breaker.min_gain=0.1",
    ],
)
def test_another_decoding_is_another_release(word: str) -> None:
    """P06."""
    assert identity(word) != identity()


def test_other_weights_tokenizer_or_template_are_another_release() -> None:
    """P06. A folder that has moved is not."""
    assert identity(target=replace(TARGET, folder=Path("b"), source="path:b")) == identity()
    for change in ("weights_digest", "tokenizer_digest", "chat_template_digest"):
        assert identity(target=replace(TARGET, **{change: "other"})) != identity()


def test_dirty_code_leaves_its_diff_with_the_run() -> None:
    dirty = replace(HERE, code=replace(HERE.code, is_dirty=True, diff_sha256="d", diff="+a = 2\n"))
    assert make_release(settings(), TARGET, None, dirty).texts["code.diff"] == "+a = 2\n"
    assert "code.diff" not in make_release(settings(), TARGET, None, HERE).texts


def test_the_record_of_a_run_says_what_was_typed_and_where_it_ran() -> None:
    record = make_release(settings("limit=3"), TARGET, None, HERE, ["limit=3"])
    assert record.params["overrides"] == "limit=3"
    assert record.tags["code.revision"] == "abc"
    assert "limit: 3" in record.texts["config.yaml"]
    assert record.conditions["dtype"] == "bfloat16"
    assert record.texts["overrides.txt"] == "limit=3\n"
