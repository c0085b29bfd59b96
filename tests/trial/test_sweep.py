"""Searches from end to end in one process, on a clock turned by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from sweep_toys import BEST, NUM_TUNING, SearchWorld, contender, drafts
from trial_toys import next_letter

from outrider.config.schema import CriteriaSettings, Part
from outrider.core import Fault, UserError
from outrider.testing import MemoryRegistry
from outrider.tracking.registry import Alias
from outrider.tracking.tracker import RunStatus
from outrider.trial.contender import Contender
from outrider.trial.halving import Fate
from outrider.trial.judgement import Decision
from outrider.trial.side import Side
from outrider.trial.split import cases_of
from outrider.trial.sweep_record import Outcome, SweepRecord
from outrider.trial.tables import read_observations

LENGTHS = (1, 2, 3, BEST, 6, 8, 10, 12)  # more than are open at once


@pytest.fixture
def world(tmp_path: Path) -> SearchWorld:
    return SearchWorld(tmp_path / "search")


def outcome_of(record: SweepRecord) -> Outcome:
    assert record.progress.outcome is not None
    return record.progress.outcome


def test_the_best_length_is_found_registered_and_named(world: SearchWorld) -> None:
    record = world.sweep(world.candidates(*LENGTHS)).run()
    found = outcome_of(record)
    assert found.recommended == f"max={BEST}"
    assert found.speedup is not None
    assert found.speedup.value > 1.5
    assert (found.decision, found.version, found.is_challenger) == (Decision.ADOPT, 1, True)
    sizes = [(len(rung.standings), rung.num_prompts) for rung in world.shown]
    assert sizes == [(8, 3), (4, 6), (2, 12)]
    assert world.opened[0] == "plain"
    assert world.opened.count("plain") == 1, "an engine stays open where it goes on"

    assert world.registry is not None
    (version,) = world.registry.versions()
    assert version.fingerprint == f"f-max={BEST}", "nobody else is registered"
    assert version.aliases == (Alias.CHALLENGER,)
    written = yaml.safe_load((world.folder / "recommended.yaml").read_text())
    assert written["overrides"] == [f"max={BEST}"]
    assert written["config"] == {"draft": {"length": f"max={BEST}"}}


def test_runs_are_a_parent_and_a_child_for_each_candidate_and_rung(world: SearchWorld) -> None:
    world.sweep(world.candidates(1, BEST, 3)).run()
    parent, *children = world.tracker.runs
    assert (parent.kind, {run.kind for run in children}) == ("sweep", {"contender"})
    assert {run.parent_id for run in children} == {parent.run_id}
    assert all(run.status is RunStatus.FINISHED for run in world.tracker.runs)
    told = [(run.name, run.tags["rung"], run.tags["fate"]) for run in children]
    assert told == [
        ("max=1", "1", "behind"),
        (f"max={BEST}", "1", "kept"),
        ("max=3", "1", "kept"),
        (f"max={BEST}", "2", "kept"),
        ("max=3", "2", "behind"),
        (f"max={BEST}", "3", "kept"),
    ]
    last = next(run for run in reversed(children) if run.name == f"max={BEST}")
    assert last.params["draft.length"] == f"max={BEST}"
    assert last.params["in_flight"] == "1"
    assert last.final["num_requests"] == last.final["num_compared"] > 3, "earlier rungs' too"
    assert last.final["speedup_ratio"] == parent.final["speedup_ratio"]
    assert parent.tags["recommended"] == f"max={BEST}"
    assert [record.fingerprint for record in parent.registered] == [f"f-max={BEST}"]
    assert {"criteria.yaml", "sweep.json", "recommended.yaml"} <= set(parent.artifacts)


def test_each_rung_adds_prompts_and_none_of_the_confirmation_part(world: SearchWorld) -> None:
    world.sweep(world.candidates(*LENGTHS)).run()
    tuning = {one.name for one in cases_of(Part.TUNING, world.cases, 0.5)}
    seen: list[set[str]] = []
    for rung in (1, 2, 3):
        tables = list(world.folder.glob(f"rung-{rung}.group-*/observations.parquet"))
        of_groups = [{one.case for one in read_observations(path)} for path in tables]
        assert all(found == of_groups[0] for found in of_groups), "groups have the same prompts"
        assert not any(of_groups[0] & before for before in seen), "nothing is measured twice"
        seen.append(of_groups[0])
    assert [len(found) for found in seen] == [3, 3, 6]
    assert set.union(*seen) == tuning
    assert len(list(world.folder.glob("rung-1.group-*"))) == 2


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[SearchWorld, SweepRecord]:
    world = SearchWorld(tmp_path_factory.mktemp("undisturbed") / "search")
    return world, world.sweep(world.candidates(*LENGTHS)).run()


TURNS_OF_A_GROUP = 20  # four candidates and plain decoding, warmed up, on three prompts each


@pytest.mark.parametrize("last", [30, 70])  # in rung 1's second group, in rung 3
def test_a_stopped_search_goes_on_and_finds_what_an_undisturbed_one_does(
    world: SearchWorld, undisturbed: tuple[SearchWorld, SweepRecord], last: int
) -> None:
    candidates = world.candidates(*LENGTHS)
    world.last_turn = last
    with pytest.raises(KeyboardInterrupt):
        world.sweep(candidates).run()
    stopped = [run for run in world.tracker.runs if run.kind == "sweep"]
    assert [run.status for run in stopped] == [RunStatus.KILLED]
    measured = {path: path.read_bytes() for path in world.folder.rglob("turns.parquet")}
    assert len(measured) == last // TURNS_OF_A_GROUP, (
        "what the group under way had is lost, no other"
    )
    world.num_turns, world.last_turn = 0, -1

    record = world.sweep(candidates).run()
    other, theirs = undisturbed
    assert outcome_of(record).recommended == outcome_of(theirs).recommended
    spared = TURNS_OF_A_GROUP * len(measured)
    assert world.num_turns == other.num_turns - spared, "what was measured is not measured again"
    assert all(path.read_bytes() == was for path, was in measured.items())

    (parent,) = (run for run in world.tracker.runs if run.kind == "sweep")
    assert parent.run_id == record.progress.run_id
    assert parent.status is RunStatus.FINISHED
    assert not [tag for tag in parent.tags if tag.startswith("resumed.")]
    children = [(run.name, run.tags["rung"]) for run in world.tracker.runs if run is not parent]
    assert children == [
        (run.name, run.tags["rung"]) for run in other.tracker.runs if run.kind != "sweep"
    ], "no rung is recorded twice"


def nobody(one: Contender) -> Side:
    raise AssertionError(f"{one.name} was opened")


def test_a_finished_search_says_so_and_measures_nothing(world: SearchWorld) -> None:
    candidates = world.candidates(2, BEST)
    first = world.sweep(candidates).run()
    runs, shown = len(world.tracker.runs), list(world.shown)
    again = world.sweep(candidates, open_side=nobody).run()
    assert again.progress == first.progress
    assert len(world.tracker.runs) == runs
    assert world.shown == shown * 2, "the tables are shown again"
    assert "is over" in world.told[-1]


def test_another_search_in_the_folder_is_refused_by_what_differs(world: SearchWorld) -> None:
    candidates = world.candidates(2, BEST)
    ours = {"sweep": {"axes": ["a"]}, "criteria": {"min_speedup": 1.0}}
    world.sweep(candidates, identity=ours).run()
    other = {"sweep": {"axes": ["b"]}, "criteria": {"min_speedup": 1.1}}
    with pytest.raises(UserError, match=r"criteria\.min_speedup, sweep\.axes: name another"):
        world.sweep(candidates, identity=other, open_side=nobody).run()


def test_a_folder_is_held_by_one_search_and_is_not_one_of_other_files(world: SearchWorld) -> None:
    search = world.sweep(world.candidates(2, BEST), open_side=nobody)
    with search.folder.locked(), pytest.raises(UserError, match="another search is running"):
        search.run()
    (world.folder / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match=r"holds other files \(notes\.txt\)"):
        search.run()
    (world.folder / "sweep.json").write_text("{}")
    with pytest.raises(Fault, match=r"sweep\.json is not a search's record"):
        search.run()


def test_plain_decoding_wins_where_all_lose(world: SearchWorld) -> None:
    costly = world.candidates(1, 2, 3, cost=lambda rows, tokens: 0.01 * tokens**2)
    record = world.sweep(costly, first_prompts=6).run()
    found = outcome_of(record)
    assert (found.recommended, found.speedup, found.version) == ("plain", None, None)
    assert {one.fate for one in world.shown[0].standings} == {Fate.SLOWER}
    assert len(world.shown) == 1, "surely slower ones cost no second rung"
    assert world.tracker.runs[0].tags["recommended"] == "plain"
    assert world.registry is not None
    assert not world.registry.versions()
    assert (world.folder / "recommended.yaml").exists()


def test_whoever_fails_or_has_no_room_is_dropped_and_the_others_go_on(world: SearchWorld) -> None:
    def broken(prefix: Sequence[int]) -> list[float]:
        return [float("nan")] * 257 if prefix[-1] == ord("q") else next_letter(prefix)

    def open_side(one: Contender) -> Side:
        if one.name == "large":
            raise Fault("no memory")
        return world.open_side(one)

    candidates = [
        contender("nan", drafts(world.clock, 8, logits=broken)),
        contender("large", drafts(world.clock, 8)),
        *world.candidates(BEST, 10),
    ]
    record = world.sweep(candidates, open_side=open_side).run()
    assert outcome_of(record).recommended == f"max={BEST}"
    fates = {one.candidate: one.fate for one in world.shown[0].standings}
    assert (fates["nan"], fates["large"]) == (Fate.FAILED, Fate.FAILED)
    assert any("large: no memory" in line for line in world.told)


def test_what_the_criteria_do_not_adopt_is_recommended_but_not_named(world: SearchWorld) -> None:
    strict = CriteriaSettings(min_speedup=9.0)
    found = outcome_of(world.sweep(world.candidates(2, BEST), criteria=strict).run())
    assert (found.decision, found.version, found.is_challenger) == (Decision.REJECT, 1, False)
    assert "speed-up" in found.reason
    assert world.registry is not None
    assert world.registry.versions()[0].aliases == ()


@pytest.mark.parametrize("is_off", [True, False])
def test_without_a_registry_or_while_it_is_away_the_search_ends_all_the_same(
    world: SearchWorld, *, is_off: bool
) -> None:
    class Away(MemoryRegistry):
        def register(self, record, run_id):  # type: ignore[no-untyped-def]
            raise Fault("the registry is away")

    world.registry = None if is_off else Away()
    found = outcome_of(world.sweep(world.candidates(2, BEST)).run())
    assert (found.recommended, found.version, found.is_challenger) == (f"max={BEST}", None, False)
    assert any("registered later" in line for line in world.told) is not is_off


def test_the_champion_is_not_named_its_own_challenger(world: SearchWorld) -> None:
    assert world.registry is not None
    best = contender(f"max={BEST}", drafts(world.clock, BEST))
    world.registry.give(
        Alias.CHAMPION, world.registry.register(best.release.record, "before").number
    )
    found = outcome_of(world.sweep(world.candidates(2, BEST)).run())
    assert (found.version, found.is_challenger) == (1, False)
    assert world.registry.versions()[0].aliases == (Alias.CHAMPION,)
    assert world.shown[-1].num_prompts == NUM_TUNING
