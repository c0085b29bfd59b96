"""What surrounds a call of the store: one process at a time, no chatter, two kinds of error."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from outrider.tracking.outbox import OutageError, RejectedError

SCHEMA_WAIT_S = 120.0  # another process creates the schema: about 5 s
CHATTY = ("mlflow", "alembic")
# MLflow calls whatever SQLAlchemy raises a bad request. These are about the connection or the
# server, not about what was asked.
PASSING = re.compile(
    r"(Interface|Internal|Operational|Database)Error|\b\w*Shutdown\b|CannotConnectNow|QueuePool"
    r"|[Rr]econnect|rolled back"
)


@contextmanager
def locked(path: Path | None) -> Iterator[None]:
    if path is None:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path, timeout=SCHEMA_WAIT_S):
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the making of tables and an outage's tracebacks off the screen: we tell what matters."""
    loggers = [logging.getLogger(name) for name in CHATTY]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def translated(lasting: frozenset[str] = frozenset()) -> Iterator[None]:
    """What MLflow, SQLAlchemy, HTTP or the disk raise is an outage, or a refusal if `lasting`.

    `lasting`: MLflow's codes, of the error or of what caused it (a `Fault` of the registry).
    MLflow chats meanwhile to nobody.
    """
    try:
        with quiet():
            yield
    except RejectedError:
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        codes = {getattr(each, "error_code", "") for each in (error, error.__cause__)}
        is_lasting = codes & lasting and not PASSING.search(reason)
        raise (RejectedError if is_lasting else OutageError)(reason) from error
