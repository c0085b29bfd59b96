"""What a search shows at its width."""

from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from outrider.trial.halving import Fate, Score
from outrider.trial.judgement import Decision
from outrider.trial.record import Ratio
from outrider.trial.sweep_record import Outcome, RungRecord, Standing
from outrider.trial.sweep_screen import SweepScreen

LONG = "engine=default draft=ngram draft.length.max=15"
FASTER = Ratio(value=1.62, low=1.41, high=1.85, num_pairs=24)
OUTCOME = Outcome(
    recommended=LONG,
    fingerprint="f",
    speedup=FASTER,
    decision=Decision.ADOPT,
    reason="every criterion is met",
    version=3,
    is_challenger=True,
)


def shown(outcome: Outcome = OUTCOME) -> str:
    standings = [
        Standing(candidate=f"draft={fate}", score=Score(speedup=FASTER), fate=fate) for fate in Fate
    ]
    best = Score(speedup=replace(FASTER, value=2.0), tokens_per_s=123.44)
    silent = Score(speedup=None, failure_ratio=1.0)
    standings += [
        Standing(candidate=LONG, score=best, fate=Fate.KEPT),
        Standing(candidate="silent", score=silent, fate=Fate.FAILED),
    ]
    screen = io.StringIO()
    made = SweepScreen(Console(file=screen, width=100), 1, lambda one: "python jobs/bench.py x")
    made.rung(RungRecord(number=0, num_prompts=6, standings=tuple(standings)))
    made.outcome(outcome, 24)
    return screen.getvalue()


def test_each_candidate_is_told_with_what_follows_for_it_the_fastest_first() -> None:
    lines = shown().splitlines()
    assert lines[1].startswith(f"rung 1: {len(Fate) + 2} candidates, 6 prompts")
    assert "123.4" in lines[2]
    assert "2.00 (1.41-1.85)" in lines[2]
    text = "\n".join(lines)
    whys = ("kept", "others are faster", "slower than plain", "no faster", "answers differ")
    for why in (*whys, "100% of its req"):
        assert why in text
    assert max(map(len, lines)) <= 100
    assert "…" not in text, "no name is cut"


def test_the_last_lines_are_the_release_its_speed_and_how_to_confirm_it() -> None:
    assert shown().splitlines()[-4:] == [
        f"recommended: {LONG} (version 3, challenger)",
        "  speed-up 1.62 (1.41-1.85) over plain decoding (24 tuning prompts, 1 in flight)",
        "  criteria on these prompts: adopt: every criterion is met",
        "  confirm it: python jobs/bench.py x",
    ]


def test_plain_decoding_is_recommended_in_words() -> None:
    text = shown(Outcome(recommended="plain", fingerprint="f"))
    assert "recommended: plain decoding" in text
    assert "no candidate is faster than draft=none" in text
