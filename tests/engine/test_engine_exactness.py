"""Whatever is drafted, what comes out is what plain decoding gives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.config.schema import EngineSettings, RuleKind
from outrider.core import Completion, FinishReason, Request, SamplingParams, Speculation
from outrider.engine.drafters import Drafted, DraftRow, Proposal
from outrider.engine.round_record import RoundRecord
from outrider.testing import ScriptedDrafter, ScriptedModel, finish, toy_engine

VOCAB = 8
EOS = VOCAB - 1
TABLE = np.random.default_rng(3).normal(size=(997, VOCAB)) * 2


def hashed(prefix: tuple[int, ...]) -> list[float]:
    """Logits that depend on the whole prefix; EOS is unlikely."""
    key = 0
    for token in prefix:
        key = (key * 31 + token + 1) % 997
    return [*TABLE[key][:EOS], -9.0]


def model(
    logits: Callable[[tuple[int, ...]], Sequence[float]] = hashed, **shape: int
) -> ScriptedModel:
    return ScriptedModel(logits, vocab_size=VOCAB, **shape)


def oracle(share_right: int = 10) -> ScriptedDrafter:
    """Drafts what a greedy target would say, but for every tenth token or so."""

    def script(tokens: Sequence[int], length: int) -> list[int]:
        prefix, out = tuple(tokens), []
        for _ in range(length):
            token = int(np.argmax(hashed(prefix)))
            out.append(token if len(prefix) % 11 < share_right else (token + 1) % EOS)
            prefix = (*prefix, out[-1])
        return out

    return ScriptedDrafter(script)


def noise(tokens: Sequence[int], length: int) -> list[int]:
    return [(sum(tokens) + i) % EOS for i in range(length)]


def request(name: str, prompt: Sequence[int], **params: object) -> Request:
    speculation = params.pop("speculation", Speculation())
    return Request(
        request_id=name,
        prompt_ids=tuple(prompt),
        params=SamplingParams(**params),  # type: ignore[arg-type]
        speculation=speculation,  # type: ignore[arg-type]
    )


def same(one: Completion, other: Completion) -> bool:
    return (one.token_ids, one.text, one.finish_reason, one.stop_reason) == (
        other.token_ids,
        other.text,
        other.finish_reason,
        other.stop_reason,
    )


GREEDY = {"max_tokens": 30}
SAMPLED = {"max_tokens": 30, "temperature": 1.0, "seed": 11}
SHAPED = {
    "max_tokens": 30,
    "temperature": 0.8,
    "top_p": 0.9,
    "top_k": 5,
    "min_p": 0.02,
    "presence_penalty": 0.3,
    "frequency_penalty": 0.2,
    "repetition_penalty": 1.2,
    "logit_bias": {1: 0.7},
    "min_tokens": 5,
    "seed": 5,
}


@pytest.mark.parametrize("k", [1, 2, 5, 16])
@pytest.mark.parametrize("params", [GREEDY, SAMPLED, SHAPED], ids=["greedy", "sampled", "shaped"])
@pytest.mark.parametrize("drafter", [oracle(), ScriptedDrafter(noise)], ids=["oracle", "noise"])
def test_output_equals_plain_decoding(
    k: int, params: dict[str, object], drafter: ScriptedDrafter
) -> None:
    """E01, rule coupled: a prompt of one token repeated 48 times, every k."""
    ask = request("r", [2] * 48, **params)
    plain = finish(toy_engine(model()), ask)["r"]
    fast = finish(toy_engine(model(), drafter, length=k), ask)["r"]
    assert same(plain, fast)
    assert len(plain.token_ids) == 30


def test_speculation_emits_several_tokens_per_round() -> None:
    """The tests of exactness would pass with a drafter that is never asked."""
    done = finish(toy_engine(model(), oracle(), length=5), request("r", [1, 2], **GREEDY))["r"]
    assert done.counters.num_rounds < 15
    assert done.counters.accepted > 15


def test_penalties_see_the_tokens_drafted_before() -> None:
    """E07: constant logits, frequency penalty .4, drafts AAAA."""
    constant = model(lambda prefix: [5.0, 4.5, 0.0, *[-50.0] * 5])
    for k in (0, 1, 2, 4, 8):
        drafter = ScriptedDrafter(lambda tokens, length: [0] * length)
        ask = request("r", [6], max_tokens=9, frequency_penalty=0.4)
        assert finish(toy_engine(constant, drafter, length=k), ask)["r"].text == "AABABABAB"


def test_min_tokens_holds_at_every_position_of_a_block() -> None:
    """E08: the target always wants EOS, second best is B; min_tokens 3; drafts BBBB."""
    eager = model(lambda prefix: [0.0, 4.0, *[0.0] * 5, 9.0])
    for k in (0, 1, 4):
        drafter = ScriptedDrafter(lambda tokens, length: [1] * length)
        done = finish(
            toy_engine(eager, drafter, length=k), request("r", [0], max_tokens=9, min_tokens=3)
        )["r"]
        assert done.token_ids == (1, 1, 1, EOS)
        assert done.text == "BBB"
        assert done.finish_reason is FinishReason.STOP


def test_a_seeded_request_is_the_same_alone_and_in_company() -> None:
    """E09: in a batch of 8 with other seeds, with k changing every round."""
    mine = request("mine", [3, 1], **SAMPLED)
    alone = finish(toy_engine(model()), mine)["mine"]
    others = [
        request(f"o{i}", [i % 5, i % 3], max_tokens=20 + i, temperature=1.3, seed=i * 77)
        for i in range(7)
    ]
    changing = toy_engine(model(), oracle(5), length=lambda round_, row: (round_ * 3 + row) % 6)
    assert same(alone, finish(changing, *others[:3], mine, *others[3:])["mine"])


@pytest.mark.parametrize("top", [0, 2])
def test_there_is_one_logprob_entry_per_emitted_token(top: int) -> None:
    """E10: equal to plain decoding's within 1e-5, from no to all drafts accepted."""
    ask = request("r", [4, 4], max_tokens=25, top_logprobs=top)
    plain = finish(toy_engine(model()), ask)["r"]
    for drafter in (oracle(11), oracle(6), ScriptedDrafter(noise)):
        fast = finish(toy_engine(model(), drafter, length=4), ask)["r"]
        assert plain.logprobs is not None
        assert fast.logprobs is not None
        assert [e.token_id for e in fast.logprobs] == list(fast.token_ids)
        for mine, theirs in zip(fast.logprobs, plain.logprobs, strict=True):
            assert mine.logprob == pytest.approx(theirs.logprob, abs=1e-5)
            assert [token for token, _ in mine.top] == [token for token, _ in theirs.top]
            assert [lp for _, lp in mine.top] == pytest.approx([lp for _, lp in theirs.top])
            assert len(mine.top) == top


