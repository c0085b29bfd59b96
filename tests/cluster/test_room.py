"""Each worker gets as many cores as every machine of the cluster can give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from outrider.cluster.room import cores_each, room_for
from outrider.core import UserError


@pytest.mark.parametrize(
    ("machines", "num_workers", "cores"),
    [
        ([4], 2, 2),
        ([4], 3, 1),
        ([8, 4], 2, 4),
        ([8, 4], 3, 4),
        ([7, 7], 4, 3),
        ([2, 2], 5, 0),
        ([], 1, 0),
    ],
)
def test_cores_are_those_of_one_machine(
    machines: Sequence[int], num_workers: int, cores: int
) -> None:
    assert cores_each(machines, num_workers) == cores


def node(cores: float, *, alive: bool = True) -> dict[str, Any]:
    return {"Alive": alive, "Resources": {"CPU": cores, "memory": 1e9}}


def test_what_is_gone_has_no_room_and_too_many_are_refused_by_the_key() -> None:
    nodes = [node(4.0), node(8.0, alive=False), {"Alive": True, "Resources": {}}]
    assert room_for(2, nodes, key="distill.num_workers") == 2
    with pytest.raises(UserError, match=r"^distill\.num_workers=5: the cluster has 4 cores"):
        room_for(5, nodes, key="distill.num_workers")
