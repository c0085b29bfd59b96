"""The benches out of their settings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from outrider.bench.experiments import EXPERIMENTS
from outrider.bench.figure import Figure
from outrider.bench.http_bench import HttpBench
from outrider.bench.http_experiments import HTTP_EXPERIMENTS
from outrider.bench.http_rollout import TWIN
from outrider.bench.http_server import Serving
from outrider.bench.run import chosen
from outrider.bench.run import run as run_bench
from outrider.bench.workbench import Workbench
from outrider.bench.workload import load_workload, one_of_each_kind
from outrider.cluster.cores import num_cores
from outrider.config.load import load
from outrider.config.schema import BenchJob, BenchTarget, Part, ServeJob
from outrider.config.typed import plain
from outrider.core import SystemClock, UserError
from outrider.engine.language_model import LanguageModel
from outrider.engine.runtimes.loading import TORCH_DTYPES, load_module
from outrider.models import HfTokenizer, default_cache_dir, resolve
from outrider.recipe import EngineRecipe, open_language_model
from outrider.tracking.lifecycle import closing
from outrider.tracking.provenance import collect, hardware
from outrider.tracking.release import Release, make_release
from outrider.tracking.released_run import start_released
from outrider.tracking.tracker import Run
from outrider.wiring.parts import as_registered, fetch
from outrider.wiring.server import placed
from outrider.wiring.stores import REPOSITORY, RUNS, models_uri, tracker


def bench(settings: BenchJob, words: Sequence[str] = ()) -> int:
    """Measure the figures, print them, write them. 1 where one misses its bound."""
    if settings.trial.part is Part.CONFIRMATION:
        raise UserError("trial.part=confirmation needs releases to confirm: give releases=[...]")
    is_live = settings.bench.target is BenchTarget.HTTP
    # A wrong name fails before a model is loaded.
    only = chosen(settings.bench.only, HTTP_EXPERIMENTS if is_live else EXPERIMENTS)
    settings, release = released(settings, words)
    with closing(started(settings, release)) as record:
        measure = live_figures if is_live else engine_figures
        figures = measure(settings, only, record)
    return 0 if all(figure.is_reached for figure in figures) else 1


def engine_figures(settings: BenchJob, only: Sequence[str], record: Run) -> list[Figure]:
    out = Path(settings.bench.out or RUNS / "figures.json")
    return run_bench(workbench(settings), EXPERIMENTS, only, out, Console(), record)


def live_figures(settings: BenchJob, only: Sequence[str], record: Run) -> list[Figure]:
    out = Path(settings.bench.out or RUNS / "figures-http.json")
    return run_bench(http_workbench(settings), HTTP_EXPERIMENTS, only, out, Console(), record)


def released(settings: BenchJob, words: Sequence[str]) -> tuple[BenchJob, Release]:
    """What is measured; where a registered release is named, once it is the same here."""
    settings, registered = as_registered(settings, words)
    cache_dir = default_cache_dir(os.environ)
    store = settings.tracking.models_uri
    target, draft = fetch(settings.model, settings.draft, cache_dir, Console(stderr=True), store)
    release = make_release(settings, target, draft, collect(REPOSITORY), words)
    return settings, registered.confirmed(release, settings.accept) if registered else release


def started(settings: BenchJob, release: Release) -> Run:
    """The run that the figures go into."""
    return start_released(
        tracker(settings.tracking),
        release,
        name=f"figures of {settings.bench.target.value}",
        kind="figures",
        params={"bench": plain(settings.bench)},
    )


def http_workbench(settings: BenchJob) -> HttpBench:
    """Servers as a user starts them, and an engine with the very same settings."""
    bench, notices = settings.bench, Console(stderr=True)
    cache_dir = default_cache_dir(os.environ)
    source, store = settings.model.source, models_uri(settings.tracking)
    files = resolve(source, cache_dir=cache_dir, notice=notices.print, store=store)
    tokenizer = HfTokenizer.load(files.folder)
    recipe = EngineRecipe(
        model=replace(settings.model, num_threads=bench.num_threads or num_cores()),
        draft=replace(settings.draft, ngram=replace(settings.draft.ngram, corpus=False)),
        engine=replace(settings.engine, prefix_caching=False),
        cache_dir=cache_dir,
        store=store,
    )

    def tell(line: str) -> None:
        notices.print(line, highlight=False, style="dim")

    serving = Serving(
        REPOSITORY / "jobs" / "serve.py",
        recipe.model,
        recipe.draft,
        recipe.engine,
        url=bench.url,
        log_dir=RUNS / "bench-http",
        tell=tell,
    )
    return HttpBench(
        serve=serving,
        twin=twin(serving),
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


def twin(serving: Serving) -> dict[str, Any]:
    """What deploys the server's own release a second time."""
    job = placed(load(ServeJob, "serve", serving.command(1)[2:]))
    named = replace(job, serving=replace(job.serving, name=TWIN))
    cpus = job.serving.cpus_per_replica
    return {"settings": plain(named), "cpus": cpus, "fingerprint": TWIN}


def http_conditions(settings: BenchJob) -> str:
    engine, bench = settings.engine, settings.bench
    server = f"server at {bench.url}" if bench.url else "gateway and client on the same cores"
    return (
        f"{model_text(settings)}, {settings.model.dtype.value} on "
        f"{hardware().cpu}, {bench.num_threads or num_cores()} threads, {engine.max_rows} rows, "
        f"{server}, greedy, at most {bench.max_tokens} tokens, prefix caching and shared corpus "
        f"off, paired A B A B, {bench.num_repeats} repeats"
    )


def model_text(settings: BenchJob) -> str:
    source = settings.model.source.split("#")[0]
    return f"{settings.release} ({source})" if settings.release else source


def workbench(settings: BenchJob) -> Workbench:
    """One target on the threads of `bench.num_threads`, and the prompts."""
    notices = Console(stderr=True)
    cache_dir = default_cache_dir(os.environ)
    source, store = settings.model.source, models_uri(settings.tracking)
    files = resolve(source, cache_dir=cache_dir, notice=notices.print, store=store)
    shape = replace(settings.model, num_threads=settings.bench.num_threads)
    parts = EngineRecipe(
        model=shape,
        draft=settings.draft,
        engine=settings.engine,
        cache_dir=cache_dir,
        store=store,
    ).parts()
    model, tokenizer = parts.target, parts.tokenizer
    if parts.head is not None:  # plain decoding is not to pay for what a head reads
        model, _ = open_language_model(shape, cache_dir, notices.print, store)
    dtype = TORCH_DTYPES[settings.model.dtype]
    return Workbench(
        model=model,
        drafted=parts.target,
        tokenizer=tokenizer,
        open_module=lambda: load_module(files.folder, dtype),
        open_drafter=parts.drafter,
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
        f"{model_text(settings)}, {settings.model.dtype.value}, "
        f"{identity['runtime'].split('-')[0]} on {hardware().cpu}, "
        f"{settings.bench.num_threads} threads, greedy, at most {settings.bench.max_tokens} "
        f"tokens, prefix caching and shared corpus off, paired A B A B, "
        f"{settings.bench.num_repeats} repeats"
    )
