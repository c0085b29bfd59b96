"""A candidate release beside stable: how it is tried, and what takes it back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from outrider.config.schema.tracking import Accepted, TrackingSettings


class OnStall(Enum):
    """What follows where a step's time is over and its evidence is still inconclusive."""

    HOLD = "hold"  # stay at this weight and go on looking
    ROLLBACK = "rollback"
    MANUAL = "manual"  # wait for an operator: approve goes on, abort takes it back


@dataclass(frozen=True, kw_only=True)
class PlanSettings:
    """The way from a shadow to all traffic (`outrider.rollout.state`)."""

    shadow_share: float = 1.0  # of stable's requests that the candidate decodes too; 0: no shadow
    shadow_in_flight: int = 4  # mirrored requests at a time; one more is dropped and counted
    shadow_deadline_s: float = 60.0  # longest that a mirrored request may take
    weights: tuple[float, ...] = (0.05, 0.25, 0.5)  # candidate's share of the keys, step by step
    min_samples: int = 50  # requests of each arm, in each step, before it may move on
    min_s: float = 60.0  # least time in a step
    max_s: float = 1800.0  # of a step; what is inconclusive then has stalled
    approvals: tuple[float, ...] = ()  # weights that are left only when an operator approves
    on_stall: OnStall = OnStall.HOLD
    confirm: bool = True  # decode the confirmation prompts, once, before full promotion
    keep_s: float = 600.0  # how long the old stable stays warm behind a promotion
    most_per_minute: int = 0  # requests that the candidate may get, by weight or force; 0: any


@dataclass(frozen=True, kw_only=True)
class GateSettings:
    """What a candidate must reach against stable's requests of the same time
    (`outrider.rollout.analysis`). Written down and hashed before the first request.

    Each is an effect floor: worse than that fails, surely not worse passes. 0 turns a ratio off.
    """

    min_speed_ratio: float = 0.95  # tokens per second of a request
    min_acceptance_ratio: float = 0.8  # accepted over drafted tokens
    min_tokens_per_round_ratio: float = 0.9
    max_first_token_ratio: float = 1.25
    max_inter_token_ratio: float = 1.1
    max_total_ratio: float = 1.25  # time to the whole answer
    max_error_increase: float = 0.02  # share of failed requests, candidate's minus stable's
    max_mismatches: int = 0  # mirrored answers that differ, near ties apart
    near_tie: float = 0.5  # logits; a greedy difference at a smaller top-2 margin is a near tie
    alpha: float = 0.05  # chance that a candidate no worse than the floors is ever rolled back
    min_group: int = 200  # requests of each arm before a kind of request is judged by itself


class RolloutAction(Enum):
    """What jobs/rollout.py does."""

    START = "start"  # begin with `release`, or go on with the rollout that is active
    STATUS = "status"
    WATCH = "watch"  # follow without controlling
    PAUSE = "pause"
    RESUME = "resume"
    APPROVE = "approve"  # pass the gate that waits for an operator
    PROMOTE = "promote"  # to all traffic now
    ABORT = "abort"  # back to stable now
    RETRY = "retry"  # the last release again, after an abort or a failed deployment
    HISTORY = "history"
    EXPLAIN = "explain"  # in words: where it stands and why
    DEMO = "demo"  # three stories on a service of its own, under load
    SIMULATE = "simulate"  # false rollbacks, power and time to detection of these gates


@dataclass(frozen=True, kw_only=True)
class WebhookSettings:
    """HTTP posts of each move, as JSON. Empty: none."""

    pre_url: str = ""  # asked before the candidate is deployed; must answer 2xx
    step_url: str = ""  # told of every move
    done_url: str = ""  # told of the end
    tries: int = 4
    timeout_s: float = 5.0  # of one try


@dataclass(frozen=True, kw_only=True)
class RolloutSettings:
    """Where the service is, and where rollouts are kept (`outrider.rollout`)."""

    evaluation: str  # JSONL whose confirmation part is decoded before full promotion
    url: str = "http://127.0.0.1:8000"  # of the gateway
    admin_key_file: str = ""  # file with the admin key; needed off loopback
    database: str = ""  # SQLAlchemy URL; empty: sqlite:///<repository>/runs/rollouts.db
    reason: str = ""  # why, kept with the operator's action
    force: bool = False  # also a release that was rolled back before
    dry_run: bool = False  # say what would be done, do nothing
    tick_s: float = 1.0  # between looks
    per_s: float = 2.0  # requests a second that action=simulate plays
    confirmation_share: float = 0.5  # of each kind's prompts, chosen by a hash of their ids
    answer_tokens: int = 64  # most tokens of a confirmation answer


@dataclass(frozen=True, kw_only=True)
class RolloutJob:
    """Root of `conf/rollout.yaml`."""

    plan: PlanSettings
    gates: GateSettings
    webhooks: WebhookSettings
    rollout: RolloutSettings
    tracking: TrackingSettings
    release: str = ""  # models:/outrider@challenger, or overrides such as "draft=fixed max=4"
    accept: tuple[Accepted, ...] = ()  # what of that release may differ here: lock
    action: RolloutAction = RolloutAction.START
