"""The run of a job that decodes with one release."""

from __future__ import annotations

from collections.abc import Mapping

from outrider.tracking.release import Release
from outrider.tracking.tracker import Run, Tracker


def start_released(
    tracker: Tracker, release: Release, *, name: str, kind: str, params: Mapping[str, object]
) -> Run:
    """Start it with the release's own params, tags and texts, and register the release."""
    run = tracker.start_run(
        name=name,
        kind=kind,
        params={
            **release.settings,
            **release.params,
            "fingerprint": release.fingerprint,
            **params,
        },
        tags=release.run_tags,
    )
    run.register(release.record)
    for artifact, text in release.texts.items():
        run.log_text(text, name=artifact)
    return run
