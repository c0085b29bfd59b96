"""The HTTP API: OpenAI's routes, health, metrics and /admin. Nothing of Ray is met here."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

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
    """The app; `service.fleet` reaches the releases. What is added comes behind its own routes."""

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(service.watch.running())
            for addition in service.additions:
                await stack.enter_async_context(addition.running(service))
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
    for addition in service.additions:
        addition.add(api, service)
    return api
