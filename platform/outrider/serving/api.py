"""The HTTP API: OpenAI's routes, health, metrics and /admin. Nothing of Ray is met here."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from outrider.serving import http_errors
from outrider.serving.routes.admin import add_admin
from outrider.serving.routes.generation import add_generation
from outrider.serving.routes.health import add_health
from outrider.serving.routes.models import add_models
from outrider.serving.routes.rollout import add_rollout
from outrider.serving.service import Service

__all__ = ["Service", "create_api"]


def create_api(service: Service) -> FastAPI:
    """The app; `service.fleet` reaches the releases."""

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncGenerator[None]:
        async with service.watch.running():
            yield
        service.close()

    api = FastAPI(
        title="Outrider", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan
    )
    http_errors.install(api)
    add_generation(api, service)
    add_models(api, service)
    add_health(api, service)
    add_admin(api, service)
    add_rollout(api, service)
    return api
