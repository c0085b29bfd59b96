"""The page's files: read once, so that a request reaches nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from outrider.config.folders import SHIPPED

FOLDER = SHIPPED.parent / "dashboards" / "console"
INDEX = "index.html"
KINDS = {  # whatever else lies there is not served
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """One file."""

    body: bytes
    kind: str  # content-type
    tag: str  # ETag, of the content

    @classmethod
    def of(cls, body: bytes, kind: str) -> Asset:
        return cls(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


Assets = Mapping[str, Asset]
"""By path below the folder, with slashes. Empty where there is no such folder."""


def read_assets(folder: Path = FOLDER) -> Assets:
    return {
        path.relative_to(folder).as_posix(): Asset.of(path.read_bytes(), KINDS[path.suffix])
        for path in sorted(folder.rglob("*"))
        if path.suffix in KINDS and path.is_file()
    }
