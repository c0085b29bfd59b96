"""What the routes work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from outrider.config.schema import ServingSettings
from outrider.core import SamplingParams
from outrider.serving.desk import Desk
from outrider.serving.keys import Keys
from outrider.serving.messages import ReplicaStats
from outrider.serving.request_entry import RequestEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One gateway's own things; `desk` reaches the releases."""

    desk: Desk
    settings: ServingSettings
    model: str  # name that /v1/models shows
    fingerprint: str
    defaults: SamplingParams  # where a request is silent
    created: int  # seconds since 1970
    keys: Keys = Keys()  # noqa: RUF009 - an empty set of keys has no state
    admin_keys: Keys = Keys()  # noqa: RUF009
    log: Callable[[RequestEntry], None] = lambda entry: None
    metrics: Callable[[list[ReplicaStats]], bytes] = lambda stats: b""
    close: Callable[[], None] = lambda: None  # when the gateway ends

    @property
    def names(self) -> frozenset[str]:
        """What a request may call the model."""
        return frozenset({self.model, *self.desk.releases})
