"""Random stories: whatever comes together, each request gets what it would get alone, undrafted."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.config.schema import EngineSettings, RuleKind
from outrider.core import Completion, Counters, FinishReason, Request, SamplingParams, Speculation
from outrider.engine.drafters import Drafted, DraftRow, Offer, Proposal
from outrider.engine.engine import Engine
from outrider.testing import LetterTokenizer, ScriptedModel, finish, toy_engine

VOCAB = 6  # letters A to D, EOS, and one padded id that the tokenizer does not know
EOS = VOCAB - 2
TOKENIZER = LetterTokenizer("ABCD")
FEW_STOPS = [(), (), ("AB",), ("C", "DDAB"), ("AAA", "BD", "C")]


def hashed(prefix: tuple[int, ...]) -> list[float]:
    """Logits by the whole prefix; the padded id is the likeliest of all."""
    rng = random.Random(hash(prefix))
    return [*(2 * rng.random() for _ in range(EOS)), rng.random(), 9.0]


def model(num_blocks: int) -> ScriptedModel:
    return ScriptedModel(hashed, vocab_size=VOCAB, num_blocks=num_blocks, context_length=40)


class WildDrafter:
    """Right, wrong, short, silent, too long or broken, at random; it may not keep its offers."""

    name = "wild"

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        if self._rng.random() < 0.03:
            raise RuntimeError("no offer today")
        return [Offer(self.name, (0,) * (limit + self._rng.randint(-1, 1))) for limit in limits]

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        if self._rng.random() < 0.03:
            raise RuntimeError("no draft today")
        return Drafted([self._block(row, k) for row, k in zip(rows, lengths, strict=True)])

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        if self._rng.random() < 0.03:
            raise RuntimeError("no release today")

    def _block(self, row: DraftRow, length: int) -> Proposal:
        params = replace(row.request.params, max_tokens=length, stop=(), stop_token_ids=())
        tokens = list(_continued(tuple(row.tokens), params, length))
        for index in range(len(tokens)):
            if self._rng.random() < 0.2:
                tokens[index] = self._rng.randrange(EOS + 1)
        size = self._rng.choice([0, length // 2, length, length, length, length + 1])
        failure = "half-hearted" if self._rng.random() < 0.1 else None
        return Proposal([*tokens, 0][:size], failure=failure)


def _continued(tokens: tuple[int, ...], params: SamplingParams, length: int) -> list[int]:
    """What a greedy target would say: right for many a request, and EOS among it."""
    out: list[int] = []
    for _ in range(length):
        scores = hashed((*tokens, *out))[: EOS + 1]
        out.append(scores.index(max(scores)))
    return out


def some_params(rng: random.Random) -> SamplingParams:
    max_tokens = rng.choice([1, 2, 7, 20])
    return SamplingParams(
        max_tokens=max_tokens,
        min_tokens=rng.randint(0, max_tokens) if rng.random() < 0.4 else 0,
        temperature=rng.choice([0.0, 0.0, 0.3, 1.0]),
        top_p=rng.choice([1.0, 0.8, 1e-9]),
        top_k=rng.choice([0, 1, 3]),
        min_p=rng.choice([0.0, 0.1, 1.0]),
        seed=rng.randrange(5),
        stop=rng.choice(FEW_STOPS),
        stop_token_ids=rng.choice([(), (), (2,)]),
        ignore_eos=rng.random() < 0.3,
        presence_penalty=rng.choice([0.0, 0.0, 0.5]),
        frequency_penalty=rng.choice([0.0, 0.0, 0.4]),
        repetition_penalty=rng.choice([1.0, 1.0, 1.3]),
        logit_bias=rng.choice([{}, {}, {0: -100.0}, {1: 0.5}]),
        top_logprobs=rng.choice([None, 0, 5]),
    )


def some_request(rng: random.Random, name: str) -> Request:
    shared = [0, 1, 2, 3, 0, 1, 2, 3, 1][: rng.choice([0, 5, 9])]
    own = [rng.randrange(EOS) for _ in range(rng.randint(1, 8))]
    return Request(
        request_id=name,
        prompt_ids=(*shared, *own),
        params=some_params(rng),
        speculation=Speculation(
            enabled=rng.random() < 0.9, max_draft_length=rng.choice([None, 0, 2, 99])
        ),
        stream=rng.random() < 0.5,
    )


class Story:
    """An engine under requests that come, are cancelled and end; all it said is kept."""

    def __init__(self, engine: Engine, rng: random.Random) -> None:
        self._engine = engine
        self._rng = rng
        self.done: dict[str, Completion] = {}
        self.text: dict[str, str] = {}
        self.ids: dict[str, tuple[int, ...]] = {}

    def run(self, requests: Sequence[Request]) -> None:
        waiting = list(requests)
        while waiting or self._engine.has_work:
            while waiting and self._rng.random() < 0.5:
                self._engine.submit(waiting.pop())
            if self._rng.random() < 0.05:
                self._engine.cancel(self._rng.choice(requests).request_id)
            self._step()

    def _step(self) -> None:
        for update in self._engine.step():
            name = update.request_id
            self.text[name] = self.text.get(name, "") + update.text
            self.ids[name] = self.ids.get(name, ()) + update.token_ids
            if update.completion is not None:
                assert name not in self.done
                self.done[name] = update.completion
        self._engine.check_integrity()


def story(rng: random.Random, requests: Sequence[Request], rule: RuleKind) -> tuple[Story, Engine]:
    engine = toy_engine(
        model(num_blocks=rng.choice([10, 11, 13, 40])),
        WildDrafter(rng),
        length=lambda round_, row_id: rng.randint(0, 6),
        tokenizer=TOKENIZER,
        settings=EngineSettings(rule=rule, max_rows=4, max_round_tokens=rng.choice([4, 9, 512])),
    )
    told = Story(engine, rng)
    told.run(requests)
    return told, engine


def check_counters(done: Completion) -> None:
    counters = done.counters
    assert 0 <= counters.accepted <= counters.evaluated <= counters.drafted
    assert counters.emitted == counters.accepted + counters.num_rounds - counters.cropped
    assert counters.emitted == len(done.token_ids)
    assert sum(counters.position_attempts) == counters.evaluated
    assert sum(counters.position_accepts) == counters.accepted
    assert sum(counters.rounds_by_length) == counters.num_rounds
    lengths = enumerate(counters.rounds_by_length)
    assert sum(length * rounds for length, rounds in lengths) == counters.drafted
    assert counters.num_cached_tokens < done.num_prompt_tokens


def check_story(told: Story, engine: Engine, requests: Sequence[Request]) -> None:
    """Everything ended, was told in full, was counted, and left nothing behind."""
    assert told.done.keys() == {request.request_id for request in requests}
    total = Counters()
    for name, done in told.done.items():
        assert (told.text[name], told.ids[name]) == (done.text, done.token_ids)
        check_counters(done)
        total += done.counters
    stats = engine.stats()
    assert stats["counters"] == total.to_dict()
    assert stats["num_free_blocks"] == stats["num_blocks"]


def check_stops(request: Request, done: Completion) -> None:
    """No stop was passed by: only the last token may have completed one, or been one."""
    params, ids = request.params, done.token_ids
    stop_ids = {*params.stop_token_ids, *(() if params.ignore_eos else (EOS,))}
    assert not stop_ids & set(ids[:-1])
    for length in range(max(params.min_tokens, 1), len(ids)):
        text = TOKENIZER.decode(list(ids[:length]))
        assert ids[length - 1] == EOS or not text.endswith(params.stop or ("never",))
    if done.finish_reason is FinishReason.STOP:
        assert len(ids) >= params.min_tokens
    if isinstance(done.stop_reason, str):
        assert done.text + done.stop_reason == TOKENIZER.decode(list(ids))


def check_logprobs(request: Request, done: Completion) -> None:
    if request.params.top_logprobs is None:
        assert done.logprobs is None
        return
    assert done.logprobs is not None
    assert tuple(entry.token_id for entry in done.logprobs) == done.token_ids
    assert all(token <= EOS for entry in done.logprobs for token, _ in entry.top)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9))
def test_each_request_gets_what_it_gets_alone(seed: int) -> None:
    """Laws 2 and 5 to 12 at once, under rule coupled."""
    rng = random.Random(seed)
    requests = [some_request(rng, f"r{i}") for i in range(8)]
    told, engine = story(rng, requests, RuleKind.COUPLED)
    check_story(told, engine, requests)
    for request in requests:
        done = told.done[request.request_id]
        check_logprobs(request, done)
        check_stops(request, done)
        alone = finish(toy_engine(model(40), tokenizer=TOKENIZER), request)[request.request_id]
        if done.finish_reason is FinishReason.ABORT:
            assert alone.token_ids[: len(done.token_ids)] == done.token_ids
        else:
            assert replace(done, counters=alone.counters) == alone


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**9))
def test_under_the_ratio_rule_everything_ends_and_is_counted(seed: int) -> None:
    """Its tokens depend on the drafts, but lengths, stops, logprobs and counters still agree."""
    rng = random.Random(seed)
    requests = [some_request(rng, f"r{i}") for i in range(8)]
    told, engine = story(rng, requests, RuleKind.RATIO)
    check_story(told, engine, requests)
    for request in requests:
        done = told.done[request.request_id]
        check_logprobs(request, done)
        check_stops(request, done)
        assert all(token <= EOS for token in done.token_ids)
