"""What Serve says of the applications that it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray.serve.schema import LoggingConfig

from outrider.core import Fault

QUIET = LoggingConfig(enable_access_log=False, log_level="WARNING")


def running_applications() -> Mapping[str, Any]:
    """Serve's own view of each, by name. Waits for its controller."""
    try:
        applications: Mapping[str, Any] = serve.status().applications
        return applications
    except (RayError, RayServeException, TimeoutError) as error:
        raise Fault(f"Serve does not answer: {type(error).__name__}") from error


def messages_of(application: Any) -> list[str]:
    """What it says of its deployments."""
    return [each.message for each in application.deployments.values() if each.message.strip()]
