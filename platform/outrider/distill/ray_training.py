"""A training whose updates are shared by the workers of Ray Train, one process each.

Ray Train (V2 of Ray 2.60, its default; it needs no more than `ray[data]` brings) starts them and
ties them to one torch group. The course, its checkpoints and its judgements are `Trainer`'s as on
one machine; nothing is told to Ray Train's own checkpoints and reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.fs
import torch

from outrider.cluster.environment import prepare_environment
from outrider.cluster.post import Letter, open_post
from outrider.core import Fault, SystemClock, UserError
from outrider.distill.course import Course
from outrider.distill.joining import AllReduce
from outrider.distill.moment import Moment

prepare_environment()  # Ray reads it when imported

import ray  # noqa: E402
from ray.exceptions import RayError  # noqa: E402
from ray.train import FailureConfig, RunConfig, ScalingConfig  # noqa: E402
from ray.train.torch import TorchConfig, TorchTrainer  # noqa: E402

POLL_S = 0.5
TOLD_S = 1.0  # between two letters that tell how many updates are done
Tell = Callable[[Moment], None]
OnUpdate = Callable[[int], None]


def learn_together(
    course: Course,
    checkpoint: Path,
    tell: Tell,
    on_update: OnUpdate,
    *,
    num_workers: int,
    cores: int,
) -> None:
    """From the checkpoint, if there is one, to the end, which is in the checkpoint.

    Raises what `Trainer.run` does, and Fault where a worker is lost. The workers end with it.
    """
    post = open_post()
    # Its process can be ended; a thread of ours that waits in Ray breaks Ray's own ending.
    conductor = ray.remote(num_cpus=0, max_restarts=0)(Conductor).remote()
    there = replace(course, device=torch.device(course.device.type))
    try:
        sizes = {"num_workers": num_workers, "cores": cores}
        fitting = conductor.fit.remote(there, checkpoint, post, **sizes)
        is_done = False
        while not is_done:
            is_done = bool(ray.wait([fitting], timeout=POLL_S)[0])
            for letter in ray.get(post.take.remote()):
                read(letter, tell, on_update)
        ray.get(fitting)
    except RayError as error:
        raise Fault(
            f"a worker of the training was lost ({_reason(error)}): the same command goes on "
            "from the last checkpoint"
        ) from error
    finally:
        ray.kill(conductor)


class Conductor:
    """What lives in an actor: the controller of Ray Train and its workers end with it."""

    def fit(
        self, course: Course, checkpoint: Path, post: Any, *, num_workers: int, cores: int
    ) -> None:
        TorchTrainer(
            partial(_learn, course, checkpoint, post, cores),
            torch_config=TorchConfig(backend="gloo"),
            scaling_config=ScalingConfig(
                num_workers=num_workers,
                use_gpu=course.device.type == "cuda",
                resources_per_worker={"CPU": cores},
            ),
            run_config=RunConfig(
                name="distill",
                storage_path=str(checkpoint.with_name("ray")),  # else in the home folder
                storage_filesystem=pyarrow.fs.LocalFileSystem(),
                failure_config=FailureConfig(max_failures=0),  # the same command goes on
            ),
        ).fit()


def read(letter: Letter, tell: Tell, on_update: OnUpdate) -> None:
    """What a worker's `Sender` wrote: pass it on, or raise it."""
    if "user_error" in letter:
        raise UserError(letter["user_error"])
    if "fault" in letter:
        raise Fault(letter["fault"])
    if "moment" in letter:
        tell(Moment.of(letter["moment"]))
    else:
        on_update(letter["update"])


def _reason(error: Exception) -> str:
    """Of the worker that was lost: the others then fail as well, by what they wait for."""
    cause = getattr(error, "cause", None) or error
    failures = list(getattr(cause, "worker_failures", {}).values()) or [cause]
    failures.sort(key=lambda failure: not isinstance(failure, RayError))
    lines = [line.strip() for line in str(failures[0]).splitlines() if line.strip()] or [""]
    said = lines[-1] if lines[0].startswith("Traceback") else lines[0]
    return f"{type(failures[0]).__name__}: {said}"


def _learn(course: Course, checkpoint: Path, post: Any, cores: int) -> None:
    """What each worker does."""
    torch.set_num_threads(cores)  # whatever OMP_NUM_THREADS says by now
    joining = AllReduce()
    sender = Sender(post, is_first=joining.is_first)
    try:
        trainer = course.trainer(SystemClock(), joining)
        trainer.resume(checkpoint)
        trainer.run(checkpoint, sender.moment, sender.update)
    except UserError as error:
        sender.send({"user_error": str(error)})
        raise
    except Fault as error:
        sender.send({"fault": str(error)})
        raise


class Sender:
    """Tells the driver."""

    def __init__(self, post: Any, *, is_first: bool) -> None:
        self._post = post
        self._is_first = is_first
        self._clock = SystemClock()
        self._told = self._clock.monotonic()

    def send(self, letter: Letter) -> None:
        ray.get(self._post.put.remote(letter))

    def moment(self, moment: Moment) -> None:
        self.send({"moment": asdict(moment)})

    def update(self, done: int) -> None:
        """How many are done: by the first worker, and now and then."""
        now = self._clock.monotonic()
        if self._is_first and now - self._told >= TOLD_S:
            self._told = now
            self.send({"update": done})
