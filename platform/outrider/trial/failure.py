"""How a request ended that got no full answer."""

from __future__ import annotations

from enum import StrEnum


class Failure(StrEnum):
    """Kinds of failure, as tables and figures tell them apart."""

    REFUSED = "refused"  # the engine can't ever serve it: longer than its context, say
    ERROR = "error"  # it failed while it was decoded
    TIMEOUT = "timeout"  # it took longer than `trial.timeout_s` and was cancelled
    LOST = "lost"  # the process that decoded it died
