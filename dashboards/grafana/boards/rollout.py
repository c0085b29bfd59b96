"""A rollout: where it stands, what is found, and the two arms side by side."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.models.dashboard import Dashboard

from boards.board import board, choice
from boards.panels import BAD, GOOD, NEUTRAL, Panel, figure, lines, states, table
from boards.query import growth, level, quantile, rate, ratio, state, total
from boards.serving import failures
from boards.words import CONTROLLED, NO_YES, ROLLOUT, ROLLOUT_WORDS, VERDICT, VERDICT_WORDS
from outrider.telemetry import live_meters as live
from outrider.telemetry import meters

C = 'candidate=~"$candidate"'
SHADOWED = 'release=~"$candidate"'
BY, ARM = "candidate", "release, arm"
FOUND = "figure, group"
BOTH = 'arm=~"stable|candidate"'


def rollout() -> Dashboard:
    about = "The rollout that is under way: its phase, its findings, and both arms."
    variables = (choice("candidate", "Candidate", live.ROLLOUT_PHASE),)
    rows = {
        "Now": _now(),
        "Course": _course(),
        "Findings": _findings(),
        "Arms": _arms(),
        "Shadow": _shadow(),
    }
    return board("rollout", about, variables, rows, since="now-3h")


def _now() -> Iterator[Panel]:
    phase = state(live.ROLLOUT_PHASE, "phase", ROLLOUT, BY, C)
    yield figure("Phase", live.ROLLOUT_PHASE, phase, words=ROLLOUT_WORDS, legend="{{candidate}}")
    yield figure("Step", live.ROLLOUT_STEP, level(live.ROLLOUT_STEP, BY, C, "max"), unit="none")
    yield figure("Share", live.ROLLOUT_WEIGHT, level(live.ROLLOUT_WEIGHT, BY, C, "max"))
    elapsed = level(live.ROLLOUT_ELAPSED_S, BY, C, "max")
    yield figure("In this step for", live.ROLLOUT_ELAPSED_S, elapsed)
    for title, meter, words in (
        ("Paused", live.ROLLOUT_PAUSED, NO_YES),
        ("Waits for an operator", live.ROLLOUT_WAITS, NO_YES),
        ("Stalled", live.ROLLOUT_STALLED, NO_YES),
        ("Controlled by", live.ROLLOUT_CONTROLLED, CONTROLLED),
    ):
        yield figure(title, meter, level(meter, BY, C, "max"), words=words)


def _course() -> Iterator[Panel]:
    phase = state(live.ROLLOUT_PHASE, "phase", ROLLOUT, BY, C)
    yield states("Phase", live.ROLLOUT_PHASE, (phase, "{{candidate}}"), ROLLOUT_WORDS)
    routed = rate(live.NUM_ROUTED, ARM)
    achieved = f"{routed} / on () group_left () ({rate(live.NUM_ROUTED)} > 0)"
    yield lines(
        "Share of the arms, achieved and planned",
        f"{live.SHARE_RATIO.help} {live.ARM_WEIGHT.help}",
        (achieved, "{{arm}} achieved"),
        (level(live.ARM_WEIGHT, ARM), "{{arm}} planned"),
        unit="percentunit",
        width=12,
        most=1,
    )


def _findings() -> Iterator[Panel]:
    verdict = state(live.ROLLOUT_VERDICT, "verdict", VERDICT, FOUND, C)
    columns = {
        "Verdict": verdict,
        "Low": level(live.ROLLOUT_LOW, FOUND, C, "max"),
        "Estimate": level(live.ROLLOUT_ESTIMATE, FOUND, C, "max"),
        "High": level(live.ROLLOUT_HIGH, FOUND, C, "max"),
        "Bound": level(live.ROLLOUT_BOUND, FOUND, C, "max"),
    }
    about = "The candidate against stable: an interval holds at every look; the bound is the gate."
    names = {"figure": "Figure", "group": "Kind of request"}
    yield table("Findings", about, columns, names=names, words={"Verdict": VERDICT_WORDS}, width=12)
    yield states("Verdicts", live.ROLLOUT_VERDICT, (verdict, "{{figure}} {{group}}"), VERDICT_WORDS)


def _arms() -> Iterator[Panel]:
    yield lines(
        "Requests",
        meters.NUM_REQUESTS,
        (rate(meters.NUM_REQUESTS, ARM, BOTH), "{{arm}} {{release}}"),
        unit="reqps",
    )
    yield lines("Failed", meters.FAILURE_RATIO, (failures(ARM, BOTH), "{{arm}} {{release}}"))
    for title, meter in (
        ("First token, p95", meters.FIRST_TOKEN_S),
        ("Between tokens, p95", meters.INTER_TOKEN_S),
        ("Whole answer, p95", meters.TOTAL_S),
    ):
        yield lines(title, meter, (quantile(0.95, meter, ARM, BOTH), "{{arm}} {{release}}"))
    of = meters.SERVED
    drafted, accepted = rate(of["drafted"], ARM, BOTH), rate(of["accepted"], ARM, BOTH)
    yield lines(
        "Draft acceptance",
        meters.DRAFT_ACCEPTANCE_RATIO,
        (ratio(accepted, drafted), "{{arm}} {{release}}"),
        most=1,
    )
    emitted, rounds = (
        rate(of["num_completion_tokens"], ARM, BOTH),
        rate(of["num_rounds"], ARM, BOTH),
    )
    yield lines(
        "Tokens per round",
        meters.TOKENS_PER_ROUND,
        (ratio(emitted, rounds), "{{arm}} {{release}}"),
        width=12,
    )
    over = growth(meters.NUM_OVER_LIMIT, "release", SHADOWED)
    yield lines(
        "Sent to stable, beyond the limit", meters.NUM_OVER_LIMIT, (over, "{{release}}"), width=12
    )


def _shadow() -> Iterator[Panel]:
    for title, meter, steps in (
        ("Compared", meters.NUM_COMPARED, ((None, NEUTRAL),)),
        ("Mismatches", meters.NUM_MISMATCHES, ((None, GOOD), (1.0, BAD))),
        ("Near ties", meters.NUM_NEAR_TIES, ((None, NEUTRAL),)),
        ("Not mirrored", meters.NUM_SHADOWS_DROPPED, ((None, NEUTRAL),)),
    ):
        counted = total(meter, "release", SHADOWED)
        yield figure(title, meter, counted, steps=steps, legend="{{release}}", width=6)
