"""Rollouts out of their settings: what the operator asks for, on a service that runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from outrider.config.interruption import Terminated
from outrider.config.schema import RolloutAction, RolloutJob
from outrider.core import SystemClock, UserError
from outrider.rollout.assembly import controller_of
from outrider.rollout.command import Verb
from outrider.rollout.confirm import confirmation_prompts
from outrider.rollout.controller import Controller
from outrider.rollout.database import Database
from outrider.rollout.http_service import HttpService
from outrider.rollout.opening import Opening
from outrider.rollout.operator import order, see_through, who
from outrider.rollout.orders import was_refused
from outrider.rollout.phase import Phase
from outrider.rollout.simulation import told
from outrider.rollout.status import Candidate, Status
from outrider.rollout.store import Rollout, Store
from outrider.rollout.webhooks import Webhooks
from outrider.rollout.words import explain, lines, of_past, parties
from outrider.tracking.lifecycle import terminate_as_exception
from outrider.tracking.tracker import Run
from outrider.trial.evaluation import Evaluation
from outrider.wiring.candidates import CandidateMaker
from outrider.wiring.stores import ROLLOUTS, registry, tracker

LEAVE_S = 70.0  # longest that the controller of a rollout whose place is taken may need to leave
LEFT = "the rollout stays as it stands: without release it goes on, action=abort takes it back"

Say = Callable[[str], None]


def rollout(settings: RolloutJob) -> int:
    """Do what `settings.action` says. 1 where a rollout that was followed ended badly."""
    screen = Console()

    def say(text: str) -> None:
        screen.print(text, highlight=False, markup=False, soft_wrap=True)

    if settings.action is RolloutAction.DEMO:
        from outrider.wiring.rollout_demo import rollout_demo

        return rollout_demo(settings, say)
    if settings.action is RolloutAction.SIMULATE:
        for text in told(settings.gates, settings.plan, per_s=settings.rollout.per_s):
            say(text)
        return 0
    return Rollouts(settings, say).run()


@dataclass
class Rollouts:
    """One command of an operator."""

    settings: RolloutJob
    say: Say

    def __post_init__(self) -> None:
        chosen = self.settings.rollout
        self.url = chosen.url.rstrip("/")
        self.clock = SystemClock()
        self.service = HttpService(self.url, chosen.admin_key_file)
        self.store = Store(Database(chosen.database or ROLLOUTS))
        self.registry = registry(self.settings.tracking)
        self.tracker = tracker(self.settings.tracking)

    def run(self) -> int:
        action = self.settings.action
        if action.value in set(Verb):
            return self._order(Verb(action.value))
        actions: dict[RolloutAction, Callable[[], int]] = {
            RolloutAction.START: self.start,
            RolloutAction.RETRY: self.retry,
            RolloutAction.WATCH: self.watch,
            RolloutAction.STATUS: self.status,
            RolloutAction.EXPLAIN: self.explain,
            RolloutAction.HISTORY: self.history,
        }
        return actions[action]()

    def start(self) -> int:
        """A new rollout of `release`; without one, the rollout that is there goes on."""
        if self.settings.release:
            maker = CandidateMaker(self.settings, self.registry)
            return self.begin(maker.candidate(self.settings.release))
        found = self.store.active(self.url) or self.store.unfinished(self.url)
        if found is None:
            raise UserError(
                f"release is missing: {self.url} has no rollout to go on with; "
                "give release=models:/outrider@challenger"
            )
        return self._control(found, None)

    def retry(self) -> int:
        """The newest rollout's candidate again."""
        return self.begin(self.newest().status.candidate)

    def begin(self, candidate: Candidate) -> int:
        chosen = self.settings.rollout
        opening = Opening(
            candidate=candidate,
            plan=self.settings.plan,
            gates=self.settings.gates,
            url=self.url,
            store=self.store,
            service=self.service,
            now_s=self.clock.time(),
            force=chosen.force,
        )
        if chosen.dry_run:
            return self._dry(opening)
        self.prompts()  # what is wrong with them is known before anything is written
        begun, run = opening.open(self.tracker, who=who(), reason=chosen.reason)
        return self._control(begun, run)

    def status(self) -> int:
        newest = self.newest()
        self.say(explain_of(newest, self.store, self.clock.time())[1])
        return 0

    def explain(self) -> int:
        for text in explain_of(self.newest(), self.store, self.clock.time()):
            self.say(text)
        return 0

    def watch(self) -> int:
        """Moves as they come, until the rollout is over."""
        rollout_id, num_shown = self.newest().status.rollout_id, 0
        while True:
            status, moves = self.store.get(rollout_id).status, self.store.moves(rollout_id)
            for move in moves[num_shown:]:
                for text in lines(move):
                    self.say(text)
            num_shown = len(moves)
            if status.phase.is_over:
                return _exit_status(status)
            time.sleep(self.settings.rollout.tick_s)

    def history(self) -> int:
        past = self.store.history(self.url)
        if not past:
            self.say(f"{self.url} has had no rollout")
        for found in past:
            self.say(of_past(found.status))
        return 0

    def _dry(self, opening: Opening) -> int:
        (status, active), plan = opening.proposed(), opening.plan
        weights = ", ".join(f"{100 * weight:g} %" for weight in plan.weights)
        self.say(
            f"would try {parties(status)}: shadow of "
            f"{100 * plan.shadow_share:g} %, then {weights}; nothing was done"
        )
        if active is not None:
            self.say(f"it would take the place of {active.status.rollout_id}, which has stalled")
        return 0

    def _order(self, verb: Verb) -> int:
        """Written down, then taken by the controller, or by this process where there is none."""
        found, command = order(
            self.store,
            self.url,
            verb,
            who=who(),
            why=self.settings.rollout.reason,
            at_s=self.clock.time(),
        )
        controller = self._controller(found, None)
        after = see_through(command, controller, tick_s=self.settings.rollout.tick_s)
        self.say(after.status.reason)
        return int(was_refused(after.status, verb))

    def _control(self, found: Rollout, run: Run | None) -> int:
        self.say(explain_of(found, self.store, self.clock.time())[0])
        controller = self._controller(found, run)
        with terminate_as_exception():
            try:
                status = controller.run(tick_s=self.settings.rollout.tick_s, patience_s=LEAVE_S)
            except (KeyboardInterrupt, Terminated):
                self.say(LEFT)
                raise
        for text in explain_of(self.store.get(status.rollout_id), self.store, self.clock.time()):
            self.say(text)
        self.tracker.close()
        return _exit_status(status)

    def _controller(self, found: Rollout, run: Run | None) -> Controller:
        return controller_of(
            found,
            store=self.store,
            service=self.service,
            registry=self.registry,
            tracker=self.tracker,
            webhooks=Webhooks(self.settings.webhooks, tell=self.say),
            prompts=self.prompts(),
            clock=self.clock,
            tell=self.say,
            run=run,
        )

    def prompts(self) -> Evaluation:
        chosen = self.settings.rollout
        return confirmation_prompts(
            Path(chosen.evaluation),
            share=chosen.confirmation_share,
            answer_tokens=chosen.answer_tokens,
        )

    def newest(self) -> Rollout:
        newest = self.store.newest(self.url)
        if newest is None:
            raise UserError(f"{self.url} has had no rollout; see --help for how one begins")
        return newest


def explain_of(found: Rollout, store: Store, now_s: float) -> list[str]:
    moves = store.moves(found.status.rollout_id)
    return explain(found.status, moves, found.judgement, found.plan, now_s)


def _exit_status(status: Status) -> int:
    return 0 if status.phase is Phase.PROMOTED else 1
