"""The report's figures are the sums' ratios, and the closing screen fits the terminal."""

from __future__ import annotations

from dataclasses import asdict
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from outrider.bulk.figures import Arm, ArmFigures, Figures
from outrider.bulk.live import Tally
from outrider.bulk.progress import Pace, ProgressView, duration
from outrider.bulk.report import (
    Report,
    kind_reports,
    load_report,
    parity_report,
    total_report,
)
from outrider.bulk.screen import WIDTH, show_report
from outrider.core import Counters, UserError
from outrider.engine.parity import Parity
from outrider.telemetry.meters import meter_of


def arm(emitted: int, active_s: float, drafted: int = 0) -> ArmFigures:
    counters = Counters(
        emitted=emitted,
        active_s=active_s,
        drafted=drafted,
        evaluated=drafted // 2,
        accepted=drafted // 4,
        num_rounds=emitted - drafted // 4,
        num_draft_rounds=drafted // 8,
    )
    return ArmFigures(2, 10, counters)


def figures() -> Figures:
    return Figures(
        {
            (Arm.SPECULATIVE, "edit"): arm(300, 1.0, 160),
            (Arm.PLAIN, "edit"): arm(300, 3.0),
            (Arm.SPECULATIVE, "chat"): arm(100, 1.0, 16),
            (Arm.PLAIN, "chat"): arm(100, 1.1),
        },
        Parity(compared=4, near_ties=1),
    )


def report(found: Figures) -> Report:
    return Report(
        num_rows=5,
        num_rows_done=4,
        num_rows_failed=1,
        total=total_report(found),
        by_kind=kind_reports(found),
        parity=parity_report(found, 0.5),
        duration_s=200.0,
        num_sessions=2,
        fingerprint="f" * 64,
        fingerprints=["f" * 64],
        run_id="a" * 32,
        open_command="mlflow ui --backend-store-uri sqlite:////" + "long/" * 20 + "outrider.db",
        files={"output": "/" + "deep/" * 30 + "output.jsonl"},
    )


def test_ratios_are_of_sums_by_kind_and_in_total() -> None:
    made = report(figures())
    chat, edit = made.by_kind
    assert (chat.kind, edit.kind) == ("chat", "edit")
    assert edit.speedup_ratio == pytest.approx(3.0)
    assert chat.speedup_ratio == pytest.approx(1.1)
    assert made.total.speculative.tokens_per_s == pytest.approx(200.0)
    assert made.total.speedup_ratio == pytest.approx(4.1 / 2.0)
    assert edit.speculative.acceptance_ratio == pytest.approx(0.5)
    assert edit.speculative.mean_draft_length == pytest.approx(8.0)
    assert edit.speculative.tokens_per_round == pytest.approx(300 / 260)


def test_figures_go_by_the_catalogue_in_the_report_and_in_the_run() -> None:
    made = report(figures())
    final = made.metrics()
    assert all(meter_of(name) for name in final)
    assert final["speedup_ratio/chat"] == pytest.approx(1.1)
    assert final["plain_tokens_per_s"] == made.total.plain.tokens_per_s  # type: ignore[union-attr]
    assert final["num_near_ties"] == 1.0
    arm = asdict(made.total.speculative)
    assert all(meter_of(name) for name in arm)


def test_without_a_baseline_there_is_no_gain_to_tell() -> None:
    alone = Figures({(Arm.SPECULATIVE, ""): arm(100, 1.0, 16)})
    assert total_report(alone).plain is None
    assert total_report(alone).speedup_ratio is None
    assert parity_report(alone, 0.5) is None
    assert "speedup_ratio" not in report(alone).metrics()


def test_nothing_decoded_gives_nulls_not_zeros() -> None:
    total = total_report(Figures())
    assert total.speculative.tokens_per_s is None
    assert total.speculative.acceptance_ratio is None


def test_a_part_of_before_rounds_were_told_by_draft_length_is_read() -> None:
    written = figures().to_dict()
    for each in written["arms"]:
        del each["counters"]["rounds_by_length"]
    assert Figures.from_dict(written) == figures()


def test_figures_and_reports_come_back_from_json_as_they_were(tmp_path: Path) -> None:
    assert Figures.from_dict(figures().to_dict()) == figures()
    made = report(figures())
    made.save(tmp_path / "report.json")
    assert asdict(load_report(tmp_path / "report.json")) == asdict(made)
    (tmp_path / "report.json").write_text("{}")
    with pytest.raises(UserError, match="not a report"):
        load_report(tmp_path / "report.json")


def test_the_closing_screen_fits_eighty_columns_and_one_screen() -> None:
    out = StringIO()
    show_report(report(figures()), Console(file=out, width=WIDTH))
    lines = out.getvalue().splitlines()
    table = [line for line in lines if line.startswith(("kind", "chat", "edit", "all"))]
    assert len(table) == 4
    facts = [line for line in lines if line.startswith(("output", "open"))]
    assert max(len(line.rstrip()) for line in lines if line not in facts) <= WIDTH
    assert facts[-1].endswith("outrider.db")  # whole, to be copied
    assert len(lines) <= 24
    for words in ("4 rows done", "1 failed", "3 min 20 s", "3.00 x", "0 mismatches", "near tie"):
        assert words in out.getvalue()


def test_progress_tells_the_rate_of_the_last_seconds_and_the_time_left() -> None:
    pace = Pace(num_total=100, num_before=20, now=0.0)
    assert pace.glance(Tally(), 20, 5.0).eta_s is None
    glance = pace.glance(Tally(num_rows=20, emitted=1000, evaluated=10, accepted=7), 36, 15.0)
    assert (glance.num_rows, glance.acceptance_ratio) == (40, 0.7)
    assert glance.eta_s == pytest.approx(60 * 10 / 20)
    later = pace.glance(Tally(num_rows=20, emitted=1000), 40, 40.0)
    assert later.tokens_per_s == 0.0
    assert later.line().startswith("40/100 rows, 0 tok/s")


def test_rows_done_twice_do_not_show_more_rows_than_there_are() -> None:
    pace = Pace(num_total=10, num_before=0, now=0.0)
    assert pace.glance(Tally(num_rows=14), 8, 1.0).num_rows == 10


def test_plain_lines_are_few_where_there_is_no_terminal() -> None:
    class Clock:
        now = 0.0

        def monotonic(self) -> float:
            return self.now

        def time(self) -> float:
            return self.now

    out, clock = StringIO(), Clock()
    pace = Pace(num_total=10, num_before=0, now=0.0)
    with ProgressView(Console(file=out), clock) as view:
        for second in range(20):
            clock.now = float(second)
            view.show(pace.glance(Tally(num_rows=second // 4), 0, clock.now))
    assert out.getvalue().count("rows,") == 4


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59.6, "1 min 00 s"), (7500, "2 h 05 min")]
)
def test_durations_read_like_a_person_says_them(seconds: float, words: str) -> None:
    assert duration(seconds) == words
