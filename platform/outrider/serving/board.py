"""Where replicas that start later read how their release decodes now."""

from __future__ import annotations

from typing import Any

import ray

from outrider.serving.messages import Control

NAMESPACE = "outrider"


class Board:
    """One small actor per release: it outlives every replica."""

    def __init__(self) -> None:
        self._control = Control()

    def read(self) -> Control:
        return self._control

    def write(self, control: Control) -> None:
        self._control = control


def open_board(release: str) -> Any:
    """The board's actor handle, made where it is not there yet."""
    return (
        ray.remote(Board)
        .options(
            name=f"board-{release}",
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            num_cpus=0,
        )
        .remote()
    )


def close_board(release: str) -> None:
    """Forget what was written: the release is gone."""
    try:
        ray.kill(ray.get_actor(f"board-{release}", namespace=NAMESPACE))
    except ValueError:  # there is none
        return
