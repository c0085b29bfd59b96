"""A request's body as an object, of bounded size."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request

from outrider.openai.errors import INVALID
from outrider.serving.messages import Refusal


class BodyError(Exception):
    """The body can't be read."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


async def read_body(request: Request, most_bytes: int) -> dict[str, Any]:
    """Raises `BodyError`: too large (413), not JSON or not an object (400)."""
    if not _says_json(request.headers.get("content-type")):
        raise _refused(400, "content-type must be application/json", "invalid_content_type")
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most_bytes:
            raise _refused(413, f"the body is larger than {most_bytes} bytes", "too_large")
        parts.append(part)
    try:
        value = json.loads(b"".join(parts), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _refused(400, f"the body is not JSON: {why}", "invalid_json") from error
    if not isinstance(value, dict):
        raise _refused(400, "the body must be a JSON object", "invalid_json")
    return value


def _says_json(content_type: str | None) -> bool:
    """Silence will do. A page in a browser can't send JSON to a server that is not its own."""
    kind = (content_type or "application/json").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _refused(status: int, message: str, code: str) -> BodyError:
    return BodyError(Refusal(status=status, message=message, kind=INVALID, code=code))
