"""/v1/models: the model under its own name and under that of each release."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from outrider.openai.errors import INVALID
from outrider.serving.http_errors import JsonResponse, refused, unauthorized
from outrider.serving.messages import Refusal
from outrider.serving.service import Service
from outrider.serving.sse import as_json

LONGEST_NAME = 100  # characters of an unknown name that are said again


def add_models(api: FastAPI, service: Service) -> None:
    @api.get("/v1/models")
    async def models(request: Request) -> Response:
        if not service.keys.admit(request.headers.get("authorization")):
            return unauthorized()
        data = [_model(service, name) for name in _in_order(service)]
        return JsonResponse(as_json({"object": "list", "data": data}))

    @api.get("/v1/models/{name:path}")
    async def model(request: Request, name: str) -> Response:
        if not service.keys.admit(request.headers.get("authorization")):
            return unauthorized()
        if name not in service.names:
            return no_model(service, name)
        return JsonResponse(as_json(_model(service, name)))


def no_model(service: Service, name: str) -> Response:
    """404 for a name that nothing here has."""
    names = ", ".join(_in_order(service))
    message = f"no model {name[:LONGEST_NAME]!r} here; there is {names}"
    refusal = Refusal(
        status=404, message=message, kind=INVALID, param="model", code="model_not_found"
    )
    return refused(refusal)


def _in_order(service: Service) -> list[str]:
    """The model's own name first: many clients take the first one, and whoever names a release is
    no part of a rollout's evidence.
    """
    return sorted(service.names, key=lambda name: (name != service.model, name))


def _model(service: Service, name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": service.created, "owned_by": "outrider"}
