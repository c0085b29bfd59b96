"""A release on a real Serve, asked as the gateway asks it: leaving, affinity, draining."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any

import pytest
import ray
from ray import serve

from outrider.cluster.environment import prepare_environment
from outrider.config.schema import EngineSettings, ServingSettings
from outrider.core import Mode, SamplingParams
from outrider.openai.call import Call, Endpoint
from outrider.serving.application import deployment_options, release_application
from outrider.serving.kept import forget_release
from outrider.serving.messages import (
    Begun,
    Control,
    Ended,
    Event,
    Events,
    Refusal,
    ReplicaStats,
)
from outrider.serving.ray_kept import RayKept
from outrider.serving.release import LATE_S, ServeRelease, application_name, open_release
from outrider.testing import AlphabetEngine

WAIT_S = 60.0
SLACK = 3
ENDLESS = 4000
SETTINGS = ServingSettings(
    num_replicas=2, health_period_s=1.0, deadline_s=60.0, affinity_slack=SLACK
)


@pytest.fixture(scope="module")
def ray_(cluster: Any) -> Iterator[None]:
    prepare_environment()
    ray.init(cluster.address, log_to_driver=False, logging_level="error")
    serve.start(proxy_location="Disabled")
    yield
    serve.shutdown()
    ray.shutdown()


@pytest.fixture(scope="module")
def release(ray_: None) -> str:
    deploy(SETTINGS)
    return SETTINGS.name


def deploy(settings: ServingSettings) -> None:
    engine = AlphabetEngine(delay_s=0.005)
    app = release_application(engine, settings, EngineSettings(), num_cpus=1)
    serve.run(app, name=application_name(settings.name), route_prefix=None)


def ask(name: str, prompt: str = "!", *, stream: bool = False, max_tokens: int = 26) -> Call:
    return Call(
        call_id=name,
        endpoint=Endpoint.TEXT,
        prompts=(prompt,),
        params=SamplingParams(max_tokens=max_tokens, ignore_eos=True),
        stream=stream,
    )


def told(story: Any) -> Any:
    return asyncio.run(asyncio.wait_for(story, WAIT_S))


async def begin(
    release: ServeRelease, name: str, prompt: str = "!", *, max_tokens: int = ENDLESS
) -> tuple[AsyncGenerator[Events], Begun]:
    stream = release.stream(ask(name, prompt, stream=True, max_tokens=max_tokens))
    first = (await anext(stream))[0]
    assert isinstance(first, Begun)
    return stream, first


async def rest(stream: AsyncGenerator[Events]) -> list[Event]:
    async with aclosing(stream):
        return [event async for events in stream for event in events]


async def until(release: ServeRelease, what: Any) -> None:
    while not what(await release.stats()):
        await asyncio.sleep(0.05)


def is_idle(stats: list[ReplicaStats]) -> bool:
    return len(stats) == 2 and all(
        each.num_running + each.num_waiting == 0 and each.num_free_blocks == each.num_blocks
        for each in stats
    )


def test_who_leaves_frees_its_rows_and_the_others_finish(release: str) -> None:
    """P07, P09"""

    async def story() -> None:
        main = open_release(release)
        staying = asyncio.ensure_future(main.complete(ask("stays", max_tokens=200)))
        streams = [await begin(main, f"s{i}", f"s{i}!") for i in range(10)]
        calls = [
            asyncio.ensure_future(main.complete(ask(f"w{i}", f"w{i}!", max_tokens=ENDLESS)))
            for i in range(10)
        ]
        await until(main, lambda stats: sum(each.num_running for each in stats) >= 20)
        for stream, _ in streams:
            await stream.aclose()
        for call in calls:
            call.cancel()
        ended = (await staying)[-1]
        assert isinstance(ended, Ended)
        assert ended.num_completion_tokens == 200
        await until(main, is_idle)

    told(story())


def test_the_same_beginning_has_the_same_replica_also_among_others(release: str) -> None:
    async def story() -> None:
        main = open_release(release)
        seen: dict[str, set[str]] = {}

        async def once(name: str, prompt: str) -> None:
            begun = (await main.complete(ask(name, prompt, max_tokens=1)))[0]
            assert isinstance(begun, Begun)
            seen.setdefault(prompt, set()).add(begun.replica)

        for turn in range(10):  # two at once: no replica is ahead by more than the slack
            first, second = f"one {turn}", f"two {turn}"
            for again in range(3):
                await asyncio.gather(
                    once(f"a{turn}-{again}", first), once(f"b{turn}-{again}", second)
                )
        assert {len(replicas) for replicas in seen.values()} == {1}
        assert len(set.union(*seen.values())) == 2

    told(story())


def test_a_favourite_that_is_too_far_ahead_is_left_for_the_other(release: str) -> None:
    async def story() -> None:
        main = open_release(release)
        streams = [await begin(main, f"s{i}") for i in range(12)]
        counts = Counter(begun.replica for _, begun in streams)
        assert len(counts) == 2
        assert max(counts.values()) - min(counts.values()) <= SLACK + 1
        for stream, _ in streams:
            await stream.aclose()
        await until(main, is_idle)

    told(story())


def test_a_change_of_mode_takes_nobody_out_and_reaches_what_is_in_flight(release: str) -> None:
    async def story() -> None:
        main = open_release(release)
        stream, _ = await begin(main, "open", max_tokens=400)
        await main.control(Control(mode=Mode.PLAIN))
        assert [each.mode for each in await main.stats()] == [Mode.PLAIN] * 2
        events = await rest(stream)
        assert isinstance(events[-1], Ended)
        assert events[-1].num_completion_tokens == 400
        assert events[-1].counters.drafted < 100
        await main.control(Control())

    told(story())


def test_a_release_that_is_not_there_ends_calls_at_their_deadline(ray_: None) -> None:
    async def story() -> None:
        nowhere = open_release("nowhere", deadline_s=0.2 - LATE_S)
        whole = await nowhere.complete(ask("c"))
        streamed = await rest(nowhere.stream(ask("d", stream=True)))
        for (told_,) in (whole, streamed):
            assert isinstance(told_, Refusal)
            assert (told_.status, told_.code) == (504, "deadline")

    told(story())


def test_taking_a_release_away_waits_for_what_is_in_flight(ray_: None) -> None:
    leaving = ServingSettings(name="leaving", deadline_s=60.0)
    deploy(leaving)

    async def story() -> None:
        away = open_release("leaving")
        stream, _ = await begin(away, "open", max_tokens=1000)
        name = application_name("leaving")
        gone = threading.Thread(target=lambda: serve.delete(name, _blocking=True))
        gone.start()
        events = await rest(stream)
        assert isinstance(events[-1], Ended)
        assert events[-1].num_completion_tokens == 1000
        await asyncio.to_thread(gone.join)

    told(story())
    forget_release(RayKept(), "leaving")


def test_every_bound_is_told_to_serve() -> None:
    options = deployment_options(SETTINGS, EngineSettings(max_rows=8), 2)
    assert options["ray_actor_options"] == {"num_cpus": 2}
    assert options["max_ongoing_requests"] > 8 + SETTINGS.max_queue
    assert options["max_queued_requests"] == SETTINGS.max_queue + 1
    assert options["graceful_shutdown_timeout_s"] == SETTINGS.deadline_s
    assert options["health_check_period_s"] == 1.0
    assert options["num_replicas"] == 2
    assert "autoscaling_config" not in options


def test_a_release_may_grow_where_it_is_told_how_far() -> None:
    settings = ServingSettings(num_replicas=2, max_replicas=5)
    options = deployment_options(settings, EngineSettings(), 1)
    assert "num_replicas" not in options
    scaling = options["autoscaling_config"]
    assert (scaling.min_replicas, scaling.initial_replicas, scaling.max_replicas) == (2, 2, 5)
    policy = scaling.policy.get_policy()(**scaling.policy.policy_kwargs)
    assert policy._target_tokens == settings.target_load_tokens
