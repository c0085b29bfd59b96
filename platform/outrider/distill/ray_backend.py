"""A distillation on a cluster: Ray Data reads and computes features, Ray Train learns."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from outrider.cluster.environment import prepare_environment
from outrider.cluster.room import room_for
from outrider.cluster.session import ray_session
from outrider.distill.course import Course
from outrider.distill.material import FeatureOrder
from outrider.distill.moment import Moment
from outrider.distill.ray_features import fill
from outrider.distill.ray_lines import ray_lines
from outrider.distill.training import Trainer
from outrider.engine.head import DraftHead

prepare_environment()  # Ray reads it when imported

import ray  # noqa: E402


class RayBackend:
    """By `num_workers` processes of the cluster that RAY_ADDRESS names, of as many cores each."""

    def __init__(self, num_workers: int) -> None:
        self._num_workers = num_workers
        self._cores = 0

    @contextmanager
    def session(self, log: Path) -> Iterator[None]:
        """UserError where no cluster answers, or it is too small."""
        with ray_session(log, num_cpus=self._num_workers):
            self._cores = room_for(self._num_workers, ray.nodes(), key="distill.num_workers")
            yield

    def lines(self, path: Path) -> Generator[bytes, None, None]:
        return ray_lines(path)

    def fill(self, order: FeatureOrder, on_shard: Callable[[], None]) -> None:
        fill(order, on_shard, num_workers=self._num_workers, cores=self._cores)

    def learn(
        self,
        course: Course,
        trainer: Trainer,
        checkpoint: Path,
        tell: Callable[[Moment], None],
        on_update: Callable[[int], None],
    ) -> DraftHead:
        if not trainer.progress.is_done:
            from outrider.distill.ray_training import learn_together  # Ray Train takes seconds

            sizes = {"num_workers": self._num_workers, "cores": self._cores}
            learn_together(course, checkpoint, tell, on_update, **sizes)
            trainer.resume(checkpoint)
        return trainer.run(checkpoint, tell, on_update)
