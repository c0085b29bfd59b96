"""Letters from workers to the driver of a job: an actor that keeps them until they are fetched."""

from __future__ import annotations

from typing import Any

from outrider.cluster.environment import prepare_environment

prepare_environment()  # Ray reads it when imported

import ray  # noqa: E402

Letter = dict[str, Any]
"""Plain values only: the actor then imports nothing of the job's."""


class Post:
    """What lives in the actor."""

    def __init__(self) -> None:
        self._letters: list[Letter] = []

    def put(self, letter: Letter) -> None:
        self._letters.append(letter)

    def take(self) -> list[Letter]:
        """All that came since the last time, in its order."""
        letters, self._letters = self._letters, []
        return letters


def open_post() -> Any:
    """The actor's handle, which may be sent to workers. It takes no core."""
    return ray.remote(num_cpus=0)(Post).remote()
