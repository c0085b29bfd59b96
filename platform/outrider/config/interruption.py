"""The signal that ends a job, also where a library broke over it on its way out."""

from __future__ import annotations

import signal
from collections.abc import Iterator


class Terminated(BaseException):
    """SIGTERM came. Like KeyboardInterrupt, no `except Exception` swallows it."""

    exit_status = 128 + signal.SIGTERM


def interruption_in(error: BaseException) -> BaseException:
    """The KeyboardInterrupt or `Terminated` that `error` was raised over; else `error` itself.

    A signal may arrive within any line: an event loop that was half made then fails to close,
    and its AttributeError is what comes out.
    """
    signals = (each for each in _chain(error) if isinstance(each, KeyboardInterrupt | Terminated))
    return next(signals, error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        following = following.__context__
