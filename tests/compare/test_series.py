"""What the plots show, out of observations."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.compare.latency_plot import tail
from outrider.compare.series import latencies, lengths, positions, throughput
from outrider.trial.observation import Observation, Turn


def seen(**fields: object) -> Observation:
    base = {
        "contender": "a",
        "in_flight": 1,
        "batch": 0,
        "case": "c",
        "kind": "chat",
        "language": "en",
        "temperature": 0.0,
        "num_prompt_tokens": 8,
        "submitted_s": 0.0,
    }
    return Observation(**{**base, **fields})


def turn(seconds: float, emitted: int) -> Turn:
    return Turn(
        contender="a",
        in_flight=1,
        batch=0,
        seconds=seconds,
        emitted=emitted,
        num_requests=1,
        num_failed=0,
        cpu_s=seconds,
        peak_memory_bytes=1,
    )


def test_positions_add_up_over_requests_of_different_draft_lengths() -> None:
    found = positions(
        [
            seen(position_attempts=(4, 2), position_accepts=(2, 1)),
            seen(position_attempts=(6, 2, 1, 0), position_accepts=(3, 1, 0, 0)),
            seen(),
        ]
    )
    assert found.attempts == (10, 4, 1)
    assert found.accepts == (5, 2, 0)
    assert found.ratios == [0.5, 0.5, 0.0]


def test_a_position_that_was_never_tested_has_no_share() -> None:
    found = positions([seen(position_attempts=(1, 0, 1), position_accepts=(1, 0, 0))])
    assert math.isnan(found.ratios[1])


def test_draft_lengths_stand_in_the_order_of_time_and_plain_rounds_count_as_nothing() -> None:
    found = lengths(
        [
            seen(submitted_s=2.0, drafted=0, num_rounds=5),
            seen(submitted_s=1.0, drafted=8, num_rounds=4),
            seen(submitted_s=0.5, num_rounds=0),  # failed before its first round
        ]
    )
    assert found.at_s == (1.0, 2.0)
    assert found.tokens == (2.0, 0.0)
    assert found.medians == [1.0, 1.0]


def test_throughput_is_tokens_over_seconds_not_the_mean_of_rates() -> None:
    found = throughput([turn(1.0, 10), turn(9.0, 10)], 0.95)
    assert found is not None
    assert found.value == 2.0
    assert found.low <= found.value <= found.high
    assert throughput([turn(2.0, 10)] * 5, 0.95).low == pytest.approx(5.0)
    assert throughput([], 0.95) is None


def test_latencies_leave_failed_requests_out() -> None:
    found = latencies(
        [seen(total_s=3.0), seen(total_s=1.0), seen(total_s=9.0, error="lost")], "total_s"
    )
    assert found.seconds == (1.0, 3.0)
    assert found.shares == [0.25, 0.75]
    assert latencies([seen()], "first_token_s").seconds == ()


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_latencies_of_any_requests_can_be_drawn(values: list[float]) -> None:
    found = latencies([seen(total_s=value) for value in values], "total_s")
    places = [tail(share) for share in found.shares]
    assert places == sorted(places)
    assert all(math.isfinite(place) for place in places)
    assert list(found.seconds) == sorted(values)
