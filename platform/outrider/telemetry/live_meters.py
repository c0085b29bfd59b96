"""Figures that only a live page tells: of engines, of the gateway, of rollouts, of bulk jobs.

Phases and verdicts are a gauge for each of their values: 1 for the one that holds, else 0.
"""

from __future__ import annotations

from outrider.telemetry.meter import Meter

# -- of an engine -------------------------------------------------------------------------------

ROUNDS_S = Meter("rounds_s", "seconds", "Seconds that an engine spent in rounds.")
PLAIN_ROUNDS_S = Meter(
    "plain_rounds_s",
    "seconds",
    "Seconds that plain decoding of the same tokens would have taken, by the engine's cost model.",
)
ROUNDS_BY_DRAFT_LENGTH = Meter(
    "rounds_by_draft_length", "rounds", "Rounds of a row, by how many tokens were drafted for it."
)
POSITION_EVALUATED_TOKENS = Meter(
    "position_evaluated_tokens", "tokens", "Drafted tokens that were tested, by their position."
)
POSITION_ACCEPTED_TOKENS = Meter(
    "position_accepted_tokens", "tokens", "Drafted tokens that were accepted, by their position."
)
BREAKER_PHASE = Meter(
    "breaker_phase", "1", "1 for the phase of an engine's breaker (open: every round is plain)."
)
NUM_OPEN_ROWS = Meter("num_open_rows", "rows", "Rows whose own breaker is not closed, now.")
REPLICA_MODE = Meter("replica_mode", "1", "1 for the mode that a replica was told to decode in.")
MAX_WAITING = Meter("max_waiting", "rows", "Rows that may wait in a replica; one more is a 429.")
QUEUED_TOKENS = Meter(
    "queued_tokens", "tokens", "Tokens still to be computed for the rows that are there, at most."
)
NUM_FREE_BLOCKS = Meter("num_free_blocks", "blocks", "Free KV blocks.")
NUM_BLOCKS = Meter("num_blocks", "blocks", "KV blocks.")

# -- of the gateway -----------------------------------------------------------------------------

NUM_CALLS = Meter("num_calls", "calls", "Calls under way in the gateway, now.")
MAX_CALLS = Meter("max_calls", "calls", "Calls that may be under way in the gateway.")
ARM_WEIGHT = Meter("arm_weight", "1", "Share of the requests that the plan gives an arm.")
NUM_ROUTED = Meter("num_routed", "requests", "Requests sent to an arm, forced ones apart.")
NUM_RETRIES = Meter("num_retries", "tries", "Tries after a lost replica.")
GUARD_TRANSITIONS = Meter(
    "guard_transitions", "transitions", "Changes of a release's guard to a phase."
)

# -- lineage ------------------------------------------------------------------------------------

RELEASE_INFO = Meter("release_info", "1", "1 for a release that is here, its fingerprint, health.")
GATEWAY_INFO = Meter("gateway_info", "1", "1: the version, the model and the MLflow run.")
NUM_ROLLOUTS = Meter("num_rollouts", "rollouts", "Rollouts in the database, by their phase.")

# -- of the rollout that is under way -----------------------------------------------------------

ROLLOUT_PHASE = Meter("rollout_phase", "1", "1 for the phase that the rollout is in.")
ROLLOUT_STEP = Meter("rollout_step", "1", "Step of the canary, from 0.")
ROLLOUT_WEIGHT = Meter("rollout_weight", "1", "The candidate's share of the requests, now.")
ROLLOUT_ELAPSED_S = Meter("rollout_elapsed_s", "seconds", "Seconds in this phase or step.")
ROLLOUT_PAUSED = Meter("rollout_paused", "1", "1 while an operator holds the rollout.")
ROLLOUT_WAITS = Meter("rollout_waits", "1", "1 while the rollout waits for an approval.")
ROLLOUT_STALLED = Meter("rollout_stalled", "1", "1 where a step took longer than it may.")
ROLLOUT_CONTROLLED = Meter("rollout_controlled", "1", "1 while a process controls the rollout.")
ROLLOUT_VERDICT = Meter("rollout_verdict", "1", "1 for the verdict on a figure, by group.")
ROLLOUT_ESTIMATE = Meter("rollout_estimate", "1", "What a figure is thought to be, by group.")
ROLLOUT_LOW = Meter("rollout_low", "1", "Lower end of a figure's interval, by group.")
ROLLOUT_HIGH = Meter("rollout_high", "1", "Upper end of a figure's interval, by group.")
ROLLOUT_BOUND = Meter("rollout_bound", "1", "What a figure is judged against, by group.")

# -- of bulk jobs -------------------------------------------------------------------------------

BULK_NUM_ROWS = Meter("bulk_num_rows", "rows", "Rows of a job's input.")
BULK_NUM_ROWS_DONE = Meter("bulk_num_rows_done", "rows", "Rows of a job that have a completion.")
BULK_NUM_ROWS_FAILED = Meter("bulk_num_rows_failed", "rows", "Rows of a job that failed.")
BULK_IS_RUNNING = Meter("bulk_is_running", "1", "1 while the job's process runs.")
BULK_ETA_S = Meter("bulk_eta_s", "seconds", "Seconds until a job will have ended, as it goes now.")
BULK_NUM_EMITTED_TOKENS = Meter(
    "bulk_num_emitted_tokens", "tokens", "Tokens of the completions, in this run of a job."
)
BULK_NUM_EVALUATED_TOKENS = Meter(
    "bulk_num_evaluated_tokens", "tokens", "Drafted tokens that were tested, in this run of a job."
)
BULK_NUM_ACCEPTED_TOKENS = Meter(
    "bulk_num_accepted_tokens", "tokens", "Drafted tokens that were accepted, in this run of a job."
)

# -- ratios that rules and dashboards derive, never on /metrics itself ----------------------------

GOODPUT_RATIO = Meter(
    "goodput_ratio", "1", "plain_rounds_s / rounds_s: above 1, drafting gives more than it costs."
)
REFUSAL_RATIO = Meter("refusal_ratio", "1", "Requests turned away with a 429 / requests.")
QUEUE_RATIO = Meter("queue_ratio", "1", "Rows that wait / rows that may wait.")
CALLS_RATIO = Meter("calls_ratio", "1", "Calls under way in the gateway / calls that may be.")
KV_RATIO = Meter("kv_ratio", "1", "KV blocks in use / KV blocks.")
SHARE_RATIO = Meter("share_ratio", "1", "An arm's requests / all requests, forced ones apart.")
