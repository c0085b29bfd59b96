"""Holds a Ray until its input ends: `python ray_holder.py`.

Says where to join it, and where its dashboard is.
"""

from __future__ import annotations

import sys

from outrider.cluster.environment import prepare_environment

prepare_environment()  # Ray reads it when imported

import ray  # noqa: E402

there = ray.init(
    "local",
    num_cpus=4,
    include_dashboard=True,
    dashboard_port=0,
    log_to_driver=False,
    logging_level="error",
    object_store_memory=128 * 2**20,
    _system_config={"metrics_report_interval_ms": 1000},
)
print(there.address_info["gcs_address"], there.dashboard_url, flush=True)
sys.stdin.read()
ray.shutdown()
