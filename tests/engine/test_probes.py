"""A release that decodes plainly but for a share of its rows; and how long a request waited."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.config.schema import EngineSettings
from outrider.core import Completion, Mode, Request, SamplingParams
from outrider.engine.breaker import is_in_share
from outrider.engine.draft_sums import DraftSums
from outrider.engine.engine import Engine
from outrider.testing import ManualClock, ScriptedDrafter, ScriptedModel, finish, toy_engine

VOCAB = 8
TABLE = np.random.default_rng(5).normal(size=(997, VOCAB)) * 2
Control = tuple[Mode, int | None, float | None]
CONTROLS: list[Control] = [
    (Mode.SPECULATIVE, None, None),
    (Mode.PLAIN, None, None),
    (Mode.PLAIN, None, 0.5),
    (Mode.PLAIN, 2, 1.0),
]


def hashed(prefix: tuple[int, ...]) -> list[float]:
    key = 0
    for token in prefix:
        key = (key * 31 + token + 1) % 997
    return [*TABLE[key][: VOCAB - 1], -9.0]


def half_right(tokens: Sequence[int], length: int) -> list[int]:
    prefix, out = tuple(tokens), []
    for _ in range(length):
        token = int(np.argmax(hashed(prefix)))
        out.append(token if len(prefix) % 3 else (token + 1) % (VOCAB - 1))
        prefix = (*prefix, out[-1])
    return out


def ask(index: int, **params: object) -> Request:
    return Request(
        request_id=f"r{index}",
        prompt_ids=(index % 5, index % 7),
        params=SamplingParams(**{"max_tokens": 24, **params}),  # type: ignore[arg-type]
    )


def engine(max_rows: int = 16, drafter: ScriptedDrafter | None = None) -> Engine:
    return toy_engine(
        ScriptedModel(hashed, vocab_size=VOCAB, num_blocks=1024),
        drafter or ScriptedDrafter(half_right),
        length=3,
        settings=EngineSettings(max_rows=max_rows),
    )


def run(
    under: Engine, requests: Sequence[Request], controls: Sequence[Control]
) -> list[Completion]:
    """Each control holds for three rounds, and the last to the end."""
    done: dict[str, Completion] = {}
    for request in requests:
        under.submit(request)
    for control in controls:
        under.set_control(*control)
        for _ in range(3):
            done |= {u.request_id: u.completion for u in under.step() if u.completion}
    done |= finish(under)
    return [done[request.request_id] for request in requests]


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.sampled_from(CONTROLS), min_size=1, max_size=6),
    st.sampled_from([{}, {"temperature": 1.0, "seed": 11}]),
)
def test_tokens_are_plain_decodings_whatever_is_said_while_they_are_decoded(
    controls: list[Control], params: dict[str, object]
) -> None:
    """Greedy and, under the coupled rule, sampled."""
    requests = [ask(i, **params) for i in range(5)]
    plain = run(engine(), requests, [(Mode.PLAIN, None, None)])
    said = run(engine(), requests, controls)
    assert [done.token_ids for done in said] == [done.token_ids for done in plain]
    assert all(done.counters.drafted == 0 for done in plain)


def test_only_rows_of_the_share_draft_and_they_do_so_for_their_whole_life() -> None:
    requests = [ask(i) for i in range(200)]
    done = run(engine(), requests, [(Mode.PLAIN, None, 0.1)])
    drafted = [each.counters.drafted > 0 for each in done]
    assert drafted == [is_in_share(row_id, 0.1) for row_id in range(1, 201)]
    assert 10 <= sum(drafted) <= 30
    assert all(
        each.counters.num_draft_rounds >= each.counters.num_rounds - 2
        for each, probes in zip(done, drafted, strict=True)
        if probes
    )


@pytest.mark.parametrize(
    ("share", "least", "most"), [(0.0, 0, 0), (0.05, 350, 650), (1.0, 10**4, 10**4)]
)
def test_a_share_is_as_large_as_it_says(share: float, least: int, most: int) -> None:
    assert least <= sum(is_in_share(row_id, share) for row_id in range(10**4)) <= most


def test_a_share_means_nothing_while_everybody_drafts() -> None:
    done = run(engine(), [ask(i) for i in range(5)], [(Mode.SPECULATIVE, None, 0.0)])
    assert all(each.counters.drafted > 0 for each in done)


def test_what_was_drafted_is_told_between_rounds_of_rows_that_still_run() -> None:
    under = engine()
    under.submit(ask(0, max_tokens=200))
    for _ in range(4):
        under.step()
    drafts = under.load().drafts
    stats = under.stats()["counters"]
    assert isinstance(stats, dict)
    assert (drafts.drafted, drafts.accepted) == (stats["drafted"], stats["accepted"])
    assert drafts.drafted > drafts.accepted > 0
    finish(under)
    assert under.load().drafts.since(drafts).drafted > 0


def test_sums_without_anything_below_them_have_no_ratio() -> None:
    assert (DraftSums().acceptance_ratio, DraftSums().goodput_ratio) == (None, None)
    both = DraftSums(10, 4, 2, 3.0) + DraftSums(10, 2, 2, 1.0)
    assert (both.acceptance_ratio, both.goodput_ratio) == (0.3, 1.0)


def test_a_request_waits_until_its_first_round() -> None:
    clock = ManualClock()
    model = ScriptedModel(hashed, vocab_size=VOCAB, clock=clock, cost=lambda rows, tokens: 0.5)
    under = toy_engine(model, clock=clock, settings=EngineSettings(max_rows=1))
    first, second = (ask(i, max_tokens=4) for i in range(2))
    under.submit(ask(2))
    under.submit(ask(3))
    under.cancel("r2")  # it was in no round
    (gone, *_) = [u.completion for u in under.take_updates() if u.completion]
    under.cancel("r3")
    assert gone.queue_s is None
    done = finish(under, first, second)
    assert done["r0"].queue_s == 0.0
    assert done["r1"].queue_s == pytest.approx(done["r0"].total_s) == pytest.approx(2.0)
