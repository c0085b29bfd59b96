"""Serving: how fast, how well drafted, how full, and what falls back."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.models.dashboard import Dashboard

from boards.board import board, choice
from boards.panels import BAD, GOOD, WARN, Panel, figure, heat, lines, states
from boards.query import growth, level, quantile, rate, ratio, state
from boards.words import BREAKER, BREAKER_WORDS, GUARD, GUARD_WORDS, MODE, MODE_WORDS
from outrider.telemetry import live_meters as live
from outrider.telemetry import meters

R = 'release=~"$release"'
E = f'{R}, replica=~"$replica"'
RELEASE, REPLICA = "release", "release, replica"
PERCENTS = ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))


def serving() -> Dashboard:
    about = "A service under load: speed against plain decoding, drafts, times, load and fallbacks."
    variables = (
        choice("release", "Release", live.NUM_BLOCKS),
        choice("replica", "Replica", live.NUM_BLOCKS, R),
    )
    rows = {
        "Now": _now(),
        "Speculation": _speculation(),
        "Drafts": _drafts(),
        "Fallback": _fallback(),
        "Times": _times(),
        "Requests": _requests(),
        "Engines": _engines(),
    }
    return board("serving", about, variables, rows, since="now-30m")


def acceptance(by: str, where: str) -> str:
    accepted = rate(meters.NUM_ACCEPTED_TOKENS, by, where)
    return ratio(accepted, rate(meters.NUM_EVALUATED_TOKENS, by, where))


def goodput(by: str, where: str) -> str:
    return ratio(rate(live.PLAIN_ROUNDS_S, by, where), rate(live.ROUNDS_S, by, where))


def failures(by: str, where: str) -> str:
    """0 where requests ended and none failed."""
    ended = rate(meters.NUM_REQUESTS, by, where)
    failed = rate(meters.NUM_REQUESTS, by, f'{where}, status=~"5.."')
    return ratio(f"({failed} or 0 * {ended})", ended)


def _now() -> Iterator[Panel]:
    yield figure("Speed", meters.TOKENS_PER_S, rate(meters.NUM_EMITTED_TOKENS, where=E))
    pays = ((None, BAD), (0.95, WARN), (1.0, GOOD))
    yield figure("Against plain", live.GOODPUT_RATIO, goodput("", E), unit="suffix: x", steps=pays)
    yield figure("Acceptance", meters.ACCEPTANCE_RATIO, acceptance("", E))
    first = quantile(0.95, meters.FIRST_TOKEN_S, RELEASE, R)
    late = ((None, GOOD), (1.0, WARN), (2.0, BAD))
    yield figure("First token, p95", meters.FIRST_TOKEN_S, first, steps=late, legend="{{release}}")
    bad = ((None, GOOD), (0.001, WARN), (0.01, BAD))
    yield figure("Failed", meters.FAILURE_RATIO, failures("", R), steps=bad)
    full = ((None, GOOD), (0.5, WARN), (0.8, BAD))
    queue = ratio(level(meters.NUM_WAITING, where=E), level(live.MAX_WAITING, where=E))
    yield figure("Queue", live.QUEUE_RATIO, queue, steps=full)
    yield figure("Replicas", meters.NUM_REPLICAS, level(live.NUM_BLOCKS, where=E, how="count"))
    guard = state(meters.GUARD_PHASE, "phase", GUARD, RELEASE, R)
    yield figure("Guard", meters.GUARD_PHASE, guard, words=GUARD_WORDS, legend="{{release}}")


def _speculation() -> Iterator[Panel]:
    emitted = rate(meters.NUM_EMITTED_TOKENS, RELEASE, E)
    slower = ratio(rate(live.ROUNDS_S, RELEASE, E), rate(live.PLAIN_ROUNDS_S, RELEASE, E))
    yield lines(
        "Tokens per second, and what plain decoding would give",
        f"{meters.TOKENS_PER_S.help} Plain: by the engine's cost model.",
        (emitted, "{{release}}"),
        (f"{emitted} * {slower}", "{{release}} plain"),
        unit="suffix: tok/s",
    )
    yield lines(
        "Goodput against plain",
        live.GOODPUT_RATIO,
        (goodput(REPLICA, E), "{{release}} {{replica}}"),
        unit="suffix: x",
    )
    per_round = ratio(emitted, rate(meters.NUM_ROUNDS, RELEASE, E))
    yield lines("Tokens per round", meters.TOKENS_PER_ROUND, (per_round, "{{release}}"))
    yield lines(
        "Acceptance", meters.ACCEPTANCE_RATIO, (acceptance(RELEASE, E), "{{release}}"), most=1
    )
    drafted = rate(meters.NUM_DRAFTED_TOKENS, RELEASE, E)
    of_drafted = ratio(rate(meters.NUM_ACCEPTED_TOKENS, RELEASE, E), drafted)
    yield lines(
        "Draft acceptance", meters.DRAFT_ACCEPTANCE_RATIO, (of_drafted, "{{release}}"), most=1
    )
    drafting = ratio(rate(meters.NUM_DRAFT_ROUNDS, RELEASE, E), rate(meters.NUM_ROUNDS, RELEASE, E))
    yield lines("Rounds that draft", meters.DRAFT_ROUNDS_RATIO, (drafting, "{{release}}"), most=1)


def _drafts() -> Iterator[Panel]:
    # Two digits, so that 10 comes behind 9: Grafana orders cells by their names.
    rounds = growth(live.ROUNDS_BY_DRAFT_LENGTH, "draft_length", E)
    padded = f'label_replace({rounds}, "draft_length", "0$1", "draft_length", "(.)")'
    yield heat("Draft lengths", live.ROUNDS_BY_DRAFT_LENGTH, (padded, "{{draft_length}}"))
    accepted = rate(live.POSITION_ACCEPTED_TOKENS, "position", E)
    by_position = ratio(accepted, rate(live.POSITION_EVALUATED_TOKENS, "position", E))
    yield lines(
        "Acceptance by position",
        f"{meters.ACCEPTANCE_RATIO.help} By the position in the draft, from 0.",
        (by_position, "position {{position}}"),
        unit="percentunit",
        most=1,
    )
    mean = ratio(
        rate(meters.NUM_DRAFTED_TOKENS, RELEASE, E), rate(meters.NUM_DRAFT_ROUNDS, RELEASE, E)
    )
    yield lines("Mean draft length", meters.MEAN_DRAFT_LENGTH, (mean, "{{release}}"))
    by = "release, drafter"
    of = meters.BY_DRAFTER
    tested, rounds = rate(of["evaluated"], by, E), rate(of["num_draft_rounds"], by, E)
    legend = "{{release}} {{drafter}}"
    accepted = ratio(rate(of["accepted"], by, E), tested)
    yield lines(
        "Acceptance by drafter", of["accepted"], (accepted, legend), unit="percentunit", most=1
    )
    length = ratio(rate(of["drafted"], by, E), rounds)
    yield lines("Draft length by drafter", of["drafted"], (length, legend))
    failures_ = rate(meters.NUM_DRAFTER_FAILURES, RELEASE, E)
    caught_up = rate(meters.NUM_CAUGHT_UP_TOKENS, RELEASE, E)
    yield lines(
        "What drafters fail at, and catch up on",
        f"{meters.NUM_DRAFTER_FAILURES.help} {meters.NUM_CAUGHT_UP_TOKENS.help} Per second.",
        (failures_, "{{release}} failures"),
        (caught_up, "{{release}} caught-up tokens"),
    )


def _fallback() -> Iterator[Panel]:
    guard = state(meters.GUARD_PHASE, "phase", GUARD, RELEASE, R)
    yield states("Guard of a release", meters.GUARD_PHASE, (guard, "{{release}}"), GUARD_WORDS)
    breaker = state(live.BREAKER_PHASE, "phase", [each.value for each in BREAKER], REPLICA, E)
    yield states(
        "Breaker of an engine",
        live.BREAKER_PHASE,
        (breaker, "{{release}} {{replica}}"),
        BREAKER_WORDS,
    )
    mode = state(live.REPLICA_MODE, "mode", MODE, REPLICA, E)
    yield states(
        "Mode of a replica", live.REPLICA_MODE, (mode, "{{release}} {{replica}}"), MODE_WORDS
    )
    moves = growth(live.GUARD_TRANSITIONS, "release, phase", R)
    yield lines(
        "Guard's transitions", live.GUARD_TRANSITIONS, (moves, "{{release}} to {{phase}}"), width=6
    )
    rows = level(live.NUM_OPEN_ROWS, REPLICA, E)
    yield lines("Open rows", live.NUM_OPEN_ROWS, (rows, "{{release}} {{replica}}"), width=6)


def _times() -> Iterator[Panel]:
    for title, meter in (
        ("In the queue", meters.QUEUE_S),
        ("First token", meters.FIRST_TOKEN_S),
        ("Between tokens", meters.INTER_TOKEN_S),
        ("Whole answer", meters.TOTAL_S),
    ):
        asked = (
            (quantile(share, meter, "release, mode", R), f"{{{{release}}}} {{{{mode}}}} {word}")
            for share, word in PERCENTS
        )
        yield lines(title, meter, *asked, width=6)


def _requests() -> Iterator[Panel]:
    by = "release, arm, status"
    ended = rate(meters.NUM_REQUESTS, f"{by}, error", R)
    yield lines(
        "Requests by status",
        f"{meters.NUM_REQUESTS.help} 499: the client left.",
        (ended, "{{release}} {{status}} {{error}}"),
        unit="reqps",
        stacked=True,
    )
    yield lines(
        "Failed", meters.FAILURE_RATIO, (failures("release, arm", R), "{{release}} {{arm}}")
    )
    calls = ((level(live.NUM_CALLS), "under way"), (level(live.MAX_CALLS), "at most"))
    yield lines("Calls", live.NUM_CALLS, *calls)
    retries = rate(live.NUM_RETRIES, RELEASE, R)
    yield lines("Lost replicas", live.NUM_RETRIES, (retries, "{{release}}"), unit="reqps")
    of, by = meters.SERVED, "release, mode"
    yield lines(
        "Tokens of prompts",
        of["num_prompt_tokens"],
        (rate(of["num_prompt_tokens"], by, R), "{{release}} {{mode}}"),
        unit="suffix: tok/s",
    )
    yield lines(
        "Tokens of answers",
        of["num_completion_tokens"],
        (rate(of["num_completion_tokens"], by, R), "{{release}} {{mode}}"),
        unit="suffix: tok/s",
    )


def _engines() -> Iterator[Panel]:
    running = (level(meters.NUM_RUNNING, RELEASE, E), "{{release}} running")
    waiting = (level(meters.NUM_WAITING, RELEASE, E), "{{release}} waiting")
    yield lines("Rows", f"{meters.NUM_RUNNING.help} {meters.NUM_WAITING.help}", running, waiting)
    free = ratio(level(live.NUM_FREE_BLOCKS, REPLICA, E), level(live.NUM_BLOCKS, REPLICA, E))
    yield lines("KV in use", live.KV_RATIO, (f"1 - {free}", "{{release}} {{replica}}"), most=1)
    tokens = (level(live.QUEUED_TOKENS, REPLICA, E), "{{release}} {{replica}}")
    yield lines("Queued tokens", live.QUEUED_TOKENS, tokens)
    for title, meter in (
        ("Prompt tokens found in the cache", meters.NUM_CACHED_TOKENS),
        ("Preemptions", meters.NUM_PREEMPTIONS),
        ("Tokens cut off by a stop", meters.NUM_CROPPED_TOKENS),
    ):
        yield lines(title, f"{meter.help} Per second.", (rate(meter, RELEASE, E), "{{release}}"))
    busy = (rate(live.ROUNDS_S, REPLICA, E), "{{release}} {{replica}}")
    about = f"{live.ROUNDS_S.help} Per second: 1 is an engine that is never idle."
    yield lines("Busy", about, busy, unit="percentunit", width=12)
    active = (rate(meters.ACTIVE_S, RELEASE, E), "{{release}}")
    about = f"{meters.ACTIVE_S.help} Per second: how many engines' worth of rounds rows had."
    yield lines("Rows' share of it", about, active, unit="none", width=12)
