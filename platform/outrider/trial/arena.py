"""Each contender in a process of its own, a Ray actor, so that memory and CPU are its own.

They take turns and ask Ray for no cores: threads are the engine's own settings.
"""

from __future__ import annotations

from typing import Any

from outrider.cluster.environment import prepare_environment
from outrider.core import Fault, UserError
from outrider.trial.case import Case
from outrider.trial.contender import Contender
from outrider.trial.gpu import open_gpu
from outrider.trial.observation import Measured
from outrider.trial.plan import Batch
from outrider.trial.side import Lost, Rivals
from outrider.trial.usage import UsageMeter, reset_peak_memory
from outrider.trial.worker import Worker

prepare_environment()  # Ray reads it when imported

import ray  # noqa: E402
from ray.exceptions import RayActorError, RayError, RayTaskError  # noqa: E402


class Stage:
    """What lives in the actor."""

    def open(self, contender: Contender, timeout_s: float) -> None:
        """Peak memory counts from here: loading and converting are over."""
        worker = Worker.open(contender, timeout_s=timeout_s)
        worker.usage = UsageMeter(gpu=open_gpu())
        reset_peak_memory()
        self._worker = worker

    def decode(self, batch: Batch) -> Measured:
        return self._worker.decode(batch)

    def margin(self, case: Case, prefix: tuple[int, ...], rivals: Rivals) -> float:
        return self._worker.margin(case, prefix, rivals)


class ActorSide:
    """A `Side` in a process of its own. Ray is there already."""

    def __init__(self, contender: Contender, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._actor = ray.remote(num_cpus=0, max_restarts=0)(Stage).remote()
        try:
            self._ask("open", contender, timeout_s)
        except BaseException:
            self.close()
            raise

    def decode(self, batch: Batch) -> Measured:
        return self._ask("decode", batch)

    def margin(self, case: Case, prefix: tuple[int, ...], rivals: Rivals) -> float:
        """Lost as well where it stands still: a single token takes no `timeout_s`."""
        return self._ask("margin", case, prefix, rivals, timeout_s=self._timeout_s)

    def close(self) -> None:
        ray.kill(self._actor)

    def _ask(self, method: str, *args: object, timeout_s: float | None = None) -> Any:
        try:
            return ray.get(getattr(self._actor, method).remote(*args), timeout=timeout_s)
        except RayTaskError as error:
            raise _of_ours(error) from error
        except RayActorError as error:
            raise Lost("its process died") from error
        except RayError as error:
            raise Lost(str(error).splitlines()[0]) from error


def _of_ours(error: RayTaskError) -> Exception:
    """What was raised over there, in one line."""
    cause = error.cause
    if isinstance(cause, UserError | Fault):
        return cause
    said = str(cause).splitlines()[0] if str(cause) else ""
    return Fault(f"{type(cause).__name__}: {said}")
