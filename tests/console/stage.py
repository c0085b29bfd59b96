"""A console whose data is played, behind a real gateway. Run as a program it is there to look at:

python tests/console/stage.py [--port 8123] [--scene full | empty] [--key KEY]
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from fastapi import FastAPI
from prometheus_client.metrics_core import Metric

sys.path += [str(Path(__file__).parent), str(Path(__file__).parents[1] / "serving")]

from http_site import SETTINGS, Site
from scene import NUM_POINTS, PERIOD_S, scene

from outrider.console.assets import Asset, Assets, read_assets
from outrider.console.order import Order
from outrider.console.page import add_page
from outrider.console.snapshot import Snapshot
from outrider.serving.keys import Keys
from outrider.serving.service import Service

Scene = Callable[[], Snapshot]  # at each look


class Played:
    """An addition that tells whatever the scene tells, and remembers what was asked."""

    def __init__(self, now: Scene, assets: Assets | None = None) -> None:
        self.now = now
        self.orders: list[Order] = []
        self._assets = read_assets() if assets is None else assets
        self._needs_key = False

    def add(self, api: FastAPI, service: Service) -> None:
        self._needs_key = not service.admin_keys.is_open
        add_page(api, service, self, self._assets)

    def collect(self) -> Iterable[Metric]:
        return ()

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncGenerator[None]:
        yield

    def snapshot(self, after_s: float = 0.0) -> Snapshot:
        told = self.now()
        points = tuple(point for point in told.points if point.at_s > after_s)
        return replace(told, points=points, needs_key=self._needs_key)

    async def order(self, order: Order) -> str:
        self.orders.append(order)
        return f"{order.verb}: written down; the controller takes it within a second or two"


def full() -> Scene:
    """`scene`, going on from now; pausing is not played."""
    began_s = time.time() - PERIOD_S * NUM_POINTS
    return lambda: scene(began_s + PERIOD_S * ((time.time() - began_s) // PERIOD_S), began_s)


def empty() -> Scene:
    """A server that has just begun: nothing was asked of it yet."""
    began_s = time.time()

    def now() -> Snapshot:
        whole = scene(began_s)
        return Snapshot(
            at_s=time.time(),
            service=replace(whole.service, began_s=began_s, num_calls=0, run_id=""),
            arms=(replace(whole.arms[0], weight=1.0, achieved_ratio=None, num_requests=0),),
            releases=(replace(whole.releases[0], guard_since_s=began_s, num_replicas=0),),
        )

    return now


SCENES = {"full": full, "empty": empty}


def stage(now: Scene, *, key: str = "", assets: Assets | None = None, port: int = 0) -> Site:
    """Close it. `key`: the admin key, where one is asked for."""
    played = Played(now, assets)
    fields: dict[str, object] = {"additions": (played,)}
    if key:
        fields["admin_keys"] = Keys(frozenset({key}))
    return Site(settings=replace(SETTINGS, port=port), service_fields=fields)


class _Fresh(dict[str, Asset]):
    """Files as they lie there at each request: for whoever writes them."""

    def __contains__(self, path: object) -> bool:
        self.update(read_assets())
        return super().__contains__(path)

    def __bool__(self) -> bool:
        return True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--scene", choices=SCENES, default="full")
    parser.add_argument("--key", default="")
    words = parser.parse_args()
    with stage(SCENES[words.scene](), key=words.key, assets=_Fresh(), port=words.port) as site:
        print(f"{site.url}/console", flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
