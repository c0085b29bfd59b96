"""Every figure's name, unit and meaning: one name everywhere (report, MLflow, metrics).

Counts are `num_*`, durations `*_s`, ratios `*_ratio`. Counters come first; what is derived from
them is derived here, so that every place that shows it shows the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from outrider.core import Counters


@dataclass(frozen=True, slots=True)
class Meter:
    """One figure."""

    name: str
    unit: str  # as a plural noun; "1" for a ratio
    help: str

    def of(self, kind: str) -> str:
        """The name of this figure for one kind of request: `speedup_ratio/chat`."""
        return f"{self.name}/{kind}" if kind else self.name


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
NUM_COMPARED = Meter("num_compared", "rows", "Rows also decoded plainly and compared.")
NUM_MISMATCHES = Meter("num_mismatches", "rows", "Compared rows that differ, near ties apart.")
NUM_NEAR_TIES = Meter(
    "num_near_ties", "rows", "Compared rows that first differ where the target's top 2 are close."
)

TOKENS_PER_S = Meter("tokens_per_s", "tokens/second", "Emitted tokens per second of wall clock.")
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

ACTIVE_S = Meter("active_s", "seconds", "A row's even share of its rounds' seconds, summed.")
ELAPSED_S = Meter("elapsed_s", "seconds", "Wall clock of the job, loading apart.")
LOAD_S = Meter("load_s", "seconds", "Loading and compiling the models.")
ETA_S = Meter("eta_s", "seconds", "Expected wall clock to the end of the job.")
FIRST_TOKEN_S = Meter("first_token_s", "seconds", "From submitting a request to its first token.")
TOTAL_S = Meter("total_s", "seconds", "From submitting a request to its end.")

METERS: dict[str, Meter] = {
    meter.name: meter for meter in list(globals().values()) if isinstance(meter, Meter)
}

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
