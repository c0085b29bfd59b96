"""A service in full swing, as a `Snapshot`: two releases, a canary, an open guard, three jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from outrider.bulk.glance import JobGlance, JobState
from outrider.console.snapshot import (
    ArmView,
    Point,
    ReleaseView,
    ReplicaView,
    RunsView,
    ServiceView,
    Snapshot,
)
from outrider.rollout.command import Verb
from outrider.rollout.outlook import Outlook, Past
from outrider.rollout.phase import Phase
from outrider.rollout.status import Move
from outrider.rollout.verdict import Finding, Verdict
from outrider.serving.guard_state import Phase as GuardPhase

NOW_S = 1_800_000_000.0
PERIOD_S, NUM_POINTS = 2.0, 200
MAIN, CANDIDATE = "main", "main-ngram8"
FINGERPRINTS = {MAIN: "3f9ad1c2" * 8, CANDIDATE: "b07c55e1" * 8}
MOST = {MAIN: 4, CANDIDATE: 8}  # draft length
FELL = 150  # the candidate's point at which its guard opened


def scene(now_s: float = NOW_S, began_s: float | None = None) -> Snapshot:
    """Its points begin at `began_s`: 200 of them before `now_s` where nothing else is said."""
    if began_s is None:
        began_s = now_s - PERIOD_S * (NUM_POINTS - 1)
    return Snapshot(
        at_s=now_s,
        service=ServiceView(
            name=MAIN,
            model="SmolLM2-135M-Instruct.Q4_1",
            url="http://127.0.0.1:8000",
            version="0.1.0",
            began_s=began_s - 3600.0,
            num_calls=11,
            run_id="5d3a0b6e7c1f4f0e9b8a7d6c5b4a3921",
        ),
        arms=tuple(_arms()),
        releases=(
            _release(MAIN, GuardPhase.CLOSED, now_s),
            _release(CANDIDATE, GuardPhase.OPEN, now_s),
        ),
        replicas=tuple(_replicas()),
        points=tuple(points(now_s, began_s)),
        period_s=PERIOD_S,
        rollout=_rollout(now_s),
        past=tuple(_past(now_s)),
        jobs=tuple(_jobs(now_s)),
        runs=RunsView(open_command="mlflow ui --backend-store-uri sqlite:////srv/outrider/runs.db"),
        notes=("bulk jobs: can't be read now (PermissionError)",),
    )


def _arms() -> Iterator[ArmView]:
    told = [("stable", MAIN, 0.75, 0.762, 903), ("candidate", CANDIDATE, 0.25, 0.238, 282)]
    for arm, release, weight, achieved_ratio, num_requests in told:
        yield ArmView(
            arm=arm,
            release=release,
            weight=weight,
            achieved_ratio=achieved_ratio,
            num_requests=num_requests,
        )


def points(now_s: float, began_s: float) -> Iterator[Point]:
    """Oldest first; the candidate joined after a while and once did not answer."""
    for i in range(round((now_s - began_s) / PERIOD_S) + 1):
        at_s = began_s + PERIOD_S * i
        yield _point(MAIN, i, at_s)
        if i >= NUM_POINTS // 2 and not 170 <= i < 178:
            yield _point(CANDIDATE, i, at_s)


def _point(release: str, i: int, at_s: float) -> Point:
    swing, most = 0.5 + 0.5 * math.sin(i / 17.0), MOST[release]
    rows = 5 + round(4 * swing)
    has_fallen = release == CANDIDATE and i >= FELL
    chance = (0.72 if release == MAIN else 0.58) + 0.12 * math.sin(i / 9.0)
    rounds_s = 1.7 + 0.2 * swing
    num_rounds = round(rows * rounds_s / 0.045)
    lengths = [num_rounds] if has_fallen else _lengths(num_rounds, most, swing)
    tested, accepted = _positions(lengths, chance)
    emitted = num_rounds + sum(accepted)
    plain_s = rounds_s if has_fallen else emitted * rounds_s / num_rounds * 0.83
    return Point(
        release=release,
        at_s=at_s,
        span_s=PERIOD_S,
        num_replicas=2 if release == MAIN else 1,
        num_running=rows,
        num_waiting=max(0, rows - 7),
        emitted=emitted,
        drafted=sum(length * num for length, num in enumerate(lengths)),
        evaluated=sum(tested),
        accepted=sum(accepted),
        num_rounds=num_rounds,
        rounds_s=round(rounds_s, 4),
        plain_rounds_s=round(plain_s, 4),
        rounds_by_draft_length=tuple(lengths),
        position_evaluated=tuple(tested),
        position_accepted=tuple(accepted),
        guard_phase="open" if has_fallen else "closed",
    )


def _lengths(num_rounds: int, most: int, swing: float) -> list[int]:
    """Rounds by draft length: a bell that wanders, and some plain ones."""
    middle = 1.0 + (most - 1.5) * swing
    bell = [0.15 if k == 0 else math.exp(-((k - middle) ** 2) / 3.0) for k in range(most + 1)]
    return [round(num_rounds * weight / sum(bell)) for weight in bell]


def _positions(lengths: list[int], chance: float) -> tuple[list[int], list[int]]:
    tested, accepted, reached = [], [], 1.0
    for position in range(len(lengths) - 1):
        tried = round(reached * sum(lengths[position + 1 :]))
        reached *= chance - 0.03 * position
        tested.append(tried)
        accepted.append(round(tried * (chance - 0.03 * position)))
    return tested, accepted


def _release(name: str, phase: GuardPhase, now_s: float) -> ReleaseView:
    reason = "41 of 3062 drafted tokens were accepted (1.3%), 0.71 times plain decoding's goodput"
    is_open = phase is GuardPhase.OPEN
    return ReleaseView(
        name=name,
        fingerprint=FINGERPRINTS[name],
        health="ready",
        message="",
        guard_phase=phase.value,
        guard_sentence=phase.sentence,
        guard_reason=f"{reason}; at least 2.0% must be accepted" if is_open else "",
        guard_since_s=now_s - (98.0 if is_open else 3590.0),
        guard_wait_s=120.0 if is_open else 0.0,
        num_replicas=1 if is_open else 2,
    )


def _replicas() -> Iterator[ReplicaView]:
    sentence = "Drafting pays as far as this engine knows."
    for i, (release, phase) in enumerate(
        [(MAIN, "closed"), (MAIN, "half_open"), (CANDIDATE, "open")]
    ):
        yield ReplicaView(
            release=release,
            replica=f"{'qk3vx7ab'[i:]}{i}9z",
            mode="plain" if phase == "open" else "speculative",
            max_draft_length=3 if i == 1 else None,
            breaker_phase=phase,
            breaker_sentence=sentence if phase == "closed" else "It drafts for a few rows again.",
            num_open_rows=i,
            num_running=6 - i,
            num_waiting=2 * i,
            max_waiting=64,
            num_free_blocks=1411 - 190 * i,
            num_blocks=2048,
        )


def _rollout(now_s: float) -> Outlook:
    moves = [
        (Phase.PENDING, 0, 0.0, "begun: longer drafts for code prompts", "ada@harbour"),
        (Phase.DEPLOYING, 0, 0.0, "the pre webhook answered 200", ""),
        (Phase.WARMING, 0, 0.0, "its replicas are ready", ""),
        (Phase.SHADOW, 0, 0.0, "it answered 8 prompts of its own", ""),
        (Phase.CANARY, 0, 0.05, "every gate is passed", ""),
        (Phase.CANARY, 1, 0.25, "every gate is passed", ""),
    ]
    return Outlook(
        rollout_id="r-20270115-081500-3f",
        candidate=CANDIDATE,
        candidate_fingerprint=FINGERPRINTS[CANDIDATE],
        stable=MAIN,
        stable_fingerprint=FINGERPRINTS[MAIN],
        phase=Phase.CANARY,
        sentence=Phase.CANARY.sentence,
        is_over=False,
        began_s=now_s - 1100.0,
        elapsed_s=312.0,
        step=1,
        weights=(0.05, 0.25, 0.5),
        weight=0.25,
        achieved_ratio=0.238,
        reason="every gate is passed",
        next=(
            "it goes on to 50 % once every gate is passed with 50 requests of each arm",
            "undecided in 24 min 48 s (on_stall=hold): it stays as it is and goes on looking",
        ),
        verdict=Verdict.INCONCLUSIVE,
        verdict_reason="inter_token_s is 1.04 times stable's, surely below 1.21; at most 1.1",
        findings=tuple(findings()),
        moves=tuple(
            Move(
                phase=phase,
                step=step,
                weight=weight,
                reason=reason,
                at_s=now_s - 1100.0 + 150.0 * i,
                who=who,
            )
            for i, (phase, step, weight, reason, who) in enumerate(moves)
        ),
        verbs=(Verb.ABORT, Verb.PAUSE, Verb.PROMOTE),
        is_controlled=True,
        criteria="9e1b" * 16,
        run_id="c1e2d3f4a5b60718293a4b5c6d7e8f90",
    )


def findings() -> Iterator[Finding]:
    told = [  # figure, verdict, bound, estimate, low, high
        ("tokens_per_s", Verdict.PASS, 0.95, 1.18, 1.07, 1.31),
        ("draft_acceptance_ratio", Verdict.PASS, 0.8, 0.93, 0.88, 0.99),
        ("first_token_s", Verdict.PASS, 1.25, 1.02, 0.91, 1.16),
        ("inter_token_s", Verdict.INCONCLUSIVE, 1.1, 1.04, 0.93, 1.21),
        ("failure_ratio", Verdict.PASS, 0.02, 0.001, -0.006, 0.011),
    ]
    for figure, verdict, bound, estimate, low, high in told:
        yield Finding(
            figure=figure,
            verdict=verdict,
            bound=bound,
            reason=f"{figure}: {estimate} in [{low}, {high}], the floor is {bound}",
            estimate=estimate,
            low=low,
            high=high,
            num_stable=903,
            num_candidate=282,
        )
    yield Finding(
        figure="num_mismatches",
        verdict=Verdict.FAIL,
        bound=0.0,
        reason="1 of 288 compared answers differs; 0 may",
        estimate=1.0,
        num_stable=288,
        num_candidate=288,
        group="code",
        counts=False,
    )


def _past(now_s: float) -> Iterator[Past]:
    ends = [
        (Phase.ROLLED_BACK, "fixed16", "tokens_per_s is surely below 0.95 times stable's"),
        (Phase.PROMOTED, MAIN, "it kept well for 10 min 0 s"),
        (Phase.ABORTED, "eagle", "ada@harbour: <b>wrong</b> weights"),
    ]
    for i, (phase, candidate, reason) in enumerate(ends):
        yield Past(
            rollout_id=f"r-2027011{4 - i}-090000-a{i}",
            candidate=candidate,
            candidate_fingerprint=f"{i}d4e5f60" * 8,
            phase=phase,
            reason=reason,
            began_s=now_s - 86400.0 * (i + 1),
            run_id="" if i == 1 else f"{i}" * 32,
        )


def _jobs(now_s: float) -> Iterator[JobGlance]:
    yield JobGlance(
        name="summaries-2027-01",
        job_dir="/srv/outrider/runs/summaries-2027-01",
        state=JobState.RUNNING,
        at_s=now_s - 0.6,
        tokens_per_s=212.4,
        eta_s=1355.0,
        num_emitted_tokens=466_012,
        num_evaluated_tokens=301_220,
        num_accepted_tokens=214_118,
        fingerprint=FINGERPRINTS[MAIN],
        run_id="77" * 16,
        num_rows=12000,
        num_rows_done=7421,
        num_rows_failed=3,
        began_s=now_s - 2200.0,
    )
    yield JobGlance(
        name="translations",
        job_dir="/srv/outrider/runs/translations",
        state=JobState.STOPPED,
        at_s=now_s - 8400.0,
        num_emitted_tokens=20_114,
        num_evaluated_tokens=11_002,
        num_accepted_tokens=6_903,
        fingerprint=FINGERPRINTS[MAIN],
        num_rows=500,
        num_rows_done=210,
        num_rows_failed=0,
        began_s=now_s - 9000.0,
    )
    yield JobGlance(
        name="demo",
        job_dir="/srv/outrider/runs/demo",
        state=JobState.FINISHED,
        at_s=now_s - 89000.0,
        num_emitted_tokens=5_120,
        fingerprint=FINGERPRINTS[CANDIDATE],
        num_rows=64,
        num_rows_done=64,
        num_rows_failed=0,
        began_s=now_s - 90000.0,
    )