def test_output_ends_at_an_eos_inside_an_accepted_run() -> None:
    """E11: drafts [a, EOS, b, c], all acceptable; counters and KV know the kept prefix only."""
    script = {2: 0, 3: EOS, 4: 1, 5: 2, 6: 3}

    def logits(prefix: tuple[int, ...]) -> list[float]:
        return [9.0 if token == script.get(len(prefix), 0) else 0.0 for token in range(VOCAB)]

    drafter = ScriptedDrafter(lambda tokens, k: [script[len(tokens) + i] for i in range(k)])
    engine = toy_engine(model(logits), drafter, length=lambda round_, row: 3 if round_ else 0)
    done = finish(engine, request("r", [5], max_tokens=20))["r"]
    assert done.token_ids == (0, 0, EOS)
    assert done.text == "AA"
    counters = done.counters
    assert counters.emitted == counters.accepted + counters.num_rounds - counters.cropped
    assert (counters.emitted, counters.accepted, counters.cropped) == (3, 3, 2)


def test_the_context_limit_clips_the_draft() -> None:
    """E13: context 16, prompt 13, k 8: exactly 3 tokens, finish length, nothing crashes."""
    engine = toy_engine(model(context_length=16), oracle(11), length=8)
    done = finish(engine, request("r", [1] * 13, max_tokens=100))["r"]
    assert len(done.token_ids) == 3
    assert done.finish_reason is FinishReason.LENGTH


def test_q_may_come_in_any_precision() -> None:
    """Numpy does not know bfloat16."""
    for dtype in (torch.bfloat16, torch.float32):

        def q(tokens: Sequence[int], dtype: torch.dtype = dtype) -> torch.Tensor:
            return torch.full((len(tokens), VOCAB), 1 / VOCAB, dtype=dtype)

        drafter = ScriptedDrafter(noise, q=q)
        ratio = EngineSettings(rule=RuleKind.RATIO)
        engine = toy_engine(model(), drafter, length=2, settings=ratio)
        done = finish(engine, request("r", [1], **SAMPLED))["r"]
        assert done.counters.drafted > 0
        assert done.counters.num_drafter_failures == 0


def test_no_token_from_an_earlier_round_is_ever_scored() -> None:
    """E15: batch 4, k 7, 5, 0, 2, 7: what is scored is what was proposed in this round."""
    ks = [7, 5, 0, 2, 7]
    records: list[RoundRecord] = []
    engine = toy_engine(
        model(), oracle(), length=lambda round_, row: ks[round_ % 5], trace=records.append
    )
    finish(engine, *(request(f"r{i}", [i, 1, i], max_tokens=40) for i in range(4)))
    assert {len(record.drafted) for record in records} >= {0, 2, 5, 7}
    for record in records:
        assert len(record.drafted) <= ks[(record.round - 1) % 5]


