"""Settings -> objects. The one module that knows all parts; it decides nothing."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from outrider.bench.experiments import EXPERIMENTS
from outrider.bench.http_bench import HttpBench
from outrider.bench.http_experiments import HTTP_EXPERIMENTS
from outrider.bench.http_server import Serving
from outrider.bench.run import chosen
from outrider.bench.run import run as run_bench
from outrider.bench.workbench import Workbench
from outrider.bench.workload import load_workload, one_of_each_kind
from outrider.bulk.pipeline import run_job
from outrider.bulk.placement import cpus_per_worker
from outrider.bulk.release import make_release
from outrider.bulk.screen import show_report
from outrider.cluster.cores import is_given, num_cores
from outrider.cluster.environment import prepare_environment
from outrider.config.folders import SHIPPED
from outrider.config.schema import (
    BenchJob,
    BenchTarget,
    BulkJob,
    DraftSettings,
    ModelSettings,
    ServeAction,
    ServeJob,
    TrackingSettings,
)
from outrider.core import SystemClock, UserError
from outrider.engine.language_model import LanguageModel
from outrider.engine.runtimes.loading import TORCH_DTYPES, load_module
from outrider.models import HfTokenizer, ModelFiles, default_cache_dir, resolve
from outrider.recipe import EngineRecipe, open_language_model, with_threads
from outrider.tracking.mlflow_tracker import MlflowTracker
from outrider.tracking.provenance import collect, hardware
from outrider.tracking.release import make_release as describe
from outrider.tracking.store_uri import sqlite_uri
from outrider.tracking.tracker import NoTracker, Tracker

REPOSITORY = SHIPPED.parent
RUNS = REPOSITORY / "runs"


def bulk(settings: BulkJob, words: Sequence[str] = ()) -> int:
    """Run one bulk job and show its report. `words`: the overrides that the user typed."""
    notices, screen = Console(stderr=True), Console()
    if not Path(settings.bulk.input).exists():  # before a model is fetched for it
        raise UserError(f"bulk.input: no file {settings.bulk.input}")
    cache_dir = default_cache_dir(os.environ)
    target, draft = fetch(settings.model, settings.draft, cache_dir, notices)
    report = run_job(
        settings,
        make_engine=engine_recipe(settings, cache_dir),
        release=make_release(settings, target, draft, collect(REPOSITORY), words),
        tracker=tracker(settings.tracking),
        console=notices,
    )
    show_report(report, screen)
    return 0


def serve(settings: ServeJob, words: Sequence[str] = ()) -> int:
    """Serve until Ctrl-C, or write what a cluster needs to do so."""
    prepare_environment()  # Ray reads it when imported
    from outrider.serving.command import Server
    from outrider.serving.placement import check_cores, cpus_per_replica

    notices, cache_dir = Console(stderr=True), default_cache_dir(os.environ)
    if not is_given():
        check_cores(settings.serving, num_cores())
    settings = placed(settings)
    cpus = cpus_per_replica(settings.serving, num_cores())
    target, draft = fetch(settings.model, settings.draft, cache_dir, notices)
    resources = {"num_replicas": settings.serving.num_replicas, "cores_per_replica": cpus}
    release = describe(settings, target, draft, collect(REPOSITORY), words, resources)
    if settings.action is ServeAction.EXPORT:
        return export(settings, release.fingerprint, cpus)
    Server(
        job=settings,
        applications=applications(settings, release.fingerprint, cpus),
        release=release,
        cpus=cpus,
        tracker=tracker(settings.tracking),
        clock=SystemClock(),
        notices=notices,
        screen=Console(),
        log=RUNS / "serve.log",
    ).run()
    return 0


def applications(settings: ServeJob, fingerprint: str, cpus: int) -> Callable[[], tuple[Any, Any]]:
    """What binds the release and the gateway, once Ray is there."""
    from outrider.entry import bind_gateway, bind_release

    created = int(SystemClock().time())
    return lambda: (
        bind_release(settings, cpus=cpus),
        bind_gateway(settings, fingerprint=fingerprint, created=created),
    )


def export(settings: ServeJob, fingerprint: str, cpus: int) -> int:
    """Write a Serve config and a KubeRay manifest; say what to do with them."""
    from outrider.serving.export import Export

    files = Export(
        job=settings,
        fingerprint=fingerprint,
        cpus=cpus,
        created=int(SystemClock().time()),
        ray_version=version("ray"),
    ).write(Path(settings.export_dir))
    for path in files:
        Console().print(f"written: {path}", highlight=False, markup=False, soft_wrap=True)
    return 0


def placed(settings: ServeJob) -> ServeJob:
    """With files and folders that mean the same in every process."""
    serving, draft = settings.serving, settings.draft
    serving = replace(
        serving,
        log_dir=str(Path(serving.log_dir or RUNS / "requests").absolute()),
        keys_file=serving.keys_file and str(Path(serving.keys_file).absolute()),
        admin_keys_file=serving.admin_keys_file and str(Path(serving.admin_keys_file).absolute()),
    )
    if draft.model is not None:
        draft = replace(draft, model=anchored(draft.model))
    return replace(settings, serving=serving, draft=draft, model=anchored(settings.model))


def anchored(model: ModelSettings) -> ModelSettings:
    kind, _, path = model.source.partition(":")
    return replace(model, source=f"path:{Path(path).absolute()}") if kind == "path" else model


def fetch(
    model: ModelSettings, draft: DraftSettings, cache_dir: Path, notices: Console
) -> tuple[ModelFiles, ModelFiles | None]:
    """What decodes and what drafts, on this machine's disk."""

    def notice(line: str) -> None:
        notices.print(line, highlight=False, markup=False, soft_wrap=True)

    target = resolve(model.source, cache_dir=cache_dir, notice=notice)
    if draft.model is None:
        return target, None
    return target, resolve(draft.model.source, cache_dir=cache_dir, notice=notice)


