"""Values that make no sense are refused by their full key."""

from dataclasses import fields, replace
from typing import Any

import pytest

from outrider.config.limits import problems, validate
from outrider.config.load import load
from outrider.config.ranges import RANGES
from outrider.config.schema import BenchJob, BulkJob, ServeJob, ServingSettings
from outrider.core import UserError


@pytest.fixture(scope="module")
def job() -> BulkJob:
    return load(BulkJob, "bulk", ["input=a.jsonl", "job_dir=out"])


def changed(settings: Any, key: str, value: object) -> Any:
    name, _, rest = key.partition(".")
    return replace(
        settings, **{name: changed(getattr(settings, name), rest, value) if rest else value}
    )


def test_the_defaults_make_sense(job: BulkJob) -> None:
    validate(job)
    validate(load(BenchJob, "bench"))
    validate(load(ServeJob, "serve"))


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("draft.length.max", -1, "must be at least 0, got -1"),
        ("draft.length.discount", 0.0, "must be above 0 and at most 1, got 0"),
        ("draft.breaker.alpha", 1.5, "must be above 0 and at most 1, got 1.5"),
        ("model.kv_blocks", 0, "must be at least 1, got 0"),
        ("model.source", "SmolLM2", "expected one of hub:..., path:..., wheel:..., mlflow:..."),
        ("model.source", "hub:", "expected one of hub:"),
        ("engine.max_rows", 0, "must be at least 1"),
        ("engine.max_round_tokens", 4, "must be at least max_rows (16)"),
        ("sampling.temperature", -0.5, "must be at least 0, got -0.5"),
        ("sampling.top_p", 0.0, "must be above 0"),
        ("sampling.top_p", float("nan"), "must be above 0 and at most 1, got nan"),
        ("sampling.min_tokens", 999, "must be at most max_tokens (128)"),
        ("draft.ngram.min_match", 9, "must be at most max_match (6)"),
        ("tracking.window_s", 0.0, "must be above 0"),
        ("bulk.limit", -3, "must be at least 0"),
        ("bulk.job_dir", " ", "must not be empty"),
    ],
)
def test_a_value_out_of_range_is_named(job: BulkJob, key: str, value: object, problem: str) -> None:
    with pytest.raises(UserError, match=f"^{key}: ") as caught:
        validate(changed(job, key, value))
    assert problem in str(caught.value)


def test_a_count_of_the_bench_is_looked_at() -> None:
    bench = changed(load(BenchJob, "bench"), "bench.num_repeats", 0)
    assert list(problems(bench)) == [("bench.num_repeats", "must be at least 1, got 0")]


def test_a_model_drafter_without_a_model_is_refused() -> None:
    with pytest.raises(UserError, match=r"^draft\.model: drafter model needs one"):
        load(BulkJob, "bulk", ["input=a", "job_dir=b", "drafter=model"])


def test_a_head_drafter_without_a_head_is_refused() -> None:
    with pytest.raises(UserError, match=r"^draft\.head\.source: drafter head needs one"):
        load(BulkJob, "bulk", ["input=a", "job_dir=b", "draft=head", "draft.head.source="])


@pytest.mark.parametrize(
    "words",
    [
        ("draft=composite", "draft.head.source="),
        ("draft=composite_model", "draft.model.source=path:a", "draft.head.source=path:b"),
    ],
)
def test_a_composite_drafter_needs_a_head_or_a_model_and_not_both(words: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=r"^draft\.head\.source: drafter composite needs either"):
        load(BulkJob, "bulk", ["input=a", "job_dir=b", *words])


@pytest.mark.parametrize("source", ["hub:a/b@c", "path:", "head", "auto:"])
def test_a_head_from_nowhere_is_refused(source: str) -> None:
    with pytest.raises(
        UserError, match=r"^draft\.head\.source: expected auto, or one of path:\.\.\., "
    ):
        load(BulkJob, "bulk", ["input=a", "job_dir=b", "draft=head", f"draft.head.source={source}"])


def test_float64_is_refused_where_it_cannot_run() -> None:
    words = ["input=a", "job_dir=b", "model.dtype=float64"]
    load(BulkJob, "bulk", [*words, "model.runtime=torch"])
    with pytest.raises(UserError, match=r"^model\.dtype: float64 runs on torch only"):
        load(BulkJob, "bulk", [*words, "model.runtime=openvino"])


def test_every_range_belongs_to_a_field() -> None:
    for cls, ranges in RANGES.items():
        assert set(ranges) <= {field.name for field in fields(cls)}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_loopback_needs_no_keys(host: str) -> None:
    validate(ServingSettings(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "example.org", "::"])
def test_strangers_are_never_served_without_keys(host: str) -> None:
    open_door = ServingSettings(host=host)
    with pytest.raises(UserError, match=r"^host: .* give serving\.keys_file"):
        validate(open_door)
    with pytest.raises(UserError, match=r"^host: .* give serving\.keys_file"):
        validate(replace(open_door, admin_keys_file="admin"))
    with pytest.raises(UserError, match=r"^host: .* give serving\.admin_keys_file"):
        validate(replace(open_door, keys_file="keys"))
    validate(replace(open_door, keys_file="keys", admin_keys_file="admin"))


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("name", "a b", "letters, digits, - and _ only, got 'a b'"),
        ("name", "", "letters, digits, - and _ only"),
        ("host", " ", "must not be empty"),
        ("port", 0, "must be at least 1 and at most 65535, got 0"),
        ("port", 70000, "must be at least 1 and at most 65535, got 70000"),
        ("num_replicas", 0, "must be at least 1"),
        ("max_replicas", 1, "must be 0 or at least num_replicas (2)"),
        ("max_choices", 0, "must be at least 1"),
        ("deadline_s", 0.0, "must be above 0"),
        ("stall_s", -1.0, "must be above 0"),
    ],
)
def test_a_server_that_cannot_be_is_refused(key: str, value: object, problem: str) -> None:
    with pytest.raises(UserError, match=f"^serving.{key}: ") as caught:
        validate(changed(load(ServeJob, "serve", ["num_replicas=2"]), f"serving.{key}", value))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("url", "lm.example", "must begin with http:// or https://, got 'lm.example'"),
        ("mlflow_url", "sqlite:////runs.db", "must begin with http://"),
        ("period_s", 0.0, "must be above 0, got 0"),
        ("keep_s", 1.0, "must be 1 to 5000 times period_s (2)"),
        ("keep_s", 86400.0, "must be 1 to 5000 times period_s (2)"),
    ],
)
def test_a_console_that_can_show_nothing_or_keeps_too_much_is_refused(
    key: str, value: object, problem: str
) -> None:
    with pytest.raises(UserError, match=f"^console.{key}: ") as caught:
        validate(changed(load(ServeJob, "serve"), f"console.{key}", value))
    assert problem in str(caught.value)


def test_rounds_are_not_traced_while_serving() -> None:
    with pytest.raises(UserError, match=r"^engine\.trace: .* bulk jobs only"):
        load(ServeJob, "serve", ["trace=true"])
