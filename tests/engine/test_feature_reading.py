"""A drafter that reads is told of every position that the target computes, as it computes it."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.config.schema import EngineSettings
from outrider.core import Completion, Mode, Request, SamplingParams, Speculation, UserError
from outrider.engine.drafters import Read
from outrider.engine.engine import Engine
from outrider.testing import (
    ManualClock,
    ScriptedDrafter,
    ScriptedFeatureModel,
    ScriptedModel,
    finish,
    toy_engine,
)

VOCAB = 6
LAYERS = (1, 3)

Told = dict[int, list[tuple[int, tuple[float, ...]]]]
"""position -> (token, feature) each time that it was told"""


def named(prefix: Sequence[int]) -> tuple[float, float]:
    """A feature that tells the whole prefix: its length and its checksum."""
    return float(len(prefix)), float(zlib.crc32(bytes(prefix)) % 2**24)


def scores(prefix: tuple[int, ...]) -> list[float]:
    return [float(zlib.crc32(bytes((*prefix, token))) % 97) for token in range(VOCAB)]


def model(num_blocks: int = 40, layers: tuple[int, ...] = LAYERS) -> ScriptedFeatureModel:
    return ScriptedFeatureModel(
        scores, feature=named, feature_layers=layers, vocab_size=VOCAB, num_blocks=num_blocks
    )


class Reader(ScriptedDrafter):
    """Keeps all that it is told, by row and position; its drafts are right now and then."""

    feature_layers = LAYERS

    def __init__(self, rng: random.Random) -> None:
        super().__init__(self._guess)
        self._rng = rng
        self.told: dict[int, Told] = {}  # by row
        self.released: list[int] = []

    def read(self, reads: Sequence[Read]) -> None:
        assert len({read.row_id for read in reads}) == len(reads)
        for read in reads:
            assert read.row_id not in self.released
            assert len(read.features) == len(read.tokens) > 0
            row = self.told.setdefault(read.row_id, {})
            for index, token in enumerate(read.tokens):
                feature = tuple(read.features[index].tolist())
                row.setdefault(read.position + index, []).append((token, feature))

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        self.released.append(row_id)

    def _guess(self, tokens: Sequence[int], length: int) -> list[int]:
        out = list(tokens)
        for _ in range(length):
            best = max(range(VOCAB), key=scores(tuple(out)).__getitem__)
            out.append(best if self._rng.random() < 0.7 else self._rng.randrange(VOCAB - 1))
        return out[len(tokens) :]


def ask(rng: random.Random, name: str) -> Request:
    shared = [0, 1, 2, 3, 0, 1, 2, 3, 1][: rng.choice([0, 5, 9])]
    return Request(
        request_id=name,
        prompt_ids=(*shared, *(rng.randrange(VOCAB - 1) for _ in range(rng.randint(1, 8)))),
        params=SamplingParams(max_tokens=rng.choice([1, 2, 7, 20])),
        speculation=Speculation(
            enabled=rng.random() < 0.8, max_draft_length=rng.choice([None, None, 0, 2])
        ),
    )


def ask_for(num_tokens: int) -> Request:
    params = SamplingParams(max_tokens=num_tokens, ignore_eos=True)
    return Request(request_id="r", prompt_ids=(1, 2, 3), params=params)


def computed(done: Completion, request: Request) -> list[int]:
    """The tokens that have KV at the end: all but the last."""
    return [*request.prompt_ids, *done.token_ids][:-1]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_each_committed_position_is_told_once_with_what_stands_there(seed: int) -> None:
    """Whatever chunks, drafts, preemptions and prefix hits do; hits are not told."""
    rng = random.Random(seed)
    caching = rng.random() < 0.7
    reader, requests = Reader(rng), [ask(rng, f"r{i}") for i in range(8)]
    engine = toy_engine(
        model(num_blocks=rng.choice([10, 13, 40])),
        reader,
        length=lambda round_, row_id: rng.randint(0, 4),
        settings=EngineSettings(
            max_rows=4,
            max_round_tokens=rng.choice([4, 9, 512]),
            prefix_caching=caching,
        ),
    )
    done = finish(engine, *requests)
    assert sorted(reader.released) == list(range(1, 9))
    for row_id, request in enumerate(requests, start=1):
        speculation = request.speculation
        if not speculation.enabled or speculation.max_draft_length == 0:
            assert row_id not in reader.told
        else:
            ended = done[request.request_id]
            tokens = computed(ended, request)
            check_row(reader.told[row_id], tokens, ended, caching=caching)


def check_row(told: Told, tokens: list[int], done: Completion, *, caching: bool) -> None:
    most, cached = 1 + done.counters.num_preemptions, done.counters.num_cached_tokens
    for position, token in enumerate(tokens):
        right = named(tokens[: position + 1])
        entries = told.get(position, [])
        assert all(feature[0] == position + 1 for _, feature in entries)
        count = sum(entry == (token, right) for entry in entries)
        assert count == sum(feature == right for _, feature in entries)
        if most == 1:
            assert count == (position >= cached)
        else:
            assert (not caching) <= count <= most


def greedy(request: Request, engine: Engine) -> tuple[int, ...]:
    return finish(engine, request)[request.request_id].token_ids


def test_a_failing_read_costs_drafts_and_no_request() -> None:
    class Blind(Reader):
        def read(self, reads: Sequence[Read]) -> None:
            raise RuntimeError("too dark")

    request = ask_for(20)
    expected = greedy(request, toy_engine(model()))
    failures = []
    engine = toy_engine(
        model(), Blind(random.Random(0)), trace=lambda one: failures.append(one.failure)
    )
    assert greedy(request, engine) == expected
    assert failures[0] is None
    assert set(failures[1:]) == {"scripted: read failed: RuntimeError: too dark"}


def test_rounds_of_plain_mode_are_read_too() -> None:
    """Law 10: the mode may change at any round."""
    reader = Reader(random.Random(0))
    engine = toy_engine(model(), reader, length=2)
    engine.set_control(Mode.PLAIN)
    request = ask_for(9)
    tokens = [*request.prompt_ids, *greedy(request, engine)]
    assert reader.lengths == []
    assert sorted(reader.told[1]) == list(range(len(tokens) - 1))


def test_reading_is_the_draft_s_time() -> None:
    clock, records = ManualClock(), []

    class Slow(Reader):
        def read(self, reads: Sequence[Read]) -> None:
            clock.advance(0.25)

    engine = toy_engine(model(), Slow(random.Random(0)), clock=clock, trace=records.append)
    greedy(ask_for(3), engine)
    assert [record.draft_s for record in records] == [0.25] * 3


@pytest.mark.parametrize(
    "target", [model(layers=(1, 2)), model(layers=()), ScriptedModel(scores, vocab_size=VOCAB)]
)
def test_a_target_that_does_not_give_the_layers_is_refused(target: ScriptedModel) -> None:
    with pytest.raises(UserError, match=r"reads layers \(1, 3\) of the target, which was opened"):
        toy_engine(target, Reader(random.Random(0)))
