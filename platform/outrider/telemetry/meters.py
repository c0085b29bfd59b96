"""Every figure's name, unit and meaning: one name everywhere (report, MLflow, metrics).

Those that only a live page tells are in `live_meters`; METERS has all.

Counts are `num_*`, durations `*_s`, ratios `*_ratio`. Counters come first; what is derived from
them is derived here, so that every place that shows it shows the same. A name may have
`window.` before it (a point of a series, not the whole run) and `/group` behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from outrider.core import Counters
from outrider.telemetry import live_meters
from outrider.telemetry.meter import Meter

WINDOW = "window."
PERCENTS = (50, 95, 99)


NUM_ROWS = Meter("num_rows", "rows", "Rows of the input.")
NUM_ROWS_DONE = Meter("num_rows_done", "rows", "Rows that have a completion.")
NUM_ROWS_FAILED = Meter("num_rows_failed", "rows", "Rows in errors.jsonl, each with its reason.")
NUM_PROMPT_TOKENS = Meter("num_prompt_tokens", "tokens", "Tokens of the prompts.")
NUM_CACHED_TOKENS = Meter(
    "num_cached_tokens", "tokens", "Prompt tokens found in the prefix cache, not computed again."
)
NUM_DRAFTED_TOKENS = Meter(
    "num_drafted_tokens", "tokens", "Tokens that a drafter proposed and the target scored."
)
NUM_EVALUATED_TOKENS = Meter(
    "num_evaluated_tokens", "tokens", "Drafted tokens that the rule tested, up to a rejection."
)
NUM_ACCEPTED_TOKENS = Meter("num_accepted_tokens", "tokens", "Drafted tokens that were accepted.")
NUM_EMITTED_TOKENS = Meter("num_emitted_tokens", "tokens", "Tokens of the completions.")
NUM_CROPPED_TOKENS = Meter(
    "num_cropped_tokens", "tokens", "Accepted or sampled tokens that a stop cut off."
)
NUM_ROUNDS = Meter("num_rounds", "rounds", "Rounds in which a row was sampled, summed over rows.")
NUM_DRAFT_ROUNDS = Meter("num_draft_rounds", "rounds", "Rounds with a drafted token for the row.")
NUM_DRAFTER_FAILURES = Meter(
    "num_drafter_failures", "failures", "Rounds made plain because the drafter failed."
)
NUM_CAUGHT_UP_TOKENS = Meter(
    "num_caught_up_tokens", "tokens", "Tokens that a drafter computed late, after plain rounds."
)
NUM_PREEMPTIONS = Meter("num_preemptions", "preemptions", "Rows put back because KV was full.")
NUM_COMPARED = Meter(
    "num_compared", "rows", "Answers compared: with plain decoding's, or with stable's."
)
NUM_MISMATCHES = Meter("num_mismatches", "rows", "Compared answers that differ, near ties apart.")
NUM_NEAR_TIES = Meter(
    "num_near_ties", "rows", "Compared answers that part where the target's top 2 are close."
)

NUM_REQUESTS = Meter("num_requests", "requests", "Requests that ended, whatever came of them.")
NUM_FAILED = Meter("num_failed", "requests", "Requests that ended with an error.")
NUM_SHADOWS_DROPPED = Meter(
    "num_shadows_dropped", "requests", "Not mirrored for want of room, while a candidate is tried."
)
NUM_OVER_LIMIT = Meter(
    "num_over_limit", "requests", "Sent to stable: the candidate had its share of the minute."
)
NUM_LINES_LOST = Meter(
    "num_lines_lost", "lines", "Of a rollout's evidence, overwritten before they were read."
)
NUM_REPLICAS = Meter("num_replicas", "replicas", "Replicas that told their counters.")
NUM_RUNNING = Meter("num_running", "rows", "Rows being decoded, now.")
NUM_WAITING = Meter("num_waiting", "rows", "Rows that wait for a slot, now.")

TOKENS_PER_S = Meter(
    "tokens_per_s",
    "tokens/second",
    "Emitted tokens per second: of decoding (active_s) for a whole job, of wall clock in a window.",
)
PLAIN_TOKENS_PER_S = Meter(
    "plain_tokens_per_s", "tokens/second", "The same for plain decoding of the same rows."
)
SPEEDUP_RATIO = Meter("speedup_ratio", "1", "tokens_per_s / plain_tokens_per_s.")
ACCEPTANCE_RATIO = Meter(
    "acceptance_ratio", "1", "Accepted / evaluated tokens: what stands behind a rejection apart."
)
DRAFT_ACCEPTANCE_RATIO = Meter(
    "draft_acceptance_ratio", "1", "Accepted / drafted tokens, vLLM's draft acceptance rate."
)
MEAN_DRAFT_LENGTH = Meter(
    "mean_draft_length", "tokens", "Drafted tokens per round that drafted for the row."
)
TOKENS_PER_ROUND = Meter("tokens_per_round", "tokens", "Emitted tokens per round of a row.")
DRAFT_ROUNDS_RATIO = Meter("draft_rounds_ratio", "1", "Rounds with a drafted token / rounds.")

FAILURE_RATIO = Meter("failure_ratio", "1", "Requests that failed / requests.")
FIRST_TOKEN_RATIO = Meter("first_token_ratio", "1", "p95 of first_token_s / plain decoding's.")
INTER_TOKEN_RATIO = Meter("inter_token_ratio", "1", "p95 of inter_token_s / plain decoding's.")
TOTAL_RATIO = Meter("total_ratio", "1", "p95 of total_s / plain decoding's.")
MEMORY_RATIO = Meter("memory_ratio", "1", "peak_memory_bytes / plain decoding's.")

ACTIVE_S = Meter("active_s", "seconds", "A row's even share of its rounds' seconds, summed.")
DURATION_S = Meter("duration_s", "seconds", "Wall clock of the job; of a server, since ready.")
QUEUE_S = Meter("queue_s", "seconds", "In the engine, before a request's first round.")
FIRST_TOKEN_S = Meter("first_token_s", "seconds", "From submitting a request to its first token.")
INTER_TOKEN_S = Meter("inter_token_s", "seconds", "A request's mean from token to token.")
TOTAL_S = Meter("total_s", "seconds", "From submitting a request to its end.")

PEAK_MEMORY_BYTES = Meter("peak_memory_bytes", "bytes", "Most resident memory of the process.")
CPU_RATIO = Meter("cpu_ratio", "1", "Cores kept busy / cores given.")
GPU_RATIO = Meter("gpu_ratio", "1", "Time in which the GPU computed / wall clock.")
ENERGY_J = Meter("energy_j", "joules", "Energy of the machine's meters while decoding.")
JOULES_PER_TOKEN = Meter("joules_per_token", "joules/token", "energy_j / emitted tokens.")
COST_PER_MILLION_TOKENS = Meter(
    "cost_per_million_tokens", "currency", "Price of the hours that a million tokens take."
)
GUARD_PHASE = Meter(
    "guard_phase",
    "1",
    "Where a release's guard stands (open: all plain). In a series 0 closed, 1 probing, 2 open; by "
    "phase, 1 for the one it is in.",
)
NUM_CONFIRMATION_MISMATCHES = Meter(
    "num_confirmation_mismatches",
    "prompts",
    "Those that only the candidate fails, or answers otherwise.",
)
CONFIRMATION_USE = Meter(
    "confirmation_use", "uses", "Which use of the confirmation set this was: the first one counts."
)

WITH_PERCENTILES = (FIRST_TOKEN_S, INTER_TOKEN_S, TOTAL_S)
WITH_INTERVAL = (SPEEDUP_RATIO, FIRST_TOKEN_RATIO, INTER_TOKEN_RATIO, TOTAL_RATIO, MEMORY_RATIO)


def _derived() -> Iterator[Meter]:
    for meter in WITH_PERCENTILES:
        for percent in PERCENTS:
            yield Meter(meter.at(percent), meter.unit, f"{meter.help} Percentile {percent}.")
    for meter in WITH_INTERVAL:
        yield Meter(meter.low, meter.unit, f"{meter.help} Lower end of its interval.")
        yield Meter(meter.high, meter.unit, f"{meter.help} Upper end of its interval.")


METER_OF: dict[str, Meter] = {  # field of Counters: its figure
    "drafted": NUM_DRAFTED_TOKENS,
    "evaluated": NUM_EVALUATED_TOKENS,
    "accepted": NUM_ACCEPTED_TOKENS,
    "emitted": NUM_EMITTED_TOKENS,
    "cropped": NUM_CROPPED_TOKENS,
    "num_rounds": NUM_ROUNDS,
    "num_draft_rounds": NUM_DRAFT_ROUNDS,
    "num_drafter_failures": NUM_DRAFTER_FAILURES,
    "num_caught_up": NUM_CAUGHT_UP_TOKENS,
    "num_preemptions": NUM_PREEMPTIONS,
    "num_cached_tokens": NUM_CACHED_TOKENS,
    "active_s": ACTIVE_S,
}
BY_DRAFTER = {  # field of Counters: its figure, by drafter
    field: METER_OF[field].by_drafter
    for field in ("drafted", "evaluated", "accepted", "num_draft_rounds")
}
SERVED = {  # field of RequestEntry: its figure, of requests that ended
    "num_prompt_tokens": NUM_PROMPT_TOKENS.served,
    "num_completion_tokens": NUM_EMITTED_TOKENS.served,
    "num_rounds": NUM_ROUNDS.served,
    "drafted": NUM_DRAFTED_TOKENS.served,
    "accepted": NUM_ACCEPTED_TOKENS.served,
}

_NAMED = (*globals().values(), *vars(live_meters).values())
_DEFINED = [meter for meter in _NAMED if isinstance(meter, Meter)]
METERS: Mapping[str, Meter] = {
    meter.name: meter for meter in (*_DEFINED, *_derived(), *BY_DRAFTER.values(), *SERVED.values())
}


def meter_of(name: str) -> Meter | None:
    """The meter of a figure as it is recorded; None for a name that is not in the catalogue."""
    return METERS.get(name.removeprefix(WINDOW).partition("/")[0])


def in_window(figures: Mapping[str, float]) -> dict[str, float]:
    """The same figures as points of a series."""
    return {f"{WINDOW}{name}": value for name, value in figures.items()}


def figures_of(counters: Counters) -> dict[str, float]:
    """The figures that follow from `counters`. A ratio with nothing below it is left out."""
    counts = {meter: getattr(counters, field) for field, meter in METER_OF.items()}
    ratios = {
        ACCEPTANCE_RATIO: (counters.accepted, counters.evaluated),
        DRAFT_ACCEPTANCE_RATIO: (counters.accepted, counters.drafted),
        MEAN_DRAFT_LENGTH: (counters.drafted, counters.num_draft_rounds),
        TOKENS_PER_ROUND: (counters.emitted, counters.num_rounds),
        DRAFT_ROUNDS_RATIO: (counters.num_draft_rounds, counters.num_rounds),
    }
    return {meter.name: float(count) for meter, count in counts.items()} | {
        meter.name: above / below for meter, (above, below) in ratios.items() if below
    }