def bench(settings: BenchJob) -> int:
    """Measure the figures, print them, write them. 1 where one misses its bound."""
    if settings.bench.target is BenchTarget.HTTP:
        return http_bench(settings)
    only = chosen(settings.bench.only, EXPERIMENTS)  # a wrong name fails before a model is loaded
    out = Path(settings.bench.out or RUNS / "figures.json")
    figures = run_bench(workbench(settings), EXPERIMENTS, only, out, Console())
    return 0 if all(figure.is_reached for figure in figures) else 1


def http_bench(settings: BenchJob) -> int:
    """The same for live serving."""
    only = chosen(settings.bench.only, HTTP_EXPERIMENTS)
    out = Path(settings.bench.out or RUNS / "figures-http.json")
    figures = run_bench(http_workbench(settings), HTTP_EXPERIMENTS, only, out, Console())
    return 0 if all(figure.is_reached for figure in figures) else 1


def http_workbench(settings: BenchJob) -> HttpBench:
    """Servers as a user starts them, and an engine with the very same settings."""
    bench, notices = settings.bench, Console(stderr=True)
    cache_dir = default_cache_dir(os.environ)
    files = resolve(settings.model.source, cache_dir=cache_dir, notice=notices.print)
    tokenizer = HfTokenizer.load(files.folder)
    recipe = EngineRecipe(
        model=replace(settings.model, num_threads=bench.num_threads or num_cores()),
        draft=replace(settings.draft, ngram=replace(settings.draft.ngram, corpus=False)),
        engine=replace(settings.engine, prefix_caching=False),
        cache_dir=cache_dir,
    )

    def tell(line: str) -> None:
        notices.print(line, highlight=False, style="dim")

    return HttpBench(
        serve=Serving(
            REPOSITORY / "jobs" / "serve.py",
            recipe.model,
            recipe.draft,
            recipe.engine,
            url=bench.url,
            log_dir=RUNS / "bench-http",
            tell=tell,
        ),
        open_runner=recipe.runner,
        prompts=load_workload(Path(bench.workload), tokenizer.encode_chat),
        warmup=one_of_each_kind(load_workload(Path(bench.warmup), tokenizer.encode_chat)),
        max_tokens=bench.max_tokens,
        max_rows=settings.engine.max_rows,
        num_repeats=bench.num_repeats,
        num_streams=bench.num_streams,
        minutes=bench.minutes,
        timeout_s=bench.timeout_s,
        clock=SystemClock(),
        tell=tell,
        conditions=http_conditions(settings),
    )


