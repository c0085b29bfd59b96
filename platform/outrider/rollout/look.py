"""One look at a rollout: the service, what ended since, what operators ask, what is due."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from outrider.core import Fault, UserError
from outrider.rollout.analysis import judge
from outrider.rollout.complaints import Complaints
from outrider.rollout.confirm import Confirming
from outrider.rollout.gates import num_stages
from outrider.rollout.notice import notice
from outrider.rollout.observation import Observation
from outrider.rollout.phase import Phase
from outrider.rollout.ports import Health, Service, ServiceState
from outrider.rollout.reconcile import begun_anew
from outrider.rollout.status import Status
from outrider.rollout.store import Rollout, Store
from outrider.rollout.sums import Sums
from outrider.rollout.verdict import Judgement
from outrider.rollout.warm_up import WarmUp
from outrider.rollout.webhooks import Webhooks
from outrider.serving.split import Arm

PRE, WARMED = "pre", "warmed"  # notes: what need not be asked again


@dataclass(kw_only=True)
class Looking:
    """Gathers what `advance` decides on. It writes nothing but what was asked for once."""

    store: Store
    service: Service
    confirming: Confirming
    webhooks: Webhooks
    complaints: Complaints
    refusal: str = ""  # why the service would not deploy the candidate; empty: it did
    _warm_up: WarmUp = field(default_factory=WarmUp, init=False)

    def look(
        self, rollout: Rollout, state: ServiceState | None, *, is_settled: bool
    ) -> tuple[Rollout, Observation]:
        """The rollout with the evidence that is new, and what is seen. None: it is away."""
        status = rollout.status
        orders = self.store.commands(status.rollout_id, waiting=True)
        bare = Observation(revision=status.revision, commands=orders)
        if state is None:
            return rollout, bare
        try:
            rollout = self._with_evidence(rollout)
        except (Fault, UserError) as error:
            self.complaints.about("samples", str(error))
            return rollout, bare
        self.complaints.about("samples")
        has_warmed = self._has_warmed(status, state)
        health, failure = self._health(status, state)
        seen = replace(
            bare,
            health=health,
            failure=failure,
            fallen=_fallen(status, state),
            begun_anew=begun_anew(state, status),
            has_warmed=has_warmed,
            is_stable_there=_health_of(state, status.stable) is Health.READY,
            judgement=rollout.judgement,
            num_stable=rollout.sums.num(Arm.STABLE),
            num_candidate=rollout.sums.num(Arm.CANDIDATE),
            num_shadow=rollout.sums.num_shadow,
            confirmation=self._confirmation(rollout, health),
            pre_answered=self._pre_answered(status),
            is_settled=is_settled,
        )
        return rollout, seen

    def _with_evidence(self, rollout: Rollout) -> Rollout:
        reading = self.service.read(rollout.cursor)
        if reading.cursor == rollout.cursor:
            return rollout
        sums = rollout.sums.after(reading)
        return replace(rollout, sums=sums, cursor=reading.cursor, judgement=_judged(rollout, sums))

    def _health(self, status: Status, state: ServiceState) -> tuple[Health, str]:
        failure = self.refusal or self._warm_up.failure
        if failure:
            return Health.FAILED, failure
        release = state.releases.get(status.candidate.name)
        return (release.health, release.message) if release else (Health.STARTING, "")

    def _has_warmed(self, status: Status, state: ServiceState) -> bool:
        if status.phase is not Phase.WARMING:
            return False
        if self.store.note(status.rollout_id, WARMED):
            return True
        name = status.candidate.name
        if _health_of(state, name) is not Health.READY:
            return False
        if not self._warm_up.answers(self.service, name):
            return False
        self.store.keep(status.rollout_id, WARMED, WARMED)
        return True

    def _confirmation(self, rollout: Rollout, health: Health) -> Judgement | None:
        status = rollout.status
        if status.phase is not Phase.CONFIRMING or status.is_paused or health is not Health.READY:
            return None
        try:
            found = self.confirming.step(rollout)
        except (Fault, UserError) as error:
            self.complaints.about("confirmation", str(error))
            return None
        self.complaints.about("confirmation")
        return found

    def _pre_answered(self, status: Status) -> bool:
        if status.phase is not Phase.PENDING or self.store.note(status.rollout_id, PRE):
            return True
        refusal = self.webhooks.ask(notice(status))
        self.complaints.about("pre webhook", refusal)
        if not refusal:
            self.store.keep(status.rollout_id, PRE, PRE)
        return not refusal


def _judged(rollout: Rollout, sums: Sums) -> Judgement:
    """While the confirmation is decoded, the last step of the canary goes on: so do its gates."""
    phase = rollout.status.phase
    if phase is Phase.CONFIRMING:
        phase = Phase.CANARY
    return judge(sums, rollout.gates, phase=phase, num_stages=num_stages(rollout.plan))


def _fallen(status: Status, state: ServiceState) -> str:
    """A fall of stable too is the traffic's doing."""
    candidate, stable = (
        state.releases.get(name) for name in (status.candidate.name, status.stable)
    )
    return candidate.fallen if candidate and stable and not stable.fallen else ""


def _health_of(state: ServiceState, name: str) -> Health | None:
    release = state.releases.get(name)
    return release.health if release else None
