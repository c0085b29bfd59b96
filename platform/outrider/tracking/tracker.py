"""Where runs are recorded: the Protocol that jobs write to, and the null object."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from outrider.tracking.release_record import ReleaseRecord

NO_TAGS: Mapping[str, str] = MappingProxyType({})


class RunStatus(StrEnum):
    """How a run ended."""

    FINISHED = "FINISHED"  # the job did what it was asked
    FAILED = "FAILED"  # an error ended it
    KILLED = "KILLED"  # SIGTERM, Ctrl-C, or its process is gone


class Run(Protocol):
    """One job's record. No method raises because the store is away, none is meant per request."""

    @property
    def run_id(self) -> str: ...

    def log_window(self, metrics: Mapping[str, float], step: int, at_s: float) -> None:
        """Record one window of figures, all of one `step`, `at_s` seconds after the epoch.

        Figures that are not finite are left out: a gap in a series is honest, 1.8e308 is not.
        """

    def log_final(self, metrics: Mapping[str, float]) -> None:
        """Record the figures of the whole run."""

    def log_artifact(self, path: Path, folder: str = "") -> None:
        """Keep a copy of a file, in `folder` of the run's artifacts. The file must stay."""

    def log_text(self, text: str, name: str) -> None:
        """Keep `text` as the artifact `name`, for instance `config.yaml`."""

    def set_tags(self, tags: Mapping[str, str]) -> None: ...

    def register(self, record: ReleaseRecord) -> None:
        """Register the release that ran, once for its fingerprint, and tag the run with its number
        (`release.version`). A store that is away does so later.
        """

    def flush(self) -> None:
        """Return when what was recorded so far is in the store or, while it is away, on disk."""

    def close(self, status: RunStatus) -> None:
        """End the run. The first status stays; calling again only waits for what is unwritten."""


class Tracker(Protocol):
    """Starts runs."""

    def start_run(
        self,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str] = NO_TAGS,
        parent: Run | None = None,
    ) -> Run:
        """Begin a run of a `kind` of job (bulk, bench, ...); nested `params` become dotted keys.

        It is shown under `parent`, where one is given.
        """

    def resume_run(
        self,
        run_id: str,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str] = NO_TAGS,
    ) -> Run:
        """Go on in a run that has ended: it is running again, and ends with the new status.

        Params are immutable: one that the run has keeps its value, and a differing one becomes
        the tag `resumed.<name>`. An id that the store does not know begins a run as `start_run`.
        """

    @property
    def open_command(self) -> str:
        """The command by which a person looks at the runs; empty where there are none."""

    def close(self) -> None:
        """Write out what is waiting."""


class NoRun:
    """A run that nobody records."""

    run_id = ""

    def log_window(self, metrics: Mapping[str, float], step: int, at_s: float) -> None: ...
    def log_final(self, metrics: Mapping[str, float]) -> None: ...
    def log_artifact(self, path: Path, folder: str = "") -> None: ...
    def log_text(self, text: str, name: str) -> None: ...
    def set_tags(self, tags: Mapping[str, str]) -> None: ...
    def register(self, record: ReleaseRecord) -> None: ...
    def flush(self) -> None: ...
    def close(self, status: RunStatus) -> None: ...


class NoTracker:
    """`tracking.enabled=false`."""

    open_command = ""

    def start_run(
        self,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str] = NO_TAGS,
        parent: Run | None = None,
    ) -> NoRun:
        return NoRun()

    def resume_run(
        self,
        run_id: str,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str] = NO_TAGS,
    ) -> NoRun:
        return NoRun()

    def close(self) -> None: ...
