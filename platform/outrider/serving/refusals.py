"""What a call hears that is not served, or not to its end. Status, code and when to try again."""

from __future__ import annotations

from dataclasses import replace

from outrider.core import UserError
from outrider.openai.errors import INVALID, RATE_LIMIT, SERVER
from outrider.serving.messages import Refusal

LOST = Refusal(
    status=503, message="the replica was lost; try again", kind=SERVER, code="replica_lost"
)
CUT = replace(LOST, message="the replica was lost in the middle of this answer; ask again")
BUSY = Refusal(
    status=429,
    message="every queue is full; try again in 1 s",
    kind=RATE_LIMIT,
    code="busy",
    retry_after_s=1.0,
)
LEAVING = Refusal(
    status=503,
    message="the server is stopping; try again in 5 s",
    kind=SERVER,
    code="stopping",
    retry_after_s=5.0,
)


def invalid(error: UserError) -> Refusal:
    """The call itself is wrong: a message that begins with a field's name tells which."""
    message = str(error)
    param = message.partition(":")[0]
    return Refusal(
        status=400, message=message, kind=INVALID, param=param if param.isidentifier() else None
    )


def busy(wait_s: int) -> Refusal:
    """A replica's places are taken; one is likely to be free in `wait_s`."""
    message = f"every place is taken; try again in {wait_s} s"
    return replace(BUSY, message=message, retry_after_s=float(wait_s))


def closed(message: str) -> Refusal:
    """The engine takes nothing more: another replica may."""
    return Refusal(status=503, message=message, kind=SERVER)


def failed(message: str, code: str | None = None) -> Refusal:
    """Nobody's mistake but the server's."""
    return Refusal(status=500, message=message, kind=SERVER, code=code)


def too_late(message: str) -> Refusal:
    """The call's deadline has passed."""
    return Refusal(status=504, message=message, kind=SERVER, code="deadline")
