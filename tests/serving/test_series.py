"""Windows follow what replicas tell, whoever comes and goes."""

from outrider.core import Counters, Mode
from outrider.serving.messages import ReplicaStats
from outrider.serving.series import Series
from outrider.telemetry.meters import meter_of


def told(
    name: str, emitted: int, accepted: int = 0, evaluated: int = 0, release: str = "main"
) -> ReplicaStats:
    return ReplicaStats(
        release=release,
        replica=name,
        mode=Mode.SPECULATIVE,
        num_running=2,
        counters=Counters(
            emitted=emitted, accepted=accepted, evaluated=evaluated, position_attempts=[evaluated]
        ),
    )


def test_a_window_holds_what_was_done_in_it() -> None:
    series, first = Series(10.0).after([told("a", 100, 3, 4)], 15.0, "main")
    assert first is not None
    assert first["window.tokens_per_s"] == 20.0
    assert first["window.acceptance_ratio"] == 0.75
    _, second = series.after([told("a", 110, 3, 8), told("b", 40)], 20.0, "main")
    assert second is not None
    assert second["window.tokens_per_s"] == 10.0
    assert second["window.acceptance_ratio"] == 0.0
    assert (second["window.num_replicas"], second["window.num_running"]) == (2.0, 4.0)


def test_a_window_without_a_token_is_no_throughput_of_0() -> None:
    series, _ = Series(0.0).after([told("a", 5)], 5.0, "main")
    assert series.after([told("a", 5)], 10.0, "main")[1] is None
    assert series.after([], 10.0, "main")[1] is None
    assert series.after([told("a", 6)], 5.0, "main")[1] is None  # no time has passed


def test_every_figure_is_in_the_catalogue() -> None:
    series, window = Series(0.0).after([told("a", 100, 3, 4)], 5.0, "main")
    assert window is not None
    assert all(meter_of(name) for name in (*window, *series.final(5.0)))


def test_a_lost_replica_takes_nothing_away() -> None:
    series, _ = Series(0.0).after([told("a", 100), told("b", 50)], 5.0, "main")
    series, _ = series.after([told("b", 60)], 10.0, "main")
    series, _ = series.after([told("b", 60), told("c", 7)], 15.0, "main")
    assert series.final(15.0)["num_emitted_tokens"] == 167.0
    assert series.final(15.0)["duration_s"] == 15.0


def test_what_a_candidate_decoded_before_it_became_stable_is_not_counted_when_it_does() -> None:
    before = [told("a", 100), told("b", 900, release="next")]
    series, window = Series(0.0).after(before, 5.0, "main")
    assert window is not None
    assert (window["window.tokens_per_s"], window["window.num_replicas"]) == (20.0, 1.0)
    series, window = series.after([told("b", 910, release="next")], 10.0, "next")
    assert window is not None
    assert window["window.tokens_per_s"] == 2.0
    assert series.final(10.0)["num_emitted_tokens"] == 110.0
