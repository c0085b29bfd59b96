"""Which values make sense. One out of range is refused by its full key, before work starts."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from outrider.config.range import (
    COUNT,
    PORT,
    POSITIVE,
    POSITIVE_COUNT,
    POSITIVE_SHARE,
    SHARE,
    Range,
)
from outrider.config.schema import (
    BenchSettings,
    BreakerSettings,
    BulkSettings,
    CompareAction,
    CompareSettings,
    CriteriaSettings,
    DrafterKind,
    DraftLengthSettings,
    DraftSettings,
    Dtype,
    EngineSettings,
    ModelSettings,
    NgramSettings,
    RuntimeKind,
    SamplingSettings,
    ServeJob,
    ServingSettings,
    SweepJob,
    SweepSettings,
    TrackingSettings,
    TrialSettings,
)
from outrider.core import UserError

RANGES: dict[type, dict[str, Range]] = {
    ModelSettings: {
        "num_threads": COUNT,
        "kv_blocks": POSITIVE_COUNT,
        "block_size": POSITIVE_COUNT,
        "max_context_length": COUNT,
    },
    DraftLengthSettings: {
        "max": COUNT,
        "discount": POSITIVE_SHARE,
        "prior_strength": POSITIVE,
    },
    BreakerSettings: {
        "min_gain": SHARE,
        "alpha": POSITIVE_SHARE,
        "first_wait_rounds": POSITIVE_COUNT,
        "max_wait_rounds": POSITIVE_COUNT,
        "probe_rounds": POSITIVE_COUNT,
        "probe_share": POSITIVE_SHARE,
    },
    NgramSettings: {
        "max_match": POSITIVE_COUNT,
        "min_match": POSITIVE_COUNT,
        "corpus_tokens": COUNT,
    },
    EngineSettings: {"max_rows": POSITIVE_COUNT, "max_round_tokens": POSITIVE_COUNT},
    SamplingSettings: {
        "temperature": COUNT,
        "top_p": POSITIVE_SHARE,
        "top_k": COUNT,
        "min_p": SHARE,
        "max_tokens": POSITIVE_COUNT,
        "min_tokens": COUNT,
    },
    TrackingSettings: {"window_s": POSITIVE},
    BulkSettings: {
        "shard_rows": POSITIVE_COUNT,
        "num_workers": POSITIVE_COUNT,
        "cpus_per_worker": COUNT,
        "limit": COUNT,
        "near_tie": COUNT,
    },
    BenchSettings: {
        "num_repeats": POSITIVE_COUNT,
        "max_tokens": POSITIVE_COUNT,
        "num_threads": COUNT,
        "num_streams": POSITIVE_COUNT,
        "minutes": POSITIVE,
        "timeout_s": POSITIVE,
    },
    TrialSettings: {
        "confirmation_share": SHARE,
        "in_flight": POSITIVE_COUNT,
        "num_passes": POSITIVE_COUNT,
        "answer_tokens": POSITIVE_COUNT,
        "cores": COUNT,
        "timeout_s": POSITIVE,
        "near_tie": COUNT,
        "price_per_hour": COUNT,
    },
    CriteriaSettings: {
        "min_speedup": COUNT,
        "min_group_speedup": COUNT,
        "max_first_token_ratio": POSITIVE,
        "max_inter_token_ratio": POSITIVE,
        "max_total_ratio": POSITIVE,
        "max_memory_ratio": POSITIVE,
        "max_failure_ratio": SHARE,
        "max_mismatches": COUNT,
        "confidence": POSITIVE_SHARE,
        "min_pairs": POSITIVE_COUNT,
    },
    SweepSettings: {
        "keep_ratio": POSITIVE_SHARE,
        "first_prompts": POSITIVE_COUNT,
        "in_flight": POSITIVE_COUNT,
    },
    CompareSettings: {"top": POSITIVE_COUNT},
    ServingSettings: {
        "port": PORT,
        "num_replicas": POSITIVE_COUNT,
        "max_replicas": COUNT,
        "cpus_per_replica": COUNT,
        "target_load_tokens": POSITIVE_COUNT,
        "max_queue": COUNT,
        "max_request_bytes": POSITIVE_COUNT,
        "max_choices": POSITIVE_COUNT,
        "deadline_s": POSITIVE,
        "health_period_s": POSITIVE,
        "stall_s": POSITIVE,
        "affinity_tokens": COUNT,
        "affinity_slack": COUNT,
        "log_rows": POSITIVE_COUNT,
        "log_period_s": POSITIVE,
    },
}


def validate(settings: object, path: str = "") -> None:
    """Raise UserError for the first value, at any depth, that makes no sense."""
    for key, problem in problems(settings, path):
        raise UserError(f"{key}: {problem}")


def problems(settings: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (full key, what is wrong) for every value that makes no sense."""
    ranges = RANGES.get(type(settings), {})
    for field in fields(settings):
        key, value = f"{path}.{field.name}".lstrip("."), getattr(settings, field.name)
        if is_dataclass(value):
            yield from problems(value, key)
        elif field.name in ranges:
            yield from _out_of_range(key, value, ranges[field.name])
    for name, problem in RELATIONS.get(type(settings), _none)(settings):
        yield f"{path}.{name}".lstrip("."), problem


def _out_of_range(key: str, value: Any, allowed: Range) -> Iterator[tuple[str, str]]:
    for item in value if isinstance(value, tuple) else (value,):
        if item not in allowed:
            yield key, f"must be {allowed}, got {item:g}"


