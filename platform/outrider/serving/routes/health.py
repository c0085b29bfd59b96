"""Alive, ready, and the figures for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from fastapi import FastAPI, Request
from starlette.responses import Response

from outrider.core import Fault
from outrider.serving.http_errors import JsonResponse, failed, unauthorized
from outrider.serving.messages import Release
from outrider.serving.replica_stats import stats_of
from outrider.serving.service import Service

# Together less than Prometheus waits (dashboards/prometheus/scrape.yml): else a replica that stands
# still would take everybody's figures away, and pass for a gateway that is down.
CONDITIONS_WAIT_S = 1.0
SCRAPE_WAIT_S = 2.5


def add_health(api: FastAPI, service: Service) -> None:
    """/healthz and /readyz ask for no key: those who look at them have none."""

    @api.get("/health")  # what load tools for vLLM's server look at first
    @api.get("/healthz")
    async def healthz() -> Response:
        return JsonResponse(b'{"status":"ok"}')

    @api.get("/readyz")
    async def readyz() -> Response:
        if service.desk.is_leaving:
            return failed(503, "the server is stopping", code="stopping")
        stable = service.desk.plan.stable  # a candidate that starts or fails is no matter
        told = await stats_of({stable: service.desk.releases[stable]})
        if not told[stable]:
            return failed(503, f"no replica of release {stable} answers", code="not_ready")
        return JsonResponse(b'{"status":"ready"}')

    @api.get("/metrics")
    async def metrics(request: Request) -> Response:
        if not service.keys.admit(request.headers.get("authorization")):
            return unauthorized()
        told = await stats_of(await _running(service), wait_s=SCRAPE_WAIT_S)
        page = service.metrics([each for stats in told.values() for each in stats])
        return Response(page, media_type="text/plain; version=0.0.4")


async def _running(service: Service) -> Mapping[str, Release]:
    try:
        async with asyncio.timeout(CONDITIONS_WAIT_S):
            return service.fleet.running(await service.fleet.conditions())
    except (Fault, TimeoutError):  # Serve keeps silent; its replicas need not
        return service.desk.releases
