"""One process at a time, of all that share a database server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from outrider.tracking.store_uri import DATABASES

LOCK = 0x6F757472696465  # "outride", of PostgreSQL's advisory locks
WAIT_MS = 120_000  # another process makes the schema: about 10 s


@contextmanager
def database_locked(uri: str) -> Iterator[None]:
    """Hold PostgreSQL's lock of ours; for another store, nothing.

    It also asks once whether anybody is there: MLflow asks ten times, for 100 seconds. Raises
    what SQLAlchemy raises where nobody is.
    """
    if urlsplit(uri).scheme.partition("+")[0] not in DATABASES:
        yield
        return
    import sqlalchemy

    engine = sqlalchemy.create_engine(uri, poolclass=sqlalchemy.NullPool)
    with engine.connect() as connection:
        connection.execute(sqlalchemy.text(f"SET statement_timeout = {WAIT_MS}"))
        connection.execute(sqlalchemy.text(f"SELECT pg_advisory_lock({LOCK})"))
        yield  # closing the connection lets go