def _none(settings: object) -> Iterator[tuple[str, str]]:
    return iter(())


def _model(settings: ModelSettings) -> Iterator[tuple[str, str]]:
    kind, _, rest = settings.source.partition(":")
    if kind not in SOURCES or not rest:
        expected = ", ".join(f"{name}:..." for name in SOURCES)
        yield "source", f"expected one of {expected}, got {settings.source!r}"

    if settings.dtype is Dtype.FLOAT64 and settings.runtime is RuntimeKind.OPENVINO:
        yield "dtype", "float64 runs on torch only: give runtime=torch, or float32"


SOURCES = ("hub", "path", "wheel", "mlflow")


def _draft(settings: DraftSettings) -> Iterator[tuple[str, str]]:
    needs_model = settings.drafter in (DrafterKind.MODEL, DrafterKind.COMPOSITE)
    if needs_model and settings.model is None:
        kind = settings.drafter.value
        yield "model", f"drafter {kind} needs one: give draft={kind} and draft.model.source=..."


def _ngram(settings: NgramSettings) -> Iterator[tuple[str, str]]:
    if settings.min_match > settings.max_match:
        yield "min_match", f"must be at most max_match ({settings.max_match})"


def _breaker(settings: BreakerSettings) -> Iterator[tuple[str, str]]:
    if settings.first_wait_rounds > settings.max_wait_rounds:
        yield "first_wait_rounds", f"must be at most max_wait_rounds ({settings.max_wait_rounds})"


def _engine(settings: EngineSettings) -> Iterator[tuple[str, str]]:
    if settings.max_round_tokens < settings.max_rows:
        yield "max_round_tokens", f"must be at least max_rows ({settings.max_rows})"


def _sampling(settings: SamplingSettings) -> Iterator[tuple[str, str]]:
    if settings.min_tokens > settings.max_tokens:
        yield "min_tokens", f"must be at most max_tokens ({settings.max_tokens})"


def _bulk(settings: BulkSettings) -> Iterator[tuple[str, str]]:
    for name in ("input", "job_dir"):
        if not getattr(settings, name).strip():
            yield name, "must not be empty"


def _serving(settings: ServingSettings) -> Iterator[tuple[str, str]]:
    if not RELEASE.fullmatch(settings.name):
        yield "name", f"letters, digits, - and _ only, got {settings.name!r}"
    if not settings.host.strip():
        yield "host", "must not be empty"
    elif not is_loopback(settings.host):
        yield from _exposed(settings)
    if 0 < settings.max_replicas < settings.num_replicas:
        yield "max_replicas", f"must be 0 or at least num_replicas ({settings.num_replicas})"


RELEASE = re.compile(r"[A-Za-z0-9_-]{1,63}")


def _exposed(settings: ServingSettings) -> Iterator[tuple[str, str]]:
    """Who can be reached by strangers asks for keys."""
    reached = f"{settings.host} can be reached from outside"
    if not settings.keys_file:
        yield (
            "host",
            f"{reached}: give serving.keys_file, a file with one API key a line, or use 127.0.0.1",
        )
    if not settings.admin_keys_file:
        yield (
            "host",
            f"{reached}: give serving.admin_keys_file too; /admin changes how replicas decode",
        )


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _compare(settings: CompareSettings) -> Iterator[tuple[str, str]]:
    if settings.action is CompareAction.DIFF and len(settings.releases) != NUM_COMPARED:
        example = "releases=[models:/outrider/1,models:/outrider@champion]"
        yield "releases", f"action=diff compares two, got {len(settings.releases)}: {example}"
    for kind in settings.kinds:
        if kind not in RUN_KINDS:
            yield "kinds", f"expected some of {', '.join(RUN_KINDS)}, got {kind!r}"
    if not settings.kinds:
        yield "kinds", f"expected some of {', '.join(RUN_KINDS)}"
    for name in ("sort", "out"):
        if not getattr(settings, name).strip():
            yield name, "must not be empty"


RUN_KINDS = ("contender", "bulk", "serve", "sweep", "bench")
NUM_COMPARED = 2


def _sweep(settings: SweepSettings) -> Iterator[tuple[str, str]]:
    if not settings.folder.strip():
        yield "folder", "must not be empty"
    if settings.keep_ratio >= 1:
        yield "keep_ratio", f"must be below 1, got {settings.keep_ratio:g}"


def _sweep_job(settings: SweepJob) -> Iterator[tuple[str, str]]:
    most, rows = settings.sweep.in_flight, settings.engine.max_rows
    if most > rows:
        yield (
            "sweep.in_flight",
            f"{most} is more than the rows decoded together: give engine.max_rows={most} too",
        )


def _serve(settings: ServeJob) -> Iterator[tuple[str, str]]:
    if settings.engine.trace:
        yield "engine.trace", "rounds are traced in bulk jobs only: leave it false"
    for name in ("export_dir", "export_image", "export_memory"):
        if not getattr(settings, name).strip():
            yield name, "must not be empty"


RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    ModelSettings: _model,
    DraftSettings: _draft,
    NgramSettings: _ngram,
    BreakerSettings: _breaker,
    EngineSettings: _engine,
    SamplingSettings: _sampling,
    BulkSettings: _bulk,
    ServingSettings: _serving,
    ServeJob: _serve,
    CompareSettings: _compare,
    SweepSettings: _sweep,
    SweepJob: _sweep_job,
}