def test_rows_are_strangers() -> None:
    """E19: batch 4, prompts of different length, different accepted counts in each round."""
    asks = [
        request(f"r{i}", [(i * j) % 7 for j in range(1, 3 + 5 * i)], **GREEDY) for i in range(4)
    ]
    together = finish(toy_engine(model(), oracle(), length=lambda r, row: (r + 2 * row) % 6), *asks)
    for ask in asks:
        alone = finish(toy_engine(model(), oracle(), length=3), ask)
        assert same(alone[ask.request_id], together[ask.request_id])


def test_each_row_has_its_own_draft_length() -> None:
    """E18: a hostile row, a friendly row, and one that asks for no speculation."""
    engine = toy_engine(model(), oracle(11), length=lambda round_, row: {1: 1, 2: 6}.get(row, 6))
    done = finish(
        engine,
        request("hostile", [1], **GREEDY),
        request("friendly", [2], **GREEDY),
        request("plain", [3], **GREEDY, speculation=Speculation(enabled=False)),
    )
    assert done["plain"].counters.drafted == 0
    assert done["plain"].counters.num_rounds == 30
    assert done["friendly"].counters.num_rounds < done["hostile"].counters.num_rounds < 30


def test_a_request_can_cap_its_draft_length() -> None:
    ask = request("r", [2], **GREEDY, speculation=Speculation(max_draft_length=2))
    done = finish(toy_engine(model(), oracle(11), length=9), ask)["r"]
    assert done.counters.drafted <= 2 * done.counters.num_draft_rounds


def test_the_per_position_ratio_divides_by_attempts_at_that_position() -> None:
    """E21, E22: k varies between 1 and 7; no ratio is above 1 and drafted is not over-counted."""
    engine = toy_engine(model(), oracle(), length=lambda round_, row: 1 + round_ % 7)
    counters = finish(engine, request("r", [1, 5], max_tokens=200))["r"].counters
    assert 0 <= counters.accepted <= counters.evaluated <= counters.drafted
    assert sum(counters.position_attempts) == counters.evaluated
    assert sum(counters.position_accepts) == counters.accepted
    assert all(
        accepts <= attempts
        for accepts, attempts in zip(
            counters.position_accepts, counters.position_attempts, strict=False
        )
    )
    assert counters.position_attempts == sorted(counters.position_attempts, reverse=True)


class Dense:
    """A drafter with a q of its own under rule ratio: draws through the row's sampler."""

    name = "dense"

    def __init__(self) -> None:
        self.inner = ScriptedDrafter(noise)

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> object:
        blocks = []
        for row, length in zip(rows, lengths, strict=True):
            tokens: list[int] = []
            qs = []
            for _ in range(length):
                logits = torch.tensor(hashed((*row.tokens, *tokens))) * 0.7
                token, q = row.sampler(logits, tokens)
                tokens.append(token)
                qs.append(q)
            q_block = None if qs[0] is None else torch.stack([q for q in qs if q is not None])
            blocks.append(Proposal(tokens, q_block))
        return Drafted(blocks)


def test_the_ratio_rule_in_the_engine_keeps_the_law_of_the_first_tokens() -> None:
    """Many seeds against the exact law; a wrong p, q or position would be far outside."""
    settings_ = EngineSettings(rule=RuleKind.RATIO, max_rows=64)
    num, counts = 3000, np.zeros((VOCAB, VOCAB))
    engine = toy_engine(model(num_blocks=4096), Dense(), length=2, settings=settings_)  # type: ignore[arg-type]
    asks = [request(f"r{i}", [1, 2], max_tokens=3, temperature=1.0, seed=i) for i in range(num)]
    for done in finish(engine, *asks).values():
        counts[done.token_ids[1], done.token_ids[2]] += len(done.token_ids) == 3
    first = _softmax(hashed((1, 2)))
    law = np.zeros((VOCAB, VOCAB))
    for a, pa in enumerate(first):
        second = _softmax(hashed((1, 2, a)))
        for b, pb in enumerate(second):
            law[b] += pa * pb * _softmax(hashed((1, 2, a, b)))
    assert np.abs(counts / num - law).max() < 0.03


def _softmax(logits: Sequence[float]) -> np.ndarray:
    weights = np.exp(np.array(logits))
    return weights / weights.sum()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=20),
    st.integers(0, 8),
    st.integers(0, 2**31),
    st.sampled_from([0.0, 0.7, 1.5]),
)
def test_any_prompt_length_and_seed(
    prompt: list[int], k: int, seed: int, temperature: float
) -> None:
    ask = request("r", prompt, max_tokens=15, temperature=temperature, seed=seed)
    plain = finish(toy_engine(model()), ask)["r"]
    assert same(plain, finish(toy_engine(model(), oracle(8), length=k), ask)["r"])
