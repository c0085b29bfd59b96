"""What the routes work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from outrider.config.schema import ServingSettings
from outrider.core import SamplingParams
from outrider.serving.addition import Addition
from outrider.serving.desk import Desk
from outrider.serving.fleet import Fleet
from outrider.serving.keys import Keys
from outrider.serving.messages import ReplicaStats
from outrider.serving.request_entry import RequestEntry
from outrider.serving.watch import Watch


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One gateway's own things; `fleet` reaches the releases."""

    fleet: Fleet
    settings: ServingSettings
    model: str  # name that /v1/models shows
    defaults: SamplingParams  # where a request is silent
    created: int  # seconds since 1970
    keys: Keys = Keys()  # noqa: RUF009 - an empty set of keys has no state
    admin_keys: Keys = Keys()  # noqa: RUF009
    log: Callable[[RequestEntry], None] = lambda entry: None
    metrics: Callable[[list[ReplicaStats]], bytes] = lambda stats: b""
    watch: Watch = field(default_factory=Watch)  # this one watches nothing
    additions: tuple[Addition, ...] = ()  # what else is served
    close: Callable[[], None] = lambda: None  # when the gateway ends

    @property
    def desk(self) -> Desk:
        return self.fleet.desk

    @property
    def names(self) -> frozenset[str]:
        """What a request may call the model. The first release's name stays good when another
        one has taken its place.
        """
        return frozenset({self.model, self.settings.name, *self.desk.releases})
