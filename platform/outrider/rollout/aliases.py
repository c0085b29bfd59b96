"""Who is champion and challenger, as a rollout moves."""

from __future__ import annotations

from dataclasses import dataclass

from outrider.core import Fault
from outrider.rollout.layout import IN_CHARGE
from outrider.rollout.phase import Phase
from outrider.rollout.status import Status
from outrider.rollout.store import Store
from outrider.tracking.registry import NAME, Alias, Registry

ASKED, GIVEN = "asked", "given"
BACK = "champion back"


@dataclass(frozen=True, slots=True)
class Aliases:
    """Each is given once in a rollout, and read back: what a person gives later is theirs."""

    store: Store
    registry: Registry

    def settle(self, status: Status) -> None:
        """Give what the phase asks for. Nothing for a candidate that is not registered.

        Raises Fault while the registry is away, UserError where the version is gone.
        """
        if not status.candidate.version:
            return
        if status.phase in IN_CHARGE:
            self._once(status, Alias.CHAMPION.value, Alias.CHAMPION, status.candidate.version)
        elif status.phase.is_bad_end:
            self._give_back(status)
        elif status.phase is not Phase.PENDING and not self._is_champion(status):
            self._once(status, Alias.CHALLENGER.value, Alias.CHALLENGER, status.candidate.version)

    def _give_back(self, status: Status) -> None:
        """After a promotion only; it may have been cut short before the alias was read back."""
        if not self.store.note(status.rollout_id, Alias.CHAMPION.value):
            return
        for version in self.registry.versions():
            if version.fingerprint == status.stable_fingerprint:
                self._once(status, BACK, Alias.CHAMPION, version.number)

    def _once(self, status: Status, name: str, alias: Alias, number: int) -> None:
        if self.store.note(status.rollout_id, name) == GIVEN:
            return
        self.store.keep(status.rollout_id, name, ASKED)
        self.registry.give(alias, number)
        held = self.registry.find(f"models:/{NAME}@{alias}").number
        if held != number:
            raise Fault(f"the registry says that version {held} is {alias}, not {number}")
        self.store.keep(status.rollout_id, name, GIVEN)

    def _is_champion(self, status: Status) -> bool:
        """Then it can't be its own challenger: a champion that this service does not run yet."""
        if self.store.note(status.rollout_id, Alias.CHALLENGER.value) == GIVEN:
            return False
        return any(
            Alias.CHAMPION in version.aliases
            for version in self.registry.versions()
            if version.number == status.candidate.version
        )
