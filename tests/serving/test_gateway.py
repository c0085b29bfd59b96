"""What stands between Serve and the API."""

from __future__ import annotations

import asyncio
from typing import Any

from ray.exceptions import RayError

from outrider.config.schema import ServingSettings
from outrider.core import SamplingParams
from outrider.serving.api import Service
from outrider.serving.deployer import LocalDeployer
from outrider.serving.desk import Desk
from outrider.serving.fleet import Fleet
from outrider.serving.gateway import Calm
from outrider.serving.kept import MemoryKept
from outrider.serving.local import LocalRelease
from outrider.serving.split import Plan


def test_a_proxy_that_is_gone_is_a_client_that_left_and_the_request_id_is_written_once() -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"x-request-id", b"1"), (b"x-other", b"2")],
            }
        )
        await send({"type": "http.response.body", "body": (await receive())["type"].encode()})

    async def receive() -> Any:
        raise RayError("the proxy died")

    async def send(message: Any) -> None:
        sent.append(message)

    desk = Desk({}, Plan(stable="none"), most_calls=1)

    def none(name: str, settings: Any) -> LocalRelease:
        raise AssertionError("nothing is started here")

    service = Service(
        fleet=Fleet(desk, LocalDeployer(none), MemoryKept(), {}),
        settings=ServingSettings(),
        model="m",
        defaults=SamplingParams(),
        created=0,
    )
    asyncio.run(Calm(app, service)({"type": "http"}, receive, send))
    assert sent[0]["headers"] == [(b"x-other", b"2")]  # Serve's proxy adds the id itself
    assert sent[1]["body"] == b"http.disconnect"
