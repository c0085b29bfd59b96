"""What must hold between the values of a section, beyond their ranges."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Any

from outrider.config.schema import (
    BreakerSettings,
    BulkSettings,
    CompareAction,
    CompareSettings,
    ConsoleSettings,
    DistillAction,
    DistillSettings,
    DrafterKind,
    DraftSettings,
    Dtype,
    EngineSettings,
    GateSettings,
    HeadSettings,
    ModelSettings,
    NgramSettings,
    PlanSettings,
    RolloutSettings,
    RuntimeKind,
    SamplingSettings,
    ServeJob,
    ServingSettings,
    SweepJob,
    SweepSettings,
    WebhookSettings,
)


def _model(settings: ModelSettings) -> Iterator[tuple[str, str]]:
    kind, _, rest = settings.source.partition(":")
    if kind not in SOURCES or not rest:
        expected = ", ".join(f"{name}:..." for name in SOURCES)
        yield "source", f"expected one of {expected}, got {settings.source!r}"

    if settings.dtype is Dtype.FLOAT64 and settings.runtime is RuntimeKind.OPENVINO:
        yield "dtype", "float64 runs on torch only: give runtime=torch, or float32"


SOURCES = ("hub", "path", "wheel", "mlflow")


def _draft(settings: DraftSettings) -> Iterator[tuple[str, str]]:
    kind, has_head = settings.drafter, bool(settings.head.source)
    if kind is DrafterKind.MODEL and settings.model is None:
        yield "model", "drafter model needs one: give draft=model and draft.model.source=..."
    if kind is DrafterKind.HEAD and not has_head:
        yield "head.source", "drafter head needs one: give draft.head.source=path:/folder"
    if kind is DrafterKind.COMPOSITE and has_head == (settings.model is not None):
        yield (
            "head.source",
            "drafter composite needs either a head (draft=composite draft.head.source=...) or a "
            "smaller model (draft=composite_model draft.model.source=...)",
        )


def _head(settings: HeadSettings) -> Iterator[tuple[str, str]]:
    kind, _, rest = settings.source.partition(":")
    if settings.source not in ("", "auto") and (kind not in HEAD_SOURCES or not rest):
        expected = ", ".join(f"{name}:..." for name in HEAD_SOURCES)
        yield "source", f"expected auto, or one of {expected}, got {settings.source!r}"


HEAD_SOURCES = ("path", "mlflow", "shipped")


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
    if settings.fallback_wait_s > settings.fallback_max_wait_s:
        most = settings.fallback_max_wait_s
        yield "fallback_wait_s", f"must be at most fallback_max_wait_s ({most:g})"


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


RUN_KINDS = ("contender", "bulk", "serve", "sweep", "bench", "figures")
NUM_COMPARED = 2


def _distill(settings: DistillSettings) -> Iterator[tuple[str, str]]:
    needed = {DistillAction.PROMPTS: ("out",), DistillAction.TRAIN: ("input", "head_dir")}
    for name in needed[settings.action]:
        if not getattr(settings, name).strip():
            yield name, f"action={settings.action.value} needs it: give {name}=..."
    if settings.valid_share >= 1:
        yield "valid_share", "must be below 1: nothing would be left to learn from"
    layers = list(settings.feature_layers)
    if layers != sorted(set(layers)):
        yield "feature_layers", f"must grow, got {layers}"
    if settings.train_dtype is Dtype.FLOAT64:
        yield "train_dtype", "bfloat16 or float32: weights are float32"
    if settings.feature_tokens < settings.max_tokens:
        yield "feature_tokens", f"must be at least max_tokens ({settings.max_tokens})"
    if settings.batch_tokens < settings.max_tokens:
        yield "batch_tokens", f"must be at least max_tokens ({settings.max_tokens})"


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


def _plan(settings: PlanSettings) -> Iterator[tuple[str, str]]:
    weights = settings.weights
    if not weights or list(weights) != sorted(set(weights)) or weights[-1] >= 1:
        yield "weights", f"must grow and stay below 1, got {list(weights)}"
    for weight in settings.approvals:
        if weight not in weights:
            yield "approvals", f"{weight:g} is none of the weights {list(weights)}"
    if settings.max_s <= settings.min_s:
        yield "max_s", f"must be more than min_s ({settings.min_s:g})"


MOST_ALPHA = 0.5  # from here on a bound may lie on the wrong side of what was seen


def _gates(settings: GateSettings) -> Iterator[tuple[str, str]]:
    for name in ("max_first_token_ratio", "max_inter_token_ratio", "max_total_ratio"):
        if 0 < getattr(settings, name) <= 1:
            yield name, f"must be 0 (off) or more than 1, got {getattr(settings, name):g}"
    for name in ("min_speed_ratio", "min_acceptance_ratio", "min_tokens_per_round_ratio"):
        if getattr(settings, name) >= 1:
            yield name, "must be below 1: equal releases would never surely reach it"
    if settings.max_error_increase <= 0:
        yield "max_error_increase", "must be more than 0: equal releases would never surely keep it"
    if settings.alpha >= MOST_ALPHA:
        yield "alpha", f"must be below {MOST_ALPHA:g}, got {settings.alpha:g}"


def _is_http(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def _webhooks(settings: WebhookSettings) -> Iterator[tuple[str, str]]:
    for name in ("pre_url", "step_url", "done_url"):
        url = getattr(settings, name)
        if url and not _is_http(url):
            yield name, f"must begin with http:// or https://, got {url!r}"


def _rollout(settings: RolloutSettings) -> Iterator[tuple[str, str]]:
    if not _is_http(settings.url):
        yield "url", f"must begin with http:// or https://, got {settings.url!r}"


def _console(settings: ConsoleSettings) -> Iterator[tuple[str, str]]:
    for name in ("url", "mlflow_url"):
        url = getattr(settings, name)
        if url and not _is_http(url):
            yield name, f"must begin with http:// or https://, got {url!r}"
    if not settings.period_s <= settings.keep_s <= MOST_POINTS * settings.period_s:
        yield "keep_s", f"must be 1 to {MOST_POINTS} times period_s ({settings.period_s:g})"


MOST_POINTS = 5000  # of a release, that a gateway keeps and a page draws


RELATIONS: dict[type, Callable[[Any], Iterator[tuple[str, str]]]] = {
    ModelSettings: _model,
    DraftSettings: _draft,
    HeadSettings: _head,
    NgramSettings: _ngram,
    BreakerSettings: _breaker,
    EngineSettings: _engine,
    SamplingSettings: _sampling,
    BulkSettings: _bulk,
    ServingSettings: _serving,
    ServeJob: _serve,
    CompareSettings: _compare,
    DistillSettings: _distill,
    SweepSettings: _sweep,
    SweepJob: _sweep_job,
    PlanSettings: _plan,
    GateSettings: _gates,
    WebhookSettings: _webhooks,
    RolloutSettings: _rollout,
    ConsoleSettings: _console,
}
