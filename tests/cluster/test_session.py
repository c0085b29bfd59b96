"""Ray joined where it runs, or one line that says why not."""

from __future__ import annotations

import socket

import pytest
import ray
from ray.exceptions import RaySystemError

from outrider.cluster.session import check_address
from outrider.core import UserError


@pytest.fixture
def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def test_a_cluster_that_is_not_there_is_named_at_once(free_port: int) -> None:
    for address in (f"127.0.0.1:{free_port}", f"ray://127.0.0.1:{free_port}", "127.0.0.1:99999"):
        with pytest.raises(UserError, match=rf"RAY_ADDRESS: no cluster answers at {address} "):
            check_address(address)


def test_what_listens_is_left_to_ray() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        check_address(f"127.0.0.1:{listener.getsockname()[1]}")


@pytest.mark.parametrize("word", ["auto", "local", "head.example"])
def test_words_are_left_to_ray(word: str) -> None:
    check_address(word)


def test_who_calls_ray_late_starts_none() -> None:
    assert not ray.is_initialized()
    with pytest.raises(RaySystemError):
        ray.put("of a finaliser")
    assert not ray.is_initialized()
