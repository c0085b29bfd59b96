"""Alive, ready, and the figures for Prometheus."""

from __future__ import annotations

from fastapi import FastAPI, Request
from starlette.responses import Response

from outrider.serving.http_errors import JsonResponse, failed, unauthorized
from outrider.serving.replica_stats import stats_of
from outrider.serving.service import Service


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
        told = await stats_of(service.desk.releases)
        silent = sorted(name for name, stats in told.items() if not stats)
        if silent:
            return failed(503, f"no replica of release {silent[0]} answers", code="not_ready")
        return JsonResponse(b'{"status":"ready"}')

    @api.get("/metrics")
    async def metrics(request: Request) -> Response:
        if not service.keys.admit(request.headers.get("authorization")):
            return unauthorized()
        told = await stats_of(service.desk.releases)
        page = service.metrics([each for stats in told.values() for each in stats])
        return Response(page, media_type="text/plain; version=0.0.4")
