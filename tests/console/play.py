"""A scene that a test changes while a page shows it."""

from __future__ import annotations

from dataclasses import dataclass

from outrider.console.snapshot import Snapshot


@dataclass
class Play:
    """A scene that a test changes."""

    now: Snapshot

    def __call__(self) -> Snapshot:
        return self.now
