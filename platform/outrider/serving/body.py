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
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most_bytes:
            raise _refused(413, f"the body is larger than {most_bytes} bytes", "too_large")
        parts.append(part)
    try:
        value = json.loads(b"".join(parts))
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _refused(400, f"the body is not JSON: {why}", "invalid_json") from error
    if not isinstance(value, dict):
        raise _refused(400, "the body must be a JSON object", "invalid_json")
    return value


def _refused(status: int, message: str, code: str) -> BodyError:
    return BodyError(Refusal(status=status, message=message, kind=INVALID, code=code))
