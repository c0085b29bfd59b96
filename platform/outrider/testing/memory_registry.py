"""A registry in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from outrider.core import Clock
from outrider.testing.manual_clock import ManualClock
from outrider.tracking.registry import Alias, Version, chosen, renamed, uri_of
from outrider.tracking.release_record import ReleaseRecord


class MemoryRegistry:
    """Keeps every release that was registered, and nothing when the process ends."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or ManualClock()
        self._versions: list[Version] = []
        self._records: list[ReleaseRecord] = []  # of version number - 1
        self._aliases: dict[str, int] = {}

    def register(self, record: ReleaseRecord, run_id: str) -> Version:
        for version in self.versions():
            if version.fingerprint == record.fingerprint:
                return version
        made = Version(
            number=len(self._versions) + 1,
            fingerprint=record.fingerprint,
            run_id=run_id,
            created_s=self._clock.time(),
            tags=record.tags,
        )
        self._versions.append(made)
        self._records.append(record)
        return made

    def find(self, uri: str) -> Version:
        return chosen(uri, self.versions())

    def record(self, version: Version) -> ReleaseRecord:
        return self._records[version.number - 1]

    def versions(self) -> Sequence[Version]:
        return [replace(each, aliases=self._aliases_of(each.number)) for each in self._versions]

    def give(self, alias: Alias, number: int) -> None:
        self.find(uri_of(number))
        self._aliases = renamed(self._aliases, alias, number)

    def set_tags(self, number: int, tags: Mapping[str, str]) -> None:
        version = self.find(uri_of(number))
        kept = replace(version, aliases=(), tags={**version.tags, **tags})
        self._versions[number - 1] = kept

    def _aliases_of(self, number: int) -> tuple[str, ...]:
        return tuple(sorted(alias for alias, held in self._aliases.items() if held == number))
