"""The operator's console."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ConsoleSettings:
    """What the page /console shows beside the gateway's own figures (`outrider.console`)."""

    enabled: bool = True
    database: str = ""  # of rollouts, SQLAlchemy URL; empty: <repository>/runs/rollouts.db
    url: str = ""  # of the gateway, as jobs/rollout.py names it; empty: from host and port
    beacons_dir: str = ""  # where bulk jobs say that they are there; empty: <repository>/runs/jobs
    mlflow_url: str = ""  # of an MLflow server, for links; empty: tracking.uri, where it is one
    period_s: float = 2.0  # that one point of the charts covers
    keep_s: float = 900.0  # for how long the charts look back
