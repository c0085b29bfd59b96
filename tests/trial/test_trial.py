"""Trials from end to end in one process, on a clock turned by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from trial_toys import CONFIRM, World, at_pace, contender, next_letter, plain

from outrider.config.schema import Part
from outrider.core import Fault, Rule, UserError
from outrider.testing import MemoryRegistry
from outrider.tracking.fingerprint import fingerprint
from outrider.tracking.tracker import NoTracker, RunStatus
from outrider.trial.contender import Contender
from outrider.trial.judgement import Decision, Judgement, Verdict
from outrider.trial.record import TrialRecord
from outrider.trial.side import Lost, Side
from outrider.trial.split import cases_of
from outrider.trial.tables import read_observations, read_turns
from outrider.trial.worker import Worker


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def judgement_of(record: TrialRecord, name: str) -> Judgement:
    found = next(one for one in record.entrants if one.name == name).judgement
    assert found is not None
    return found


def decision_of(record: TrialRecord, name: str) -> Decision:
    return judgement_of(record, name).decision


def test_a_faster_release_is_adopted_a_slower_one_rejected_an_equal_one_is_undecided(
    world: World,
) -> None:
    clock = world.clock
    record = world.trial(
        plain(clock, jitter=0.1),
        contender("faster", at_pace(clock, length=4)),
        contender("slower", at_pace(clock, round_s=0.012)),
        contender("equal", at_pace(clock, jitter=0.3)),
    ).run()
    assert decision_of(record, "faster") is Decision.ADOPT
    assert decision_of(record, "slower") is Decision.REJECT
    assert decision_of(record, "equal") is Decision.UNDECIDED
    assert "speed-up 0.8" in judgement_of(record, "slower").reason
    speedup = next(
        one.ratios["speedup_ratio"]
        for one in record.figures
        if one.contender == "slower" and not one.group
    )
    assert speedup.low <= 0.01 / 0.012 * 1.02
    assert speedup.high < 1.0


def test_the_criteria_are_recorded_before_the_first_request(world: World) -> None:
    stood: list[bool] = []

    class Watched(Worker):
        def decode(self, batch):  # type: ignore[no-untyped-def]
            parent = world.tracker.runs[0]
            stood.append("criteria.yaml" in parent.artifacts and "criteria.sha256" in parent.tags)
            return super().decode(batch)

    def open_side(one: Contender) -> Side:
        worker = Watched.open(one, timeout_s=1e6)
        worker.clock = world.clock
        return worker

    trial = world.trial(
        plain(world.clock), contender("x", at_pace(world.clock)), open_side=open_side
    )
    trial.run()
    assert stood
    assert all(stood)
    parent = world.tracker.runs[0]
    written = yaml.safe_load(parent.artifacts["criteria.yaml"])
    assert fingerprint(written) == parent.tags["criteria.sha256"], "the digest is of that file"
    assert written["min_pairs"] == 6


def test_what_was_measured_is_recorded_whole(world: World) -> None:
    record = world.trial(
        plain(world.clock), contender("x", at_pace(world.clock, length=4)), price_per_hour=3.6
    ).run()
    parent, *children = world.tracker.runs
    assert (parent.kind, {run.kind for run in children}) == ("bench", {"contender"})
    assert {run.parent_id for run in children} == {parent.run_id}
    assert all(run.status is RunStatus.FINISHED for run in world.tracker.runs)
    assert TrialRecord.from_json(parent.artifacts["trial.json"].decode()) == TrialRecord.from_json(
        record.to_json()
    )
    folder = world.folder / "trial"
    seen, turns = (
        read_observations(folder / "observations.parquet"),
        read_turns(folder / "turns.parquet"),
    )
    assert len(seen) == len(turns) == 24, "twelve prompts, two contenders"
    assert sum(turn.emitted for turn in turns) == sum(one.emitted for one in seen)
    assert {one.parity for one in seen if one.contender == "x"} == {"equal"}

    mine = next(run for run in children if run.name == "x")
    assert mine.params["in_flight"] == "1"
    assert mine.tags["decision"] == "adopt"
    assert mine.tags["release.version"] == "1"
    assert mine.registered[0].fingerprint == "f-x"
    figures = mine.final
    assert figures["speedup_ratio_low"] <= figures["speedup_ratio"] <= figures["speedup_ratio_high"]
    assert figures["tokens_per_s"] == pytest.approx(
        figures["speedup_ratio"] * figures["plain_tokens_per_s"]
    )
    assert figures["cost_per_million_tokens"] == pytest.approx(1000 / figures["tokens_per_s"])
    for group in ("chat", "edit", "temperature:0", "temperature:0.5", "prompt:short"):
        assert f"speedup_ratio/{group}" in figures
    assert figures["num_requests"] == 12
    assert not next(run for run in children if run.name == "plain").registered


def test_each_part_decodes_its_own_prompts_and_never_those_of_the_other(world: World) -> None:
    world.trial(plain(world.clock), contender("x", at_pace(world.clock))).run()
    tuned = {one.case for one in read_observations(world.folder / "trial/observations.parquet")}
    assert tuned == {one.name for one in cases_of(Part.TUNING, world.cases, 0.5)}


def test_confirmation_is_spent_once_by_a_release(world: World) -> None:
    def run() -> TrialRecord:
        return world.trial(
            plain(world.clock), contender("x", at_pace(world.clock, length=4)), part=CONFIRM
        ).run()

    assert decision_of(run(), "x") is Decision.ADOPT
    second = run()
    assert decision_of(second, "x") is Decision.UNDECIDED
    assert "use 2" in judgement_of(second, "x").reason
    assert world.registry is not None
    (version,) = world.registry.versions()
    parents = [run.run_id for run in world.tracker.runs if run.kind == "bench"]
    assert version.tags["confirmation." + "e" * 12].split(",") == parents
    uses = [run.final["confirmation_use"] for run in world.tracker.runs if run.name == "x"]
    assert uses == [1.0, 2.0]
    assert any("use 2" in line for line in world.told)


def test_one_release_under_two_names_is_refused(world: World) -> None:
    one = contender("x", at_pace(world.clock))
    trial = world.trial(plain(world.clock), one, replace(one, name="y"), part=CONFIRM)
    with pytest.raises(UserError, match="'x' and 'y' are the same release"):
        trial.run()


def test_a_confirmation_that_was_cut_short_counts(world: World) -> None:
    def broken(one: Contender) -> Side:
        raise Fault("no memory")

    first = world.trial(
        plain(world.clock),
        contender("x", at_pace(world.clock)),
        part=CONFIRM,
        open_side=broken,
    )
    with pytest.raises(Fault, match="plain: no memory"):
        first.run()
    assert {run.status for run in world.tracker.runs} == {RunStatus.FAILED}
    record = world.trial(
        plain(world.clock), contender("x", at_pace(world.clock, length=4)), part=CONFIRM
    ).run()
    assert decision_of(record, "x") is Decision.UNDECIDED


@pytest.mark.parametrize(
    ("end", "status"), [(KeyboardInterrupt, RunStatus.KILLED), (RuntimeError, RunStatus.FAILED)]
)
def test_whatever_ends_a_trial_closes_every_run_of_it(
    world: World, end: type[BaseException], status: RunStatus
) -> None:
    def ended(one: Contender) -> Side:
        raise end

    trial = world.trial(plain(world.clock), contender("x", at_pace(world.clock)), open_side=ended)
    with pytest.raises(end):
        trial.run()
    assert [run.status for run in world.tracker.runs] == [status] * 3


def test_without_a_registry_nothing_is_confirmed(world: World) -> None:
    world.registry = None
    trial = world.trial(plain(world.clock), contender("x", at_pace(world.clock)), part=CONFIRM)
    with pytest.raises(UserError, match=r"trial\.part=confirmation: .*tracking"):
        trial.run()
    assert not world.tracker.runs
    world.tracker = NoTracker()  # type: ignore[assignment]
    world.trial(plain(world.clock), contender("x", at_pace(world.clock))).run()
    assert (world.folder / "trial" / "trial.json").exists(), "the files are there all the same"


def test_a_store_that_is_away_stops_tuning_not_but_confirmation(world: World) -> None:
    class Away(MemoryRegistry):
        def register(self, record, run_id):  # type: ignore[no-untyped-def]
            raise Fault("the registry is away")

    world.registry = Away()
    contenders = plain(world.clock), contender("x", at_pace(world.clock, length=4))
    assert decision_of(world.trial(*contenders).run(), "x") is Decision.ADOPT
    assert world.tracker.runs[-1].registered, "it is registered when the store is back"
    with pytest.raises(Fault, match="away"):
        world.trial(*contenders, part=CONFIRM).run()


def wrong_after_m(prefix: Sequence[int]) -> list[float]:
    """Another model: behind m it says x."""
    scores = next_letter(prefix)
    if prefix[-1] == ord("m"):
        scores[ord("x")] = 60.0
    return scores


def test_an_output_that_differs_rejects_however_fast(world: World) -> None:
    record = world.trial(
        plain(world.clock),
        contender("wrong", at_pace(world.clock, length=4, logits=wrong_after_m)),
    ).run()
    assert decision_of(record, "wrong") is Decision.REJECT
    failed = [f for f in judgement_of(record, "wrong").findings if f.verdict is Verdict.FAIL]
    assert [(f.criterion, f.value) for f in failed] == [("max_mismatches", 12.0)]


def test_under_rule_ratio_only_greedy_outputs_are_compared(world: World) -> None:
    world.trial(
        plain(world.clock),
        contender("x", at_pace(world.clock, length=4, rule=Rule.RATIO), rule=Rule.RATIO),
    ).run()
    seen = read_observations(world.folder / "trial/observations.parquet")
    for one in seen:
        if one.contender == "x":
            assert one.parity == ("equal" if one.temperature == 0 else "not_compared")
    assert any(one.temperature > 0 for one in seen)


def test_failed_requests_are_counted_and_reject(world: World) -> None:
    def broken(prefix: Sequence[int]) -> list[float]:
        return [float("nan")] * 257 if prefix[-1] == ord("q") else next_letter(prefix)

    record = world.trial(
        plain(world.clock), contender("nan", at_pace(world.clock, length=4, logits=broken))
    ).run()
    assert decision_of(record, "nan") is Decision.REJECT
    figures = next(run for run in world.tracker.runs if run.name == "nan").final
    assert figures["failure_ratio"] == 1.0
    assert figures["num_failed/failure:error"] == 12.0


class Fragile:
    """A side that is lost in the turns that `lost` names, counted over all its lives."""

    def __init__(self, inner: Side, lost: set[int], turns: list[int]) -> None:
        self._inner, self._lost, self._turns = inner, lost, turns

    def decode(self, batch):  # type: ignore[no-untyped-def]
        self._turns.append(1)
        if len(self._turns) in self._lost:
            raise Lost("killed")
        return self._inner.decode(batch)

    def margin(self, case, prefix, rivals):  # type: ignore[no-untyped-def]
        return self._inner.margin(case, prefix, rivals)

    def close(self) -> None:
        self._inner.close()


@pytest.mark.parametrize(("lost", "num_lost"), [({3}, 1), ({3, 4}, 11), ({3, 6}, 2)])
def test_a_lost_side_is_opened_again_and_fails_when_lost_twice_in_a_row(
    world: World, lost: set[int], num_lost: int
) -> None:
    turns: list[int] = []  # the first is the warm-up's, and so is that behind a loss

    def open_side(one: Contender) -> Side:
        inner = world.open_side(one)
        return Fragile(inner, lost, turns) if one.name == "x" else inner

    record = world.trial(
        plain(world.clock),
        contender("x", at_pace(world.clock, length=4)),
        open_side=open_side,
    ).run()
    figures = next(run for run in world.tracker.runs if run.name == "x").final
    assert figures["num_failed/failure:lost"] == num_lost
    assert figures["num_requests"] == 12
    assert decision_of(record, "x") is Decision.REJECT
    assert any("opened again" in line for line in world.told)


def test_without_its_baseline_a_trial_ends_in_a_fault(world: World) -> None:
    turns: list[int] = []

    def open_side(one: Contender) -> Side:
        inner = world.open_side(one)
        return Fragile(inner, {3, 4}, turns) if one.is_baseline else inner

    trial = world.trial(
        plain(world.clock), contender("x", at_pace(world.clock)), open_side=open_side
    )
    with pytest.raises(Fault, match="plain: lost again"):
        trial.run()
    assert {run.status for run in world.tracker.runs} == {RunStatus.FAILED}


def test_the_record_reads_back(world: World) -> None:
    record = world.trial(plain(world.clock), contender("x", at_pace(world.clock))).run()
    text = record.to_json()
    assert TrialRecord.from_json(text).to_json() == text
    with pytest.raises(Fault, match=r"trial\.json"):
        TrialRecord.from_json(json.dumps({"part": "tuning"}))
