"""A recorded run with the release it measured: what comparisons are between. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from outrider.compare.condition import Facts
from outrider.compare.value import HIGH, LOW, Measure, end_of_interval
from outrider.tracking.history import RecordedRun
from outrider.tracking.registry import Version

FINISHED = "FINISHED"
SWEEP, CONTENDER = "sweep", "contender"
RUNG_TAG = "rung"
VERSION_TAG = "release.version"
FINGERPRINT_TAG = "release.fingerprint"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One run; `version` is None where its release was never registered."""

    run: RecordedRun
    version: Version | None = None

    @property
    def name(self) -> str:
        return self.run.name

    @property
    def kind(self) -> str:
        """Of its run; a contender in a rung of a search, on some of the prompts, is a `sweep`."""
        return SWEEP if RUNG_TAG in self.run.tags else self.run.kind

    @property
    def identity(self) -> str:
        """What makes two runs runs of one release: its fingerprint, or else its name."""
        return self.run.tags.get(FINGERPRINT_TAG) or self.run.name

    @property
    def in_flight(self) -> str:
        return self.run.params.get("in_flight", "")

    @property
    def part(self) -> str:
        return self.run.tags.get("part", "")

    @property
    def is_finished(self) -> bool:
        return self.run.status == FINISHED

    @property
    def title(self) -> str:
        """`3 champion`; empty where the release was never registered."""
        if self.version is None:
            return ""
        return " ".join((str(self.version.number), *sorted(self.version.aliases)))

    @property
    def facts(self) -> Facts:
        """Everything that conditions may name. A figure wins over a param, a param over a tag."""
        run, version = self.run, self.version
        own = {"name": run.name, "kind": self.kind, "status": run.status, "run_id": run.run_id}
        own |= {"trial": run.parent_id} if run.parent_id else {}
        if version is not None:
            own |= {"version": str(version.number), "alias": ",".join(version.aliases)}
        return {**run.tags, **run.params, **run.metrics, **own}

    def measure(self, name: str) -> Measure | None:
        """A figure with its interval, where both ends of it were recorded."""
        metrics = self.run.metrics
        if name not in metrics:
            return None
        low, high = (metrics.get(end_of_interval(name, end)) for end in (LOW, HIGH))
        return Measure(metrics[name], low, high)


def candidates(runs: Sequence[RecordedRun], versions: Sequence[Version]) -> list[Candidate]:
    """`runs`, in their order, each with its registered version."""
    by_number = {str(version.number): version for version in versions}
    by_fingerprint = {version.fingerprint: version for version in versions}
    return [Candidate(run=run, version=_of(run, by_number, by_fingerprint)) for run in runs]


def _of(
    run: RecordedRun, by_number: Mapping[str, Version], by_fingerprint: Mapping[str, Version]
) -> Version | None:
    fingerprint = run.tags.get(FINGERPRINT_TAG, "")
    return by_fingerprint.get(fingerprint) or by_number.get(run.tags.get(VERSION_TAG, ""))