def http_conditions(settings: BenchJob) -> str:
    engine, bench = settings.engine, settings.bench
    server = (
        f"server at {bench.url}" if bench.url else "gateway, proxy and client on the same cores"
    )
    return (
        f"{settings.model.source.split('#')[0]}, {settings.model.dtype.value} on "
        f"{hardware().cpu}, {bench.num_threads or num_cores()} threads, {engine.max_rows} rows, "
        f"{server}, greedy, at most {bench.max_tokens} tokens, prefix caching and shared corpus "
        f"off, paired A B A B, {bench.num_repeats} repeats"
    )


def workbench(settings: BenchJob) -> Workbench:
    """One model on the threads of `bench.num_threads`, and the prompts."""
    notices = Console(stderr=True)
    cache_dir = default_cache_dir(os.environ)
    files = resolve(settings.model.source, cache_dir=cache_dir, notice=notices.print)
    shape = replace(settings.model, num_threads=settings.bench.num_threads)
    model, tokenizer = open_language_model(shape, cache_dir, notices.print)
    dtype = TORCH_DTYPES[settings.model.dtype]
    return Workbench(
        model=model,
        tokenizer=tokenizer,
        open_module=lambda: load_module(files.folder, dtype),
        engine=settings.engine,
        draft=settings.draft,
        prompts=load_workload(Path(settings.bench.workload), tokenizer.encode_chat),
        warmup=one_of_each_kind(load_workload(Path(settings.bench.warmup), tokenizer.encode_chat)),
        max_tokens=settings.bench.max_tokens,
        num_repeats=settings.bench.num_repeats,
        clock=SystemClock(),
        tell=lambda line: notices.print(line, highlight=False, style="dim"),
        conditions=bench_conditions(settings, model),
    )


def bench_conditions(settings: BenchJob, model: LanguageModel) -> str:
    identity = model.identity
    return (
        f"{settings.model.source.split('#')[0]}, {settings.model.dtype.value}, "
        f"{identity['runtime'].split('-')[0]} on {hardware().cpu}, "
        f"{settings.bench.num_threads} threads, greedy, at most {settings.bench.max_tokens} "
        f"tokens, prefix caching and shared corpus off, paired A B A B, "
        f"{settings.bench.num_repeats} repeats"
    )


def tracker(settings: TrackingSettings) -> Tracker:
    if not settings.enabled:
        return NoTracker()
    return MlflowTracker(
        uri=settings.uri or sqlite_uri(RUNS / "outrider.db"),
        experiment=settings.experiment,
        spool_dir=RUNS / "spool",
    )


def engine_recipe(settings: BulkJob, cache_dir: Path) -> EngineRecipe:
    """The engine of one bulk worker: its threads are the cores that the worker was given."""
    num_threads = cpus_per_worker(settings.bulk, num_cores())
    draft = settings.draft
    if draft.model is not None:
        draft = replace(draft, model=with_threads(draft.model, num_threads))
    return EngineRecipe(
        model=with_threads(settings.model, num_threads),
        draft=draft,
        engine=settings.engine,
        cache_dir=cache_dir,
        trace_dir=Path(settings.bulk.job_dir).absolute() / "trace"
        if settings.engine.trace
        else None,
    )
