"""Everything that is not a 2xx, in OpenAI's error shape."""

from __future__ import annotations

import math

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from outrider.openai.errors import AUTHENTICATION, INVALID, SERVER, error_object
from outrider.serving.messages import Refusal
from outrider.serving.sse import as_json, refusal_object

FIRST_SERVER_STATUS = 500


class JsonResponse(Response):
    """A body that is JSON already."""

    media_type = "application/json"


def refused(refusal: Refusal, headers: dict[str, str] | None = None) -> Response:
    """The answer to a call that was not served."""
    headers = dict(headers or {})
    if refusal.retry_after_s is not None:
        headers["retry-after"] = str(math.ceil(refusal.retry_after_s))
    return JsonResponse(as_json(refusal_object(refusal)), refusal.status, headers)


def failed(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> Response:
    kind = SERVER if status >= FIRST_SERVER_STATUS else INVALID
    if status in (401, 403):
        kind = AUTHENTICATION
    return JsonResponse(as_json(error_object(message, kind, param=param, code=code)), status)


def unauthorized(wanted: str = "a key of this server") -> Response:
    """No key, or one that does not fit here."""
    said = f"this needs {wanted}: Authorization: Bearer <key>"
    response = failed(401, said, code="invalid_api_key")
    response.headers["www-authenticate"] = "Bearer"
    return response


def install(api: FastAPI) -> None:
    """Unknown paths, wrong methods and what nobody foresaw."""

    @api.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> Response:
        response = failed(error.status_code, f"{request.method} {request.url.path}: {error.detail}")
        response.headers.update(error.headers or {})
        return response

    @api.exception_handler(Exception)
    async def on_any(request: Request, error: Exception) -> Response:
        return failed(500, f"the gateway failed: {type(error).__name__}")
