"""What a Serve config names: builders that turn its plain arguments into applications.

`import_path: outrider.entry:release` and `outrider.entry:gateway`; `serving.export` writes them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from outrider.config.limits import validate
from outrider.config.schema import RuleKind, ServeJob
from outrider.config.typed import typed
from outrider.console.recipe import ConsoleRecipe
from outrider.models import default_cache_dir
from outrider.recipe import EngineRecipe, with_threads
from outrider.serving.addition import MakeAddition
from outrider.serving.application import release_application
from outrider.serving.gateway import First, gateway_application
from outrider.serving.kept import Card
from outrider.serving.ready import model_name
from outrider.serving.service_recipe import ServiceRecipe

CANDIDATE = "outrider.entry:candidate"


def release(args: Mapping[str, Any]) -> Any:
    """The engines. `args`: settings (as `--cfg` prints them), cpus."""
    return bind_release(_settings(args), cpus=int(args["cpus"]))


def gateway(args: Mapping[str, Any]) -> Any:
    """The API. `args`: settings, fingerprint, created (seconds since 1970)."""
    return bind_gateway(
        _settings(args),
        fingerprint=str(args["fingerprint"]),
        created=int(args["created"]),
        listens=False,
    )


def candidate(settings: Mapping[str, Any], name: str, cpus: int) -> Any:
    """The engines of a release that a rollout starts beside others: CANDIDATE names it."""
    job = _settings({"settings": settings})
    return bind_release(replace(job, serving=replace(job.serving, name=name)), cpus=cpus)


def bind_release(job: ServeJob, *, cpus: int) -> Any:
    """The Serve application of the engines, each on `cpus` cores."""
    draft = job.draft
    if draft.model is not None:
        draft = replace(draft, model=with_threads(draft.model, cpus))
    recipe = EngineRecipe(
        model=with_threads(job.model, cpus),
        draft=draft,
        engine=job.engine,
        cache_dir=Path(default_cache_dir(os.environ)),
        store=job.tracking.models_uri,
    )
    return release_application(recipe.live, job.serving, job.engine, num_cpus=cpus)


def bind_gateway(job: ServeJob, *, fingerprint: str, created: int, listens: bool) -> Any:
    """The Serve application of the API, which listens itself or has Serve's proxies before it."""
    recipe = ServiceRecipe(
        settings=job.serving,
        engine=job.engine,
        sampling=job.sampling,
        model=model_name(job.model.source),
        created=created,
        additions=additions(job),
    )
    first = First(
        card=Card(fingerprint=fingerprint, is_coupled=job.engine.rule is RuleKind.COUPLED),
        created=created,
        build=CANDIDATE,
    )
    return gateway_application(recipe, job.serving, first, listens=listens)


def additions(job: ServeJob) -> tuple[MakeAddition, ...]:
    """What the gateway serves beside its own."""
    if not job.console.enabled:
        return ()
    store = job.tracking.uri if job.tracking.enabled else ""
    return (ConsoleRecipe(settings=job.console, store=store),)


def _settings(args: Mapping[str, Any]) -> ServeJob:
    job = typed(ServeJob, args["settings"])
    validate(job)
    return job
