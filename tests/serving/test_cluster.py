"""Two nodes, an engine on each: one node dies under load, and every request ends."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
import pytest

from outrider.cluster.environment import prepare_environment
from outrider.config.schema import EngineSettings, SamplingSettings, ServingSettings
from outrider.testing import AlphabetEngine

NUM_CLIENTS, NUM_STREAMS = 16, 10  # those that stream among them
pytestmark = pytest.mark.ray  # two nodes of its own
LIMIT_S = 60.0  # a request that takes longer hangs
BEFORE_S, AFTER_S = 1.0, 6.0  # of load around the node's death
ASK = {"messages": [{"role": "user", "content": "hello"}], "ignore_eos": True, "max_tokens": 60}


@dataclass(frozen=True)
class End:
    """How a request ended."""

    how: str  # full | cut (an error event behind tokens) | refused (no token came) | broken
    detail: str = ""


@dataclass
class Place:
    """A cluster with a server on its head, and the node that may go."""

    url: str
    cluster: Any
    other: Any


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    prepare_environment()
    import ray
    from ray import serve
    from ray.cluster_utils import Cluster

    from outrider.serving import deployment
    from outrider.serving.application import release_application
    from outrider.serving.gateway import First, gateway_application
    from outrider.serving.kept import Card
    from outrider.serving.service_recipe import ServiceRecipe

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    engine = EngineSettings(max_rows=8)
    settings = ServingSettings(
        port=port, num_replicas=2, affinity_tokens=0, health_period_s=1.0, deadline_s=30.0
    )
    head = {"num_cpus": 1, "object_store_memory": 80 * 2**20, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    other = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    serve.start(proxy_location="HeadOnly", http_options={"host": "127.0.0.1", "port": port})
    recipe = ServiceRecipe(
        settings=settings,
        engine=engine,
        sampling=SamplingSettings(),
        model="alphabet",
        created=1,
    )
    first = First(card=Card(fingerprint="f"), created=1, build="")
    open_engine = AlphabetEngine(delay_s=0.02, max_rows=engine.max_rows)
    deployment.deploy(
        settings,
        release_application(open_engine, settings, engine, num_cpus=1),
        gateway_application(recipe, settings, first, listens=False),
        print,
    )
    yield Place(f"http://127.0.0.1:{port}", cluster, other)
    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


async def ask(client: httpx.AsyncClient, *, stream: bool) -> End:
    body = {**ASK, "stream": stream}
    try:
        async with client.stream("POST", "/v1/chat/completions", json=body) as answer:
            if answer.status_code != 200:
                return End("refused", f"{answer.status_code} {(await answer.aread())[:80]!r}")
            lines = [line async for line in answer.aiter_lines() if line]
    except httpx.HTTPError as error:
        return End("broken", repr(error))
    return end_of_stream(lines) if stream else end_of_answer(lines[0])


def end_of_answer(body: str) -> End:
    return End("full" if json.loads(body)["usage"]["completion_tokens"] == 60 else "broken", body)


def end_of_stream(lines: list[str]) -> End:
    if any('"error"' in line for line in lines):
        return End("cut" if '"delta"' in lines[0] else "refused", lines[-1])
    return End("full" if lines[-1] == "data: [DONE]" else "broken", lines[-1])


async def load(url: str, until: asyncio.Event) -> list[End]:
    """`NUM_CLIENTS` ask one after the other, `NUM_STREAMS` of them streams, until told to stop."""

    async def client_loop(client: httpx.AsyncClient, *, stream: bool) -> list[End]:
        ends = []
        while not until.is_set():
            ends.append(await asyncio.wait_for(ask(client, stream=stream), LIMIT_S))
        return ends

    async with httpx.AsyncClient(base_url=url, timeout=LIMIT_S) as client:
        loops = [client_loop(client, stream=n < NUM_STREAMS) for n in range(NUM_CLIENTS)]
        return [end for ends in await asyncio.gather(*loops) for end in ends]


def replicas(url: str) -> list[dict[str, Any]]:
    told = httpx.get(f"{url}/admin/status", timeout=30).json()["replicas"]
    return [dict(each) for each in told]


def test_a_node_dies_and_every_request_ends(place: Place) -> None:
    url = place.url
    before = replicas(url)
    assert len(before) == 2

    async def story() -> list[End]:
        is_over = asyncio.Event()
        loading = asyncio.create_task(load(url, is_over))
        await asyncio.sleep(BEFORE_S)
        while not all(each["num_running"] > 2 for each in await asyncio.to_thread(replicas, url)):
            await asyncio.sleep(0.05)
        await asyncio.to_thread(place.cluster.remove_node, place.other, allow_graceful=False)
        await asyncio.sleep(AFTER_S)
        is_over.set()
        return await loading

    ends = asyncio.run(story())
    count = Counter(end.how for end in ends)
    assert count["full"] > NUM_CLIENTS, count
    assert count["cut"] >= 1, count  # streams that had begun on the lost node say so
    assert count["cut"] <= NUM_STREAMS
    assert not [end for end in ends if end.how in ("refused", "broken")]
    left = replicas(url)
    assert len(left) == 1
    assert left[0]["replica"] in {each["replica"] for each in before}


def test_closed_sockets_behind_serves_proxy_free_their_rows(place: Place) -> None:
    """P07, and the request id is written once."""
    body = {**ASK, "stream": True, "max_tokens": 1500}
    for _ in range(12):
        with httpx.stream("POST", f"{place.url}/v1/chat/completions", json=body) as answer:
            next(answer.iter_bytes())
            assert len(answer.headers.get_list("x-request-id")) == 1
    until = time.monotonic() + 15
    while any(each["num_running"] + each["num_waiting"] for each in replicas(place.url)):
        assert time.monotonic() < until
        time.sleep(0.05)
