"""What every route of /admin does first and last: the admin key, and errors in words."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request
from starlette.responses import Response

from outrider.core import Fault, UserError
from outrider.openai.fields import FieldError
from outrider.serving.body import BodyError
from outrider.serving.fleet import ConflictError, UnknownReleaseError
from outrider.serving.http_errors import JsonResponse, failed, refused, unauthorized
from outrider.serving.service import Service
from outrider.serving.sse import as_json

STATUS: dict[type[Exception], int] = {UnknownReleaseError: 404, ConflictError: 409}


async def guarded(
    service: Service, request: Request, work: Callable[[], Awaitable[Any]], status: int = 200
) -> Response:
    """`work`'s value as JSON; 401 without an admin key."""
    if not service.admin_keys.admit(request.headers.get("authorization")):
        return unauthorized("an admin key")
    try:
        told = await work()
    except BodyError as error:
        return refused(error.refusal)
    except FieldError as error:
        return failed(400, str(error), param=error.param, code=error.code.value)
    except (ValueError, UserError) as error:
        return failed(STATUS.get(type(error), 400), str(error))
    except Fault as fault:
        return failed(503, str(fault))
    return told if isinstance(told, Response) else JsonResponse(as_json(told), status)
