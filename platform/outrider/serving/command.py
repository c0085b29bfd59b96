"""The server's driver: Ray -> applications -> ready -> windows -> drained."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from outrider.cluster.cores import is_given
from outrider.cluster.session import ray_session
from outrider.config.schema import ServeJob, ServingSettings
from outrider.core import Clock
from outrider.serving import deployment
from outrider.serving.guard_record import GuardRecord
from outrider.serving.keys import Keys
from outrider.serving.listener import bound
from outrider.serving.placement import most_replicas
from outrider.serving.ready import Ready, model_name, url_of
from outrider.serving.series import Series
from outrider.serving.stopping import Stop
from outrider.tracking.lifecycle import closing
from outrider.tracking.release import Release
from outrider.tracking.released_run import start_released
from outrider.tracking.tracker import Run, Tracker


@dataclass(frozen=True, kw_only=True)
class Server:
    """What is to be served, and who is told."""

    job: ServeJob
    applications: Callable[[], tuple[Any, Any]]  # binds the release and the gateway
    release: Release
    cpus: int  # of one engine
    tracker: Tracker
    clock: Clock
    notices: Console
    screen: Console
    log: Path  # where Ray's own words go

    def run(self) -> None:
        """Serve until a signal, then end what is in flight.

        Raises UserError and Fault with one line; KeyboardInterrupt (130) and
        `config.interruption.Terminated` (143) for a signal before it is ready and for the second
        one after, when the run was closed as KILLED.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with Stop() as stop, closing(self._start_run()) as run, self._session():
            self._deploy()
            deployment.keep_run_id(run.run_id)
            stop.be_patient()
            self._say_ready(run)
            began_s = self.clock.monotonic()
            series = self._watch(stop, run)
            deployment.take_away(self.job.serving.name)
            run.log_final(series.final(self.clock.monotonic() - began_s))
            self._tell("stopped")

    def _start_run(self) -> Run:
        serving = self.job.serving
        params = {
            "release": serving.name,
            "num_replicas": serving.num_replicas,
            "cpus_per_replica": self.cpus,
        }
        name = f"serve {serving.name}"
        return start_released(self.tracker, self.release, name=name, kind="serve", params=params)

    def _session(self) -> AbstractContextManager[None]:
        self._tell("starting Ray ...")
        # Twice: a candidate of a rollout has all its replicas before stable loses one.
        num_cpus = 2 * self.cpus * most_replicas(self.job.serving)
        return ray_session(self.log, num_cpus=num_cpus)

    def _deploy(self) -> None:
        serving = self.job.serving
        deployment.start_serve(serving, self.log)
        self._tell("loading the model ...")
        deployment.deploy(serving, *self.applications(), self._tell)
        if not is_given():
            deployment.wait_for_answer(url_of(serving))

    def _say_ready(self, run: Run) -> None:
        ready = Ready(
            settings=self.job.serving,
            model=model_name(self.job.model.source),
            fingerprint=self.release.fingerprint,
            cpus=self.cpus,
            run_id=run.run_id,
            open_command=self.tracker.open_command,
            has_console=self.job.console.enabled,
        )
        for line in ready.lines:
            self.screen.print(line, highlight=False, markup=False, soft_wrap=True)

    def _watch(self, stop: Stop, run: Run) -> Series:
        """A window of figures every `tracking.window_s` in which something was emitted; the last
        one ends with the last call.
        """
        began_s, serving = self.clock.monotonic(), self.job.serving
        series, is_over = Series(began_s), False
        guards = GuardRecord(run, self.clock.time())
        while not is_over:
            if is_over := stop.wait(self.job.tracking.window_s):
                self._tell(
                    f"stopping: requests in flight have {serving.deadline_s:g} s to end; "
                    "once more stops at once"
                )
                deployment.end_calls(serving.deadline_s)
            stats = deployment.ask_stats(deployment.release_names(serving.name))
            now_s = self.clock.monotonic()
            series, figures = series.after(stats, now_s, deployment.stable_name(serving.name))
            if figures is not None:
                run.log_window(figures, step=round(now_s - began_s), at_s=self.clock.time())
            transitions = deployment.ask_transitions(guards.last_s)
            guards.see(transitions)
            for each in transitions:
                self._tell(str(each))
        return series

    def _tell(self, line: str) -> None:
        self.notices.print(line, highlight=False, markup=False, soft_wrap=True)


def check_place(settings: ServingSettings) -> None:
    """Raise UserError where no key can be read or nobody listen: sooner than the gateway would.

    On another's cluster it is the gateway that knows.
    """
    if not is_given():
        check_keys(settings)
        check_port(settings)


def check_keys(settings: ServingSettings) -> None:
    """Raise UserError where a file of keys can't be read: sooner than the gateway would."""
    Keys.read(settings.keys_file, "serving.keys_file")
    Keys.read(settings.admin_keys_file, "serving.admin_keys_file")


def check_port(settings: ServingSettings) -> None:
    """Raise UserError where nobody can listen there: sooner than the gateway would."""
    bound(settings).close()
