"""The page's own reckoning: what is not known is no number, and what is missing is a gap."""

from __future__ import annotations

from typing import Any

import chromium
import pytest
from chromium import Chromium
from play import Play
from stage import stage

pytestmark = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="no Chromium here: apt-get install chromium"
)
DASH = "\u2013"


def test_what_is_not_known_is_no_number(browser: Chromium, play: Play) -> None:
    with stage(play) as site, browser.window(site.url) as window:
        window.open()
        told: dict[str, Any] = window.page.evaluate(_FIGURES)
    assert told == {
        "nothing": None,
        "dash": DASH,
        "gap": [2.0, None, 4.0],
        "positions": [{"position": 1, "evaluated": 4, "accepted": 3, "share": 0.75}],
        "length": 3.0,
        "anew": ["b"],
        "kept": [30.0],
        "clock_put_back": 0,
    }


_FIGURES = """async () => {
  const figures = await import("/console/figures.js");
  const format = await import("/console/format.js");
  const history = await import("/console/history.js");
  const point = (at_s, emitted, more = {}) => ({
    release: "a", at_s, span_s: 2, emitted, drafted: 0, evaluated: 0, accepted: 0, num_rounds: 1,
    rounds_s: 1, plain_rounds_s: 1, rounds_by_draft_length: [], position_evaluated: [],
    position_accepted: [], ...more,
  });
  const asked = { width_s: 2, period_s: 2 };
  const line = figures.line([point(10, 2), point(18, 4)], figures.busyRate, asked);
  const sums = figures.total([
    point(1, 1, { rounds_by_draft_length: [9, 0, 0, 2], position_evaluated: [4, 0] }),
    point(2, 1, { position_accepted: [3] }),
  ]);
  const told = (began_s, points, at_s) => ({ service: { began_s }, points, at_s, keep_s: 20 });
  const first = history.merged(history.NOTHING, told(1, [point(10, 1)], 11));
  const later = history.merged(first, told(1, [point(10, 9), point(30, 1)], 31));
  const other = history.merged(first, told(2, [point(12, 1, { release: "b" })], 13));
  return {
    nothing: figures.ratio(0, 0),
    dash: format.share(figures.acceptance(figures.total([]))),
    gap: line.map((one) => one.value),
    positions: figures.positions(sums),
    length: figures.meanDraftLength(sums),
    anew: [...other.points.keys()],
    kept: later.points.get("a").map((one) => one.at_s),
    clock_put_back: history.newest(history.merged(first, told(1, [], 5))),
  };
}"""
