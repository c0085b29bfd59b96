"""Where replicas that start later read how their release decodes now."""

from __future__ import annotations

from typing import Any

import ray

from outrider.serving.messages import Control

NAMESPACE = "outrider"
# Serve's controller lives on the head node too: one cannot outlive the other.
HEAD_NODE = {"node:__internal_head__": 0.001}


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
            name=_name(release),
            namespace=NAMESPACE,
            get_if_exists=True,
            lifetime="detached",
            max_restarts=-1,  # without end
            num_cpus=0,
            resources=HEAD_NODE,
        )
        .remote()
    )


def close_board(release: str) -> None:
    """Forget what was written: the release is gone."""
    try:
        ray.kill(ray.get_actor(_name(release), namespace=NAMESPACE))
    except ValueError:  # there is none
        return


def _name(release: str) -> str:
    return f"board-{release}"
