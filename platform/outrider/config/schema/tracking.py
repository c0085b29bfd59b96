"""Where runs are recorded, and which registered release is meant."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, kw_only=True)
class TrackingSettings:
    """Where runs are recorded."""

    enabled: bool = True
    uri: str = ""  # absolute MLflow URI; empty: sqlite:///<repository>/runs/outrider.db
    models_uri: str = ""  # of the store of mlflow: sources; empty: MLFLOW_TRACKING_URI, else uri
    experiment: str = "outrider"
    window_s: float = 5.0  # seconds that one point of the throughput series covers


class Accepted(Enum):
    """What may differ between a registered release and this machine."""

    LOCK = "lock"  # requirements.lock: other versions of the packages
