"""What a gateway is given beside its own: routes, figures, and work while it runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import httpx2 as httpx
from fastapi import FastAPI
from http_site import Site
from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from outrider.config.schema import EngineSettings, SamplingSettings
from outrider.serving.service import Service
from outrider.serving.service_recipe import ServiceRecipe

STORY: list[str] = []


class Porch:
    """An addition with one route and one figure."""

    def add(self, api: FastAPI, service: Service) -> None:
        @api.get("/porch")
        async def porch() -> dict[str, str]:
            return {"model": service.model}

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("porch_lamps", "Lamps.", value=3)

    @asynccontextmanager
    async def running(self, service: Service) -> AsyncGenerator[None]:
        STORY.append(f"{service.model} begins")
        yield
        STORY.append(f"{service.model} ends")


def test_what_is_added_answers_is_measured_and_runs_as_long_as_the_gateway() -> None:
    recipe = ServiceRecipe(
        settings=Site.settings,
        engine=EngineSettings(),
        sampling=SamplingSettings(),
        model="m",
        created=1,
        additions=(Porch,),
    )
    with Site(recipe=recipe) as site:
        assert STORY == ["m begins"]
        assert httpx.get(site.url + "/porch").json() == {"model": "m"}
        page = httpx.get(site.url + "/metrics").text
        assert "porch_lamps 3.0" in page
        assert "outrider_num_blocks" in page
        assert httpx.get(site.url + "/healthz").status_code == 200
    assert STORY == ["m begins", "m ends"]
