"""What the operator names as `release` -> the candidate that a service is to deploy."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Console

from outrider.cluster.cores import num_cores
from outrider.config.load import load
from outrider.config.schema import RolloutJob, ServeJob
from outrider.config.typed import plain
from outrider.core import UserError
from outrider.models import default_cache_dir
from outrider.rollout.status import Candidate
from outrider.serving.placement import cpus_per_replica
from outrider.tracking.provenance import collect
from outrider.tracking.rebuild import Registered
from outrider.tracking.registry import Registry, Version
from outrider.tracking.release import Release, make_release
from outrider.wiring.parts import fetch, with_pinned_sources
from outrider.wiring.server import placed
from outrider.wiring.stores import REPOSITORY

URI = "models:/"
NAME = "serve"  # of the command whose settings a release is made of


@dataclass(frozen=True)
class CandidateMaker:
    """Models are fetched, not loaded; a release that is new is registered."""

    settings: RolloutJob
    registry: Registry

    def candidate(self, text: str) -> Candidate:
        """`text`: models:/outrider@challenger, or overrides of jobs/serve.py in one word."""
        if text.startswith(URI):
            job, release, version = self._registered(text)
        else:
            job, release, version = self._composed(text)
        name = f"v{version.number}"
        serving = replace(job.serving, name=name)
        return Candidate(
            name=name,
            fingerprint=release.fingerprint,
            settings=plain(replace(job, serving=serving)),
            cpus=cpus_per_replica(serving, num_cores()),
            version=version.number,
            uri=text,
        )

    def _registered(self, uri: str) -> tuple[ServeJob, Release, Version]:
        found = Registered.found(self.registry, uri)
        job = placed(with_pinned_sources(found.rebuilt(self._composition([]), ())))
        release = found.confirmed(_release(job), self.settings.accept)
        return job, release, found.version

    def _composed(self, text: str) -> tuple[ServeJob, Release, Version]:
        try:
            job = placed(with_pinned_sources(self._composition(_words(text))))
            release = _release(job)
        except UserError as error:
            raise UserError(f"release: {error}") from error
        return job, release, self.registry.register(release.record, run_id="")

    def _composition(self, words: Sequence[str]) -> ServeJob:
        """As `jobs/serve.py` has it; mlflow: sources are where this rollout's releases are."""
        return replace(load(ServeJob, NAME, words), tracking=self.settings.tracking)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UserError(f"{text!r}: {error}") from error


def _release(job: ServeJob) -> Release:
    cache_dir, notices = default_cache_dir(os.environ), Console(stderr=True)
    target, draft = fetch(job.model, job.draft, cache_dir, notices, job.tracking.models_uri)
    return make_release(job, target, draft, collect(REPOSITORY))
