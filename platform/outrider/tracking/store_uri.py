"""Where an MLflow store is: explicit and absolute, or refused."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from outrider.core import UserError

SQLITE = "sqlite:///"
HTTP = frozenset({"http", "https"})
DATABASES = frozenset({"postgresql"})
FORMS = "sqlite:////absolute/path/outrider.db, postgresql://..., or http(s)://..."


def sqlite_uri(path: Path) -> str:
    """The URI of a SQLite file, made absolute."""
    return f"{SQLITE}{path.absolute()}"


def checked(uri: str) -> str:
    """`uri`, if a store may be there.

    Raises UserError for what MLflow would read relative to the working directory (`sqlite:///x.db`,
    a bare path), the file store that MLflow 3 refuses, a store in memory, an unknown scheme.
    """
    scheme = urlsplit(uri).scheme.partition("+")[0]
    if scheme == "sqlite":
        _check_sqlite(uri)
    elif scheme not in HTTP | DATABASES or not urlsplit(uri).netloc:
        raise UserError(f"tracking.uri={redacted(uri)!r} is not a store's address: give {FORMS}")
    return uri


def is_served(uri: str) -> bool:
    """Whether an MLflow server answers there; else a database does."""
    return urlsplit(uri).scheme in HTTP


def database_path(uri: str) -> Path | None:
    """The file of a SQLite store; None for every other store."""
    if not uri.startswith("sqlite"):
        return None
    return Path(uri.partition(":///")[2].partition("?")[0])


def default_artifact_root(uri: str, spool_dir: Path) -> Path | None:
    """Beside the SQLite file; beside the spool for another database; None: the server knows."""
    if is_served(uri):
        return None
    database = database_path(uri)
    return (database.parent if database else spool_dir.absolute().parent) / "artifacts"


def schema_lock(uri: str, spool_dir: Path) -> Path | None:
    """The lock of who creates the schema; None: a server does that by itself."""
    if is_served(uri):
        return None
    database = database_path(uri)
    return database.with_name(f"{database.name}.lock") if database else spool_dir / "schema.lock"


def open_command(uri: str) -> str:
    """What a person types, or the page they visit, to see the runs. Passwords are left out."""
    if is_served(uri):
        return f"{shlex.quote(sys.executable)} -m webbrowser {shlex.quote(redacted(uri))}"
    beside = Path(sys.executable).with_name("mlflow")
    program = str(beside) if beside.exists() else "mlflow"
    return f"{shlex.quote(program)} ui --backend-store-uri {shlex.quote(redacted(uri))}"


def redacted(uri: str) -> str:
    """`uri` without passwords, for messages."""
    parts = urlsplit(uri)
    login, at, host = parts.netloc.rpartition("@")
    user, colon, _ = login.partition(":")
    query = re.sub(r"(password=)[^&]*", r"\1***", parts.query)
    if not colon and query == parts.query:
        return uri
    netloc = f"{user}:***{at}{host}" if colon else parts.netloc
    return urlunsplit(parts._replace(netloc=netloc, query=query))


def _check_sqlite(uri: str) -> None:
    path = database_path(uri)
    assert path is not None
    if not path.is_absolute():
        raise UserError(
            f"tracking.uri={uri!r} depends on the working directory: "
            f"give an absolute path, with four slashes (sqlite:////absolute/path/outrider.db)"
        )
    if path.is_dir():
        raise UserError(f"tracking.uri={uri!r} names a folder: name a file in it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"tracking.uri={uri!r}: can't make {path.parent}: {error.strerror}"
        ) from error
