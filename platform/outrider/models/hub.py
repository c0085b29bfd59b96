"""`hub:`: a snapshot of a Hugging Face repository, without anything that could run."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from outrider.core import Fault, UserError
from outrider.models.digest import verify_sha256
from outrider.models.source import HubSource

PATTERNS = (
    *("*.safetensors", "*.json", "*.jinja"),
    *("tokenizer.model", "merges.txt", "vocab.txt"),
)
"""No `.bin`, `.pt` or `.py` is ever asked for."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


def fetch_snapshot(
    source: HubSource, folder: Path, *, downloads: Path, endpoint: str | None = None
) -> None:
    """Fill the empty `folder` with the repository's weights, configuration and tokenizer.

    Files are kept in `downloads` while they come, so that a broken download goes on where it
    stopped. Raises UserError for a repository, revision or file that is not there (or not open to
    this user), Fault when the network fails.
    """
    snapshot = _download(source, downloads, endpoint)
    for found in _wanted(source, snapshot):
        _place(found, folder / found.name)


def _wanted(source: HubSource, snapshot: Path) -> list[Path]:
    if source.member is None:
        return [path for pattern in PATTERNS for path in snapshot.glob(pattern)]
    if not (snapshot / source.member).exists():
        raise UserError(f"model.source: {source.repository} has no file {source.member}")
    return [snapshot / source.member]


def _download(source: HubSource, downloads: Path, endpoint: str | None) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    name = f"hub:{source.repository}@{source.revision}"
    try:
        return Path(
            snapshot_download(
                source.repository,
                revision=source.revision,
                cache_dir=downloads,
                endpoint=endpoint,
                allow_patterns=[source.member] if source.member else list(PATTERNS),
            )
        )
    except LocalEntryNotFoundError as error:
        raise Fault(_unreachable(name)) from error
    except HfHubHTTPError as error:
        raise UserError(
            f"model.source: {name} cannot be read ({_status(error)}); check the name and the "
            "revision, and log in with `hf auth login` if the repository is gated"
        ) from error


def _unreachable(name: str) -> str:
    return (
        f"model.source: {name} cannot be downloaded: the hub does not answer; check the network, "
        "or fetch the files by other means and point model.source at them with path:"
    )


def _status(error: Exception) -> str:
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    return f"HTTP {status}" if status else type(error).__name__


def _place(found: Path, destination: Path) -> None:
    """Link the file behind a snapshot's entry; a large file is checked against its name.

    The hub's cache names a large file by its sha256.
    """
    blob = found.resolve()
    if _SHA256.fullmatch(blob.name):
        verify_sha256(blob, blob.name)
    try:
        os.link(blob, destination)
    except OSError:  # another file system, or one without links
        shutil.copyfile(blob, destination)
