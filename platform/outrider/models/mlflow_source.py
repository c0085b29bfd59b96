"""`mlflow:`: the files of a registered model's version, out of the store that the user named."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from outrider.core import Fault, UserError
from outrider.models.hub import PATTERNS
from outrider.models.source import MlflowSource

STORE = "MLFLOW_TRACKING_URI"
ABSOLUTE = re.compile(r"(?!sqlite:///[^/])[\w+]+://\S")
ABSENT = ("RESOURCE_DOES_NOT_EXIST", "INVALID_PARAMETER_VALUE")  # a version, an alias


def store_from(environ: Mapping[str, str], store: str = "") -> str:
    """`store`, or the address that MLFLOW_TRACKING_URI names.

    UserError where neither is absolute: MLflow would make a store here.
    """
    found = store or environ.get(STORE, "")
    if ABSOLUTE.match(found) is None:
        raise UserError(
            "model.source: mlflow: needs the absolute address of the store, in tracking.models_uri"
            f" or {STORE}"
        )
    return found


def version_number(source: MlflowSource, store: str) -> int:
    """The version that the source means now. UserError where the store has none."""
    if source.alias is None:
        return int(source.uri.rpartition("/")[2])
    with _asked(source.uri):
        return int(_client(store).get_model_version_by_alias(source.name, source.alias).version)


def fetch_version(name: str, number: int, store: str, folder: Path) -> None:
    """Fill the empty `folder` with the version's weights, configuration and tokenizer.

    They lie at its top, or as MLflow's transformers flavour lays them. Raises UserError for a
    version that is not there, Fault when the store is away.
    """
    with _asked(f"models:/{name}/{number}"), tempfile.TemporaryDirectory(dir=folder.parent) as kept:
        from mlflow.artifacts import download_artifacts

        uri = _client(store).get_model_version_download_uri(name, str(number))
        root = Path(download_artifacts(uri, dst_path=kept, tracking_uri=store))
        for part in (root / "components" / "tokenizer", root / "model", root):
            for path in (path for pattern in PATTERNS for path in part.glob(pattern)):
                shutil.copy(path, folder / path.name)


def _client(store: str) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=store, registry_uri=store)


@contextmanager
def _asked(what: str) -> Iterator[None]:
    try:
        yield
    except (UserError, Fault):
        raise
    except Exception as error:
        said = (str(error).strip() or type(error).__name__).splitlines()[0][:300]
        kind = UserError if getattr(error, "error_code", "") in ABSENT else Fault
        raise kind(f"model.source: {what}: {said}") from error
