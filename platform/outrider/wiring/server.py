"""Live serving out of its settings."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from outrider.cluster.cores import is_given, num_cores
from outrider.cluster.environment import prepare_environment
from outrider.config.schema import (
    ConsoleSettings,
    ModelSettings,
    ServeAction,
    ServeJob,
    ServingSettings,
)
from outrider.core import SystemClock
from outrider.models import default_cache_dir, source
from outrider.serving.ready import url_of
from outrider.tracking.provenance import collect
from outrider.tracking.release import make_release
from outrider.wiring.parts import as_registered, fetch
from outrider.wiring.stores import BEACONS, REPOSITORY, ROLLOUTS, RUNS, tracker, uri_of


def serve(settings: ServeJob, words: Sequence[str] = ()) -> int:
    """Serve until Ctrl-C, or write what a cluster needs to do so."""
    prepare_environment()  # Ray reads it when imported
    from outrider.serving.command import Server, check_place
    from outrider.serving.placement import check_cores, cpus_per_replica

    notices, cache_dir = Console(stderr=True), default_cache_dir(os.environ)
    if not is_given():
        check_cores(settings.serving, num_cores())
    if settings.action is ServeAction.RUN:
        check_place(settings.serving)
    settings, registered = as_registered(settings, words)
    settings = placed(settings)
    cpus = cpus_per_replica(settings.serving, num_cores())
    target, draft = fetch(
        settings.model, settings.draft, cache_dir, notices, settings.tracking.models_uri
    )
    resources = {"num_replicas": settings.serving.num_replicas, "cores_per_replica": cpus}
    release = make_release(settings, target, draft, collect(REPOSITORY), words, resources)
    if registered:
        release = registered.confirmed(release, settings.accept)
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
        bind_gateway(settings, fingerprint=fingerprint, created=created, listens=not is_given()),
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
    draft = replace(draft, head=replace(draft.head, source=source.anchored(draft.head.source)))
    if draft.model is not None:
        draft = replace(draft, model=anchored(draft.model))
    return replace(
        settings,
        serving=serving,
        draft=draft,
        model=anchored(settings.model),
        tracking=replace(settings.tracking, uri=uri_of(settings.tracking)),
        console=placed_console(settings.console, serving),
    )


def placed_console(console: ConsoleSettings, serving: ServingSettings) -> ConsoleSettings:
    """With all that is left open in it said: the gateway knows no repository."""
    return replace(
        console,
        database=_checked(console.database) or ROLLOUTS,
        url=console.url or url_of(serving),
        beacons_dir=str(Path(console.beacons_dir or BEACONS).absolute()),
    )


def _checked(database: str) -> str:
    """Refused here by its key: the gateway would only say so on its page."""
    if database:
        from outrider.rollout.database import check_address  # SQLAlchemy takes its time

        check_address(database, "console.database")
    return database


def anchored(model: ModelSettings) -> ModelSettings:
    return replace(model, source=source.anchored(model.source))
