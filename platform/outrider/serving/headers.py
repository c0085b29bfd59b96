"""What the headers of a request and of its answer say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from starlette.datastructures import Headers

from outrider.openai.fields import FieldCode, FieldError
from outrider.serving.desk import Trip
from outrider.serving.messages import Event
from outrider.serving.split import Arm
from outrider.serving.sse import begun_in

REQUEST_ID = "x-request-id"
SESSION_ID = "x-session-id"
ARM = "x-outrider-arm"
SSE = {"cache-control": "no-cache", "x-accel-buffering": "no"}
"""Nothing between here and the client may hold events back."""
SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


def request_id(headers: Headers, fresh: str) -> str:
    """The client's own where it may be written back as it is; else `fresh`."""
    given = headers.get(REQUEST_ID, "")
    return given if SANE_ID.fullmatch(given) else fresh


def arm_of(headers: Headers) -> Arm | None:
    """The arm that a request asks for. `FieldError` where there is none of that name."""
    given = headers.get(ARM)
    if given is None or given in list(Arm):
        return None if given is None else Arm(given)
    message = f"{ARM} must be {' or '.join(Arm)} (got {given[:40]!r})"
    raise FieldError(FieldCode.INVALID, ARM, message)


def where_from(trip: Trip, events: Iterable[Event]) -> dict[str, str]:
    """Release, arm, mode and replica of an answer, as far as they are known."""
    headers = {
        "x-outrider-release": trip.choice.release,
        ARM: trip.choice.arm.value,
    }
    begun = begun_in(events)
    if begun is not None:
        headers |= {"x-outrider-mode": begun.mode.value, "x-outrider-replica": begun.replica}
    return headers
