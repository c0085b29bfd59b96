"""Kept in Ray's own key-value store, where Serve keeps its checkpoint too: with the cluster it
ends, and where that is made to outlive its head node, this does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ray.exceptions import RayError
from ray.experimental.internal_kv import internal_kv_get_gcs_client

from outrider.core import Fault

NAMESPACE = b"outrider"
WAIT_S = 5.0  # of one question


class RayKept:
    """In any process that Ray runs, and in its driver. Needs Ray to be there first."""

    def read(self, key: str) -> Mapping[str, Any] | None:
        text = _ask("internal_kv_get", key.encode(), NAMESPACE)
        if text is None:
            return None
        value: Mapping[str, Any] = json.loads(text)
        return value

    def write(self, key: str, value: Mapping[str, Any]) -> None:
        _ask("internal_kv_put", key.encode(), json.dumps(value).encode(), True, NAMESPACE)

    def forget(self, key: str) -> None:
        _ask("internal_kv_del", key.encode(), False, NAMESPACE)

    def names(self, prefix: str = "") -> list[str]:
        found = _ask("internal_kv_keys", prefix.encode(), NAMESPACE)
        return sorted(key.decode() for key in found)


def _ask(method: str, *arguments: Any) -> Any:
    client = internal_kv_get_gcs_client()
    if client is None:
        raise Fault("Ray is not running: what the service keeps can't be read")
    try:
        return getattr(client, method)(*arguments, timeout=WAIT_S)
    except (RayError, TimeoutError) as error:
        raise Fault(f"Ray's key-value store does not answer: {type(error).__name__}") from error
