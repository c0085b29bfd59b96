"""The running service, as a rollout sees it. Fakes: `outrider.testing.MemoryService`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from outrider.rollout.status import Candidate
from outrider.serving.health import Health as Health
from outrider.serving.sample import Cursor, Reading
from outrider.serving.split import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseState:
    """One release of the service."""

    fingerprint: str
    health: Health
    message: str = ""  # why it failed
    num_replicas: int = 0  # that answer
    fallen: str = ""  # why it fell back to plain decoding, and again when tried; empty: it did not


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceState:
    """What the gateway says of itself."""

    plan: Plan
    model: str = ""
    releases: Mapping[str, ReleaseState] = field(default_factory=dict)


class Service(Protocol):
    """Every method may be called again with the same effect. Raises `Fault` while it is away."""

    def state(self) -> ServiceState: ...

    def deploy(self, candidate: Candidate) -> None:
        """Begin to start its replicas beside stable's; nothing where they are there."""
        ...

    def remove(self, name: str) -> None:
        """Let it end what is in flight and go. UserError where the plan still names it."""
        ...

    def put_plan(self, plan: Plan) -> None:
        """Nothing where the gateway has this revision or a later one."""
        ...

    def read(self, cursor: Cursor) -> Reading:
        """What ended since."""
        ...

    def ask(self, release: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """The whole answer of one release to a chat completion, outside all samples.

        UserError where it is refused.
        """
        ...
