"""MLflow's limits on names and values (3.17: longer values are cut without an error)."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping

MAX_KEY = 250  # characters
MAX_PARAM = 6000  # characters
MAX_TAG = 8000  # characters
FOREIGN = re.compile(r"[^\w\-./: ]", re.ASCII)


def valid_name(name: str) -> str:
    """`name` if MLflow takes it; else the nearest that it takes, with a digest to keep it apart."""
    parts = [part for part in FOREIGN.sub("_", name).split("/") if part.strip(".")]
    valid = "/".join(parts)
    if valid == name and len(name) <= MAX_KEY:
        return name
    digest = hashlib.sha256(encodable(name).encode()).hexdigest()[:8]
    return f"{valid[: MAX_KEY - 9]}-{digest}"


def encodable(text: str) -> str:
    """`text` as every store can write it: half a surrogate pair (a file's name that is no UTF-8)
    and NUL, which PostgreSQL refuses, become their escapes.
    """
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def fitting(
    values: Mapping[str, str], *, limit: int, folder: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Values of at most `limit` characters, and the texts of those that were longer.

    A long value is replaced by a note with its sha256 and the artifact that holds all of it.

    Returns:
        ({valid name: value or note}, {artifact name: whole value}); the artifact's name has a
        digest in it, so that a run that goes on with another value keeps both.
    """
    short: dict[str, str] = {}
    texts: dict[str, str] = {}
    for key, written in values.items():
        name, value = valid_name(key), encodable(written)
        if len(value) > limit:
            digest = hashlib.sha256(value.encode()).hexdigest()
            artifact = f"{folder}/{name.replace('/', '_')}-{digest[:8]}.txt"
            texts[artifact] = value
            value = f"{len(value)} characters in {artifact}, sha256 {digest}"
        short[name] = value
    return short, texts


def finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """The finite figures under valid names."""
    return {valid_name(name): value for name, value in metrics.items() if math.isfinite(value)}
