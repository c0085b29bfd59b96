"""Bulk jobs: how far, how fast, how well drafted, what failed."""

from __future__ import annotations

from collections.abc import Iterator

from grafana_foundation_sdk.models.dashboard import Dashboard

from boards.board import board, choice
from boards.panels import BAD, GOOD, WARN, Panel, figure, lines, states, table
from boards.query import level, rate, ratio
from boards.words import RUNNING
from outrider.telemetry import live_meters as live
from outrider.telemetry import meters

J, BY, JOB = 'bulk_job=~"$bulk_job"', "bulk_job", "{{bulk_job}}"
ENDED = f"({level(live.BULK_NUM_ROWS_DONE, BY, J)} + {level(live.BULK_NUM_ROWS_FAILED, BY, J)})"


def bulk() -> Dashboard:
    about = "Bulk jobs: progress, time left, speed, drafts and failures."
    variables = (choice("bulk_job", "Job", live.BULK_NUM_ROWS),)
    rows = {"Now": _now(), "Jobs": _jobs(), "Course": _course()}
    return board("bulk", about, variables, rows, since="now-3h")


def _now() -> Iterator[Panel]:
    running = level(live.BULK_IS_RUNNING, where=J)
    yield figure("Running", live.BULK_IS_RUNNING, running, unit="none", width=4)
    speed = rate(live.BULK_NUM_EMITTED_TOKENS, where=J)
    yield figure("Speed", meters.TOKENS_PER_S, speed, width=5)
    yield figure("Acceptance", meters.ACCEPTANCE_RATIO, _acceptance(""), width=5)
    done = level(live.BULK_NUM_ROWS_DONE, where=J)
    yield figure("Rows done", live.BULK_NUM_ROWS_DONE, done, width=5)
    failed = level(live.BULK_NUM_ROWS_FAILED, where=J)
    steps = ((None, GOOD), (1.0, WARN), (100.0, BAD))
    yield figure("Rows failed", live.BULK_NUM_ROWS_FAILED, failed, steps=steps, width=5)


def _jobs() -> Iterator[Panel]:
    columns = {
        "Runs": level(live.BULK_IS_RUNNING, BY, J, "max"),
        "Rows": level(live.BULK_NUM_ROWS, BY, J),
        "Done": level(live.BULK_NUM_ROWS_DONE, BY, J),
        "Failed": level(live.BULK_NUM_ROWS_FAILED, BY, J),
        "Seconds left": level(live.BULK_ETA_S, BY, J, "max"),
    }
    about = "Earlier runs of a job included. Seconds left: as it goes now."
    names = {"bulk_job": "Job"}
    yield table("Jobs", about, columns, names=names, words={"Runs": RUNNING}, width=24)


def _course() -> Iterator[Panel]:
    share = ratio(ENDED, level(live.BULK_NUM_ROWS, BY, J))
    about = "Rows that have ended / rows."
    yield lines("Progress", about, (share, JOB), unit="percentunit", most=1)
    left = level(live.BULK_ETA_S, BY, J, "max")
    yield lines("Time left", live.BULK_ETA_S, (left, JOB))
    speed = rate(live.BULK_NUM_EMITTED_TOKENS, BY, J)
    yield lines(
        "Tokens per second", live.BULK_NUM_EMITTED_TOKENS, (speed, JOB), unit="suffix: tok/s"
    )
    yield lines("Acceptance", meters.ACCEPTANCE_RATIO, (_acceptance(BY), JOB), most=1)
    failed = ratio(level(live.BULK_NUM_ROWS_FAILED, BY, J), ENDED)
    about = "Rows that failed / rows that have ended."
    yield lines("Rows that fail", about, (failed, JOB), unit="percentunit")
    runs = level(live.BULK_IS_RUNNING, BY, J, "max")
    yield states("Runs", live.BULK_IS_RUNNING, (runs, JOB), RUNNING, width=8)


def _acceptance(by: str) -> str:
    tested = rate(live.BULK_NUM_EVALUATED_TOKENS, by, J)
    return ratio(rate(live.BULK_NUM_ACCEPTED_TOKENS, by, J), tested)
