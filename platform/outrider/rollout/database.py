"""The database of rollouts: its address, its tables, its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, create_engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, SQLAlchemyError

from outrider.core import Fault, UserError
from outrider.rollout.tables import metadata
from outrider.tracking.database_lock import database_locked
from outrider.tracking.guards import locked
from outrider.tracking.store_uri import database_path, redacted

KEY = "rollout.database"
FORMS = "sqlite:////absolute/path/rollouts.db, or postgresql://..."
BUSY_S = 30.0  # another process writes to the same SQLite file


class Database:
    """One transaction at a time. Tables are made by the first process that opens it.

    Raises UserError for an address that is none, `Fault` while nobody answers there. Neither
    tells a password.
    """

    def __init__(self, url: str) -> None:
        self._engine, self._name = _opened(url)
        path = database_path(url)
        with (
            self._faults(),
            locked(path.with_name(f"{path.name}.lock") if path else None),
            database_locked(url),
        ):
            metadata.create_all(self._engine)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All of the block or nothing. IntegrityError passes through: it says who came first."""
        with self._faults(), self._engine.begin() as connection:
            yield connection

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise Fault(f"the database of rollouts, {self._name}: {_reason(error)}") from error


def _opened(url: str) -> tuple[Engine, str]:
    """With the name that it goes by in messages."""
    try:
        if make_url(url).get_backend_name() == "sqlite":
            _check_file(url)
            return create_engine(url, connect_args={"timeout": BUSY_S}), url
        # Asked before use: a server may have been away in between.
        return create_engine(url, pool_pre_ping=True), redacted(url)
    except (ArgumentError, ImportError, ValueError):  # SQLAlchemy's words may hold the password
        raise UserError(f"{KEY} is no address of a database: give {FORMS}") from None


def _check_file(url: str) -> None:
    path = database_path(url) or Path()
    if not path.is_absolute() or path.is_dir():
        raise UserError(f"{KEY}={url!r} names no file by its absolute path: give {FORMS}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{KEY}={url!r}: can't make {path.parent}: {error.strerror}") from error


def _reason(error: SQLAlchemyError) -> str:
    """The driver's own first line: SQLAlchemy adds the statement with all that is in it."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (str(cause).strip() or type(error).__name__).splitlines()[0][:300]
