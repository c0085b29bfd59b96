"""The database of rollouts: its address, its tables, its errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, inspect, make_url
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

    def __init__(self, url: str, *, visit_s: float | None = None, key: str = KEY) -> None:
        """`visit_s`: it is visited as others made it, if they did (`is_there`), and nobody is
        waited for much longer. `key`: the setting that named it.
        """
        self._engine, self._name = _opened(url, visit_s, key)
        self._path, self._key = _file(make_url(url)), key
        self._limit = "" if visit_s is None else _limit(make_url(url), visit_s)
        if visit_s is None:
            self._make(url)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All of the block or nothing. IntegrityError passes through: it says who came first."""
        with self._faults(), self._engine.begin() as connection:
            if self._limit:
                connection.exec_driver_sql(self._limit)
            yield connection

    @property
    def is_there(self) -> bool:
        """Whether it was made: its file and all its tables."""
        if self._path is not None and not self._path.exists():
            return False
        with self.transaction() as connection:
            return set(metadata.tables) <= set(inspect(connection).get_table_names())

    def close(self) -> None:
        """No connection stays; the next transaction makes one."""
        self._engine.dispose()

    def _make(self, url: str) -> None:
        path = self._path
        if path is not None:
            _make_folder(path, url, self._key)
        with (
            self._faults(),
            locked(path.with_name(f"{path.name}.lock") if path else None),
            database_locked(url),
        ):
            metadata.create_all(self._engine)

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            raise Fault(f"the database of rollouts, {self._name}: {_reason(error)}") from error


def check_address(url: str, key: str) -> None:
    """UserError where no database of rollouts can be. Nobody is asked, nothing is made."""
    _opened(url, None, key)


def _opened(url: str, visit_s: float | None, key: str) -> tuple[Engine, str]:
    """With the name that it goes by in messages. Nobody is asked yet."""
    try:
        where = make_url(url)
        if where.get_backend_name() == "sqlite":
            _check_file(url, key)
            busy_s = BUSY_S if visit_s is None else visit_s
            where = where if visit_s is None else _existing(where)
            return create_engine(where, connect_args={"timeout": busy_s}), url
        limits = _limits(where, visit_s)
        # Asked before use: a server may have been away in between.
        return create_engine(where, pool_pre_ping=True, connect_args=limits), redacted(url)
    except (ArgumentError, ImportError, ValueError):  # SQLAlchemy's words may hold the password
        raise UserError(f"{key} is no address of a database: give {FORMS}") from None


def _file(where: URL) -> Path | None:
    """As SQLAlchemy understands it: what it opens."""
    return Path(where.database or "") if where.get_backend_name() == "sqlite" else None


def _existing(where: URL) -> URL:
    """A file that is gone since it was looked for is not made again."""
    query = {**where.query, "mode": "rw", "uri": "true"}
    return where.set(database=f"file:{quote(where.database or '')}", query=query)


def _limits(where: URL, visit_s: float | None) -> dict[str, int]:
    """For libpq, the whole of connecting: a server that hangs hangs there."""
    is_libpq = where.get_driver_name().startswith("psycopg")
    return {} if visit_s is None or not is_libpq else {"connect_timeout": round(visit_s)}


def _limit(where: URL, visit_s: float) -> str:
    """Of one statement, where the server may keep it waiting: SQLite has its own limit."""
    is_postgres = where.get_backend_name() == "postgresql"
    return f"SET LOCAL statement_timeout = {round(1000 * visit_s)}" if is_postgres else ""


def _check_file(url: str, key: str) -> None:
    path = database_path(url) or Path()
    if not path.is_absolute() or path.is_dir():
        raise UserError(f"{key}={url!r} names no file by its absolute path: give {FORMS}")


def _make_folder(path: Path, url: str, key: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{key}={url!r}: can't make {path.parent}: {error.strerror}") from error


def _reason(error: SQLAlchemyError) -> str:
    """The driver's own first line: SQLAlchemy adds the statement with all that is in it."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    return (str(cause).strip() or type(error).__name__).splitlines()[0][:300]
