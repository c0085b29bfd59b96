"""A run whose entries leave through an outbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from outrider.core import Clock
from outrider.tracking.entry import Closed, Figures, FileKept, Registered, Tagged, TextKept
from outrider.tracking.names import MAX_TAG, encodable, finite, fitting
from outrider.tracking.outbox import Mail, Outbox
from outrider.tracking.release_record import ReleaseRecord
from outrider.tracking.tracker import RunStatus

CLOSE_WAIT_S = 10.0


class OutboxRun:
    """A run whose entries leave in the background."""

    def __init__(self, outbox: Outbox, mail: Mail, clock: Clock) -> None:
        self._outbox = outbox
        self._mail = mail
        self._clock = clock
        self._is_closed = False

    @property
    def run_id(self) -> str:
        """The store's id; `local-<key>` while the store is away (`key` is a tag of the run)."""
        return self._mail.opened.shown_id

    def wait_for_id(self, timeout_s: float) -> None:
        """Return when the store named the run, or it is known to be away."""
        self._mail.answered.wait(timeout_s)

    def log_window(self, metrics: Mapping[str, float], step: int, at_s: float) -> None:
        self._outbox.put(self._mail, Figures(metrics=finite(metrics), step=step, at_s=at_s))

    def log_final(self, metrics: Mapping[str, float]) -> None:
        self.log_window(metrics, step=0, at_s=self._clock.time())

    def log_artifact(self, path: Path, folder: str = "") -> None:
        self._outbox.put(self._mail, FileKept(path=str(path.absolute()), folder=folder))

    def log_text(self, text: str, name: str) -> None:
        self._outbox.put(self._mail, TextKept(text=encodable(text), name=name))

    def set_tags(self, tags: Mapping[str, str]) -> None:
        short, texts = fitting(tags, limit=MAX_TAG, folder="tags")
        if short:
            self._outbox.put(self._mail, Tagged(tags=short))
        for artifact, text in texts.items():
            self.log_text(text, name=artifact)

    def register(self, record: ReleaseRecord) -> None:
        self._outbox.put(self._mail, Registered(record=record.to_json()))

    def flush(self) -> None:
        self._outbox.flush(CLOSE_WAIT_S, is_last_try=False)

    def close(self, status: RunStatus) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._outbox.put(self._mail, Closed(status=status, at_s=self._clock.time()))
        is_child = bool(self._mail.opened.parent)  # many may close, one behind the other
        self._outbox.flush(CLOSE_WAIT_S, is_last_try=not is_child)
