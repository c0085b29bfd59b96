"""What outlives a gateway and its replicas: the plan, the releases, how each is to decode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from outrider.config.typed import typed
from outrider.serving.messages import Control
from outrider.serving.split import Plan

PLAN, RELEASE, CONTROL, OWNER, RUN = "plan", "release/", "control/", "owner", "run"


class Kept(Protocol):
    """Small JSON objects by key. Any thread may call; `Fault` while nobody answers."""

    def read(self, key: str) -> Mapping[str, Any] | None: ...

    def write(self, key: str, value: Mapping[str, Any]) -> None: ...

    def forget(self, key: str) -> None:
        """Nothing where it is not there."""
        ...

    def names(self, prefix: str = "") -> list[str]: ...


class MemoryKept:
    """Outlives whoever is given it."""

    def __init__(self) -> None:
        self._values: dict[str, Mapping[str, Any]] = {}

    def read(self, key: str) -> Mapping[str, Any] | None:
        return self._values.get(key)

    def write(self, key: str, value: Mapping[str, Any]) -> None:
        self._values[key] = value

    def forget(self, key: str) -> None:
        self._values.pop(key, None)

    def names(self, prefix: str = "") -> list[str]:
        return sorted(key for key in self._values if key.startswith(prefix))


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a gateway knows of a release without asking it."""

    fingerprint: str
    is_coupled: bool = True  # the same seed gives the same tokens in every release that is so too


def kept_plan(kept: Kept) -> Plan | None:
    found = kept.read(PLAN)
    return None if found is None else typed(Plan, found)


def kept_releases(kept: Kept) -> dict[str, Card]:
    """By name, in their order."""
    names = [key.removeprefix(RELEASE) for key in kept.names(RELEASE)]
    found = {name: kept.read(RELEASE + name) for name in names}
    return {name: typed(Card, value) for name, value in found.items() if value is not None}


def kept_control(kept: Kept, release: str) -> Control:
    """How its replicas are to decode: what was said last, else as they are made."""
    found = kept.read(CONTROL + release)
    return Control() if found is None else typed(Control, found)


def kept_run(kept: Kept) -> str | None:
    """MLflow's id of the server's run; empty where there is none, None where nobody said so yet."""
    found = kept.read(RUN)
    return None if found is None else str(found["run_id"])


def keep_plan(kept: Kept, plan: Plan) -> None:
    kept.write(PLAN, asdict(plan))


def keep_release(kept: Kept, name: str, card: Card) -> None:
    kept.write(RELEASE + name, asdict(card))


def keep_control(kept: Kept, release: str, control: Control) -> None:
    kept.write(CONTROL + release, asdict(control))


def keep_run(kept: Kept, run_id: str) -> None:
    kept.write(RUN, {"run_id": run_id})


def forget_release(kept: Kept, name: str) -> None:
    for prefix in (RELEASE, CONTROL):
        kept.forget(prefix + name)


def forget_all(kept: Kept) -> None:
    for key in kept.names():
        kept.forget(key)
