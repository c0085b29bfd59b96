"""One name for one figure, and ratios that follow from counters."""

from __future__ import annotations

import re

from outrider.core import Counters
from outrider.telemetry import live_meters, meters
from outrider.telemetry.meter import Meter


def test_names_tell_what_they_measure() -> None:
    for meter in meters.METERS.values():
        assert re.fullmatch(r"[a-z][a-z_]*(_p\d\d)?", meter.name)
        assert meter.help.endswith(".")
        if meter.unit == "seconds":
            assert re.search(r"_s(_p\d\d)?$", meter.name)
        if meter.name.endswith("_ratio"):
            assert meter.unit == "1"


def test_each_name_is_given_once() -> None:
    named = (*vars(meters).values(), *vars(live_meters).values())
    defined = [item for item in named if isinstance(item, Meter)]
    num_derived = 3 * len(meters.WITH_PERCENTILES) + 2 * len(meters.WITH_INTERVAL)
    num_derived += len(meters.BY_DRAFTER) + len(meters.SERVED)
    assert len({meter.name for meter in defined}) == len(defined)
    assert len(meters.METERS) == len(defined) + num_derived


def test_figures_follow_from_counters() -> None:
    counters = Counters(
        drafted=40,
        evaluated=30,
        accepted=20,
        emitted=29,
        cropped=1,
        num_rounds=10,
        num_draft_rounds=8,
    )
    figures = meters.figures_of(counters)
    assert figures["acceptance_ratio"] == 20 / 30
    assert figures["draft_acceptance_ratio"] == 0.5
    assert figures["mean_draft_length"] == 5.0
    assert figures["tokens_per_round"] == 2.9
    assert figures["draft_rounds_ratio"] == 0.8
    assert figures.keys() <= meters.METERS.keys()


def test_plain_decoding_has_no_acceptance() -> None:
    figures = meters.figures_of(Counters(emitted=5, num_rounds=5))
    assert "acceptance_ratio" not in figures
    assert "mean_draft_length" not in figures
    assert figures["tokens_per_round"] == 1.0


def test_a_figure_of_one_kind_is_grouped_under_its_name() -> None:
    assert meters.SPEEDUP_RATIO.of("chat") == "speedup_ratio/chat"
    assert meters.SPEEDUP_RATIO.of("") == "speedup_ratio"


def test_a_recorded_name_leads_to_its_meter() -> None:
    assert meters.meter_of("window.speedup_ratio/chat") is meters.SPEEDUP_RATIO
    assert meters.meter_of("first_token_s_p95") is meters.METERS[meters.FIRST_TOKEN_S.at(95)]
    assert meters.meter_of("speedup_ratio_low/language:de") is not None
    assert meters.meter_of("tok_s") is None
