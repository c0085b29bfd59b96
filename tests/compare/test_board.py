"""The leaderboard: which runs count, what conditions mean, in which order they stand."""

import pytest
from toy_trial import FIXED, NGRAM, ToyContender, record_trial

from outrider.compare.board import Board, leaderboard
from outrider.compare.candidate import candidates
from outrider.compare.condition import Condition
from outrider.core import UserError
from outrider.testing import MemoryHistory, MemoryRegistry, MemoryTracker
from outrider.tracking.registry import Alias
from outrider.tracking.tracker import RunStatus


class Store:
    """Runs and releases in memory."""

    def __init__(self) -> None:
        self.tracker = MemoryTracker()
        self.registry = MemoryRegistry()

    def board(self, *where: str, sort: str = "speedup_ratio", top: int = 20) -> Board:
        runs = MemoryHistory(self.tracker).runs(("contender",))
        read = candidates(runs, self.registry.versions())
        return leaderboard(read, where=where, sort=sort, top=top)


@pytest.fixture
def store() -> Store:
    store = Store()
    record_trial(store.tracker, store.registry)
    return store


def names(board: Board) -> list[tuple[str, str]]:
    return [(row.latest.name, row.latest.in_flight) for row in board.rows]


def test_the_fastest_is_on_top_and_what_has_no_speed_up_is_last(store: Store) -> None:
    assert names(store.board()) == [
        (NGRAM.name, "1"),
        (NGRAM.name, "8"),
        (FIXED.name, "8"),
        (FIXED.name, "1"),
        ("plain", "8"),
        ("plain", "1"),
    ]


def test_latencies_are_better_the_lower_they_are(store: Store) -> None:
    found = [row.latest.run.metrics["total_s_p95"] for row in store.board(sort="total_s_p95").rows]
    assert found == sorted(found)


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("in_flight=8", 3),
        ("in_flight=8.0", 3),
        ("in_flight != 8", 3),
        ("speedup_ratio>1", 2),
        ("speedup_ratio >= 1.4", 1),
        ("speedup_ratio<1", 2),
        ("speedup_ratio/chat>1", 2),
        ("decision=adopt", 2),
        ("decision=ADOPT", 2),
        ("decision!=adopt", 2),
        ("name~fixed", 2),
        ("name=draft=fixed length.max=4", 2),
        ("length.max=15", 2),
        ("draft.length.max<15", 2),
        ("kind=contender", 6),
        ("version=2", 2),
        ("alias=champion", 2),
        ("part=confirmation", 0),
    ],
)
def test_a_condition_keeps_the_runs_that_meet_it(store: Store, where: str, expected: int) -> None:
    store.registry.give(Alias.CHAMPION, 2)
    board = store.board(where)
    assert len(board.rows) == expected
    assert board.num_filtered == 6 - expected


def test_conditions_hold_together(store: Store) -> None:
    assert names(store.board("in_flight=8", "speedup_ratio>1")) == [(NGRAM.name, "8")]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("in_flight", "name=text, name!=text, name~part, name>1"),
        ("=8", "is no condition"),
        ("in_flight=", "is no condition"),
        ("speedup_ratio>fast", "needs a number behind >, got 'fast'"),
        ("speedup=1", "nothing recorded is called 'speedup'; near it: speedup_ratio"),
        ("in_fligth=1", "near it: in_flight"),
    ],
)
def test_a_wrong_condition_is_one_line_that_says_what_is_right(
    store: Store, where: str, said: str
) -> None:
    with pytest.raises(UserError, match=r"^compare\.where: ") as caught:
        store.board(where)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_figure_that_nobody_has_is_refused_with_those_near_it(store: Store) -> None:
    with pytest.raises(UserError, match=r"^compare\.sort: .*near it: .*first_token_s_p95"):
        store.board(sort="first_token_p95")


def test_the_latest_run_of_a_release_counts_and_older_ones_are_counted(store: Store) -> None:
    slower = ToyContender(name=NGRAM.name, speedup=0.5, settings=NGRAM.settings)
    record_trial(store.tracker, store.registry, [slower])
    rows = {(row.latest.name, row.latest.in_flight): row for row in store.board().rows}
    assert len(rows) == 6
    assert rows[NGRAM.name, "1"].num_runs == 2
    assert rows[NGRAM.name, "1"].latest.run.tags["decision"] == "reject"
    assert rows[FIXED.name, "1"].num_runs == 1
    assert not store.board("decision=adopt").rows  # it was adopted once, and is no more


def test_parts_of_the_prompts_stay_apart(store: Store) -> None:
    record_trial(store.tracker, store.registry, part="confirmation")
    assert len(store.board().rows) == 12
    assert len(store.board("part=confirmation").rows) == 6


def test_runs_that_did_not_finish_are_counted_and_shown_when_asked_for(store: Store) -> None:
    record_trial(store.tracker, store.registry, part="confirmation", status=RunStatus.KILLED)
    assert len(store.board().rows) == 6
    assert store.board().num_unfinished == 6
    assert len(store.board("status=killed").rows) == 6


def test_top_cuts_and_says_how_many_more_there_are(store: Store) -> None:
    board = store.board(top=2)
    assert (len(board.rows), board.num_more) == (2, 4)


def test_a_release_carries_its_version_and_aliases(store: Store) -> None:
    store.registry.give(Alias.CHAMPION, 2)
    titles = {row.latest.name: row.latest.title for row in store.board().rows}
    assert titles == {"plain": "1", NGRAM.name: "2 champion", FIXED.name: "3"}


def test_an_empty_store_has_an_empty_board() -> None:
    assert Store().board("in_flight=8").rows == ()


def test_what_a_run_does_not_say_meets_no_condition() -> None:
    for text in ("speedup_ratio>1", "speedup_ratio!=1", "speedup_ratio~1"):
        assert not Condition.parse(text).holds({"name": "plain"})
