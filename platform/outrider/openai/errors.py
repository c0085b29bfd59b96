"""OpenAI's error shape."""

from __future__ import annotations

from typing import Any

INVALID = "invalid_request_error"
AUTHENTICATION = "authentication_error"
RATE_LIMIT = "rate_limit_error"
SERVER = "server_error"


def error_object(
    message: str, kind: str = INVALID, *, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """`{"error": {...}}`, the body of every answer that is not a 2xx, and of an SSE error event."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
