"""Live serving."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from outrider.config.schema.console import ConsoleSettings
from outrider.config.schema.draft import DraftSettings
from outrider.config.schema.engine import EngineSettings, SamplingSettings
from outrider.config.schema.model import ModelSettings
from outrider.config.schema.tracking import Accepted, TrackingSettings


@dataclass(frozen=True, kw_only=True)
class ServingSettings:
    """One gateway and one release behind it (`outrider.serving`)."""

    name: str = "main"  # of the release, as clients and headers see it: letters, digits, - and _
    host: str = "127.0.0.1"  # address to listen on; another than loopback needs keys_file
    port: int = 8000
    keys_file: str = ""  # file with one API key a line; empty: no keys, loopback only
    admin_keys_file: str = ""  # the same for /admin; empty: /admin answers on loopback only
    num_replicas: int = 1  # engines at the start, and the least that are kept
    max_replicas: int = 0  # most engines under load; 0: num_replicas
    cpus_per_replica: int = 0  # cores (Ray CPUs and threads) of one; 0: every core / most replicas
    target_load_tokens: int = 2048  # queued tokens a replica should have; more: another replica
    max_queue: int = 64  # requests waiting for a row of a replica; one more is a 429
    max_request_bytes: int = 1_000_000  # a larger body is a 413
    max_choices: int = 16  # largest n, and most prompts in one request
    deadline_s: float = 600.0  # longest a request may take, and what a drain waits for
    health_period_s: float = 5.0  # between health checks of a replica
    stall_s: float = 60.0  # a replica whose decode thread stands still so long is replaced
    affinity_tokens: int = 64  # prompt characters / 4 that choose a replica by prefix; 0: off
    affinity_slack: int = 4  # requests that the replica of the prefix may be ahead of the least
    log_dir: str = ""  # folder of the request log (Parquet); empty: runs/requests under the home
    log_requests: bool = True
    log_prompts: bool = False  # also write prompts and answers
    log_rows: int = 1000  # requests of one Parquet file
    log_period_s: float = 60.0  # longest a request waits to be written
    # The fallback of a whole release (`outrider.serving.guard_state`). Its floors lie below what an
    # engine gives that looks after itself: the length rule spends no slot that promises less than
    # 0.02 tokens (`draft_length.LEAST_SLOT_GAIN`) and rests where a drafter is always wrong, so
    # that too little is drafted to judge; its breaker opens at 0.98 of plain goodput already
    # (`draft.breaker.min_gain`).
    fallback: bool = True
    fallback_min_acceptance: float = 0.02  # accepted / drafted over all replicas; 0: off
    fallback_min_goodput: float = 0.9  # of drafting rows over plain decoding's; 0: off
    fallback_window_s: float = 10.0  # over which both are taken
    fallback_min_drafted: int = 256  # tokens, before they say anything
    fallback_wait_s: float = 30.0  # plain, before the first probes; doubles each time
    fallback_max_wait_s: float = 600.0  # longest wait; after so long without a fall: small again
    fallback_probe_share: float = 0.1  # of the rows, which draft while it is tried again


class ServeAction(Enum):
    """What jobs/serve.py does."""

    RUN = "run"  # serve until Ctrl-C
    EXPORT = "export"  # write a Serve config and a KubeRay manifest


@dataclass(frozen=True, kw_only=True)
class ServeJob:
    """Root of `conf/serve.yaml`."""

    model: ModelSettings
    engine: EngineSettings
    draft: DraftSettings
    sampling: SamplingSettings
    tracking: TrackingSettings
    serving: ServingSettings
    console: ConsoleSettings = field(default_factory=ConsoleSettings)
    release: str = ""  # models:/outrider@champion | models:/outrider/3: decode as it was registered
    accept: tuple[Accepted, ...] = ()  # what of that release may differ here: lock
    action: ServeAction = ServeAction.RUN
    export_dir: str = "runs/export"  # folder for action=export
    export_image: str = "outrider:latest"  # image with this project and Ray, for KubeRay
    export_memory: str = "8Gi"  # of a pod
