"""Where the work of a distillation is done."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

from outrider.distill.course import Course
from outrider.distill.material import FeatureOrder
from outrider.distill.moment import Moment
from outrider.distill.texts import file_lines
from outrider.distill.training import Trainer
from outrider.engine.head import DraftHead


class Backend(Protocol):
    """Each method raises UserError and Fault with one line; what is done by then is kept."""

    def session(self, log: Path) -> AbstractContextManager[None]:
        """Everything else is called in there. `log`: a file for what others would say."""
        ...

    def lines(self, path: Path) -> Generator[bytes, None, None]:
        """Each line of a file, in its order."""
        ...

    def fill(self, order: FeatureOrder, on_shard: Callable[[], None]) -> None:
        """Compute the features that are missing; `on_shard` is called when a shard is on disk."""
        ...

    def learn(
        self,
        course: Course,
        trainer: Trainer,
        checkpoint: Path,
        tell: Callable[[Moment], None],
        on_update: Callable[[int], None],
    ) -> DraftHead:
        """The best head: see `Trainer.run`. `trainer` is the course's, as far as it has come."""
        ...


class OneProcess:
    """In this process."""

    def session(self, log: Path) -> AbstractContextManager[None]:
        return nullcontext()

    def lines(self, path: Path) -> Generator[bytes, None, None]:
        return file_lines(path)

    def fill(self, order: FeatureOrder, on_shard: Callable[[], None]) -> None:
        order.cache.fill(order.opened(), on_shard)

    def learn(
        self,
        course: Course,
        trainer: Trainer,
        checkpoint: Path,
        tell: Callable[[Moment], None],
        on_update: Callable[[int], None],
    ) -> DraftHead:
        return trainer.run(checkpoint, tell, on_update)
