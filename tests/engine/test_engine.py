"""Stories of requests through the engine: joining, waiting, failing, being cancelled, ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from outrider.config.schema import EngineSettings
from outrider.core import (
    FinishReason,
    Mode,
    Request,
    SamplingParams,
    Speculation,
    Update,
    UserError,
)
from outrider.engine.engine import Engine
from outrider.engine.round_record import RoundRecord
from outrider.testing import (
    LetterTokenizer,
    ManualClock,
    ScriptedDrafter,
    ScriptedModel,
    finish,
    toy_engine,
)

VOCAB = 6
EOS = VOCAB - 1
TABLE = np.random.default_rng(9).normal(size=(499, VOCAB))


def hashed(prefix: tuple[int, ...]) -> list[float]:
    key = 0
    for token in prefix:
        key = (key * 17 + token + 1) % 499
    return [*TABLE[key][:EOS], -9.0]


def greedy_continuation(tokens: Sequence[int], length: int) -> list[int]:
    prefix = tuple(tokens)
    for _ in range(length):
        prefix = (*prefix, int(np.argmax(hashed(prefix))))
    return list(prefix[len(tokens) :])


def model(logits=hashed, **shape) -> ScriptedModel:  # type: ignore[no-untyped-def]
    return ScriptedModel(logits, vocab_size=VOCAB, **shape)


def spelled(text: str) -> Callable[[tuple[int, ...]], list[float]]:
    """Logits that say `text` behind a prompt of one token, then EOS."""
    ids = [*("ABCDE".index(letter) for letter in text), EOS]
    return lambda prefix: [5.0 * (token == ids[len(prefix) - 1]) for token in range(VOCAB)]


def ask(
    name: str,
    prompt: Sequence[int],
    *,
    stream: bool = False,
    speculation: Speculation | None = None,
    **params: object,
) -> Request:
    return Request(
        request_id=name,
        prompt_ids=tuple(prompt),
        params=SamplingParams(**{"max_tokens": 12, **params}),  # type: ignore[arg-type]
        stream=stream,
        speculation=speculation or Speculation(),
    )


def updates_of(engine: Engine, request: Request) -> list[Update]:
    engine.submit(request)
    out = []
    while engine.has_work:
        out += engine.step()
    return out


def test_kv_length_is_committed_minus_one_after_every_round() -> None:
    """E04: rejections at the first, a middle and the last candidate; the record tells."""
    records: list[RoundRecord] = []

    def script(tokens: Sequence[int], k: int) -> list[int]:
        right = greedy_continuation(tokens, k)
        wrong = sum(tokens) % (k + 1)
        return [(t + 1) % EOS if i == wrong else t for i, t in enumerate(right)]

    for k in (1, 3):
        engine = toy_engine(model(), ScriptedDrafter(script), length=k, trace=records.append)
        finish(engine, ask("r", [1, 2], max_tokens=40))
    assert {record.accepted for record in records} == {0, 1, 2, 3}
    for record in records:
        assert record.kv_length_after == record.length_after - 1
        grown = record.length_after - record.length_before
        assert grown <= record.accepted + 1
        if record.stop_reason is None:
            assert grown == record.accepted + 1


def test_nan_in_the_target_fails_that_request_only() -> None:
    """E06: its neighbours finish, and nothing out of the vocabulary comes out."""

    def logits(prefix: tuple[int, ...]) -> list[float]:
        poisoned = prefix[0] == 4 and len(prefix) == 6
        return [float("nan")] * VOCAB if poisoned else hashed(prefix)

    done = finish(toy_engine(model(logits)), ask("bad", [4, 1, 1]), ask("good", [3, 1, 1]))
    assert done["bad"].finish_reason is FinishReason.ERROR
    assert "NaN" in (done["bad"].error or "")
    assert len(done["bad"].token_ids) == 3
    assert done["good"].finish_reason is FinishReason.LENGTH
    assert all(0 <= token < VOCAB for token in done["good"].token_ids)


@pytest.mark.parametrize(
    "script",
    [
        lambda tokens, k: 1 / 0,
        lambda tokens, k: [99] * k,
        lambda tokens, k: [0] * (k + 3),
        lambda tokens, k: None,
    ],
    ids=["raises", "out of vocabulary", "too many", "nothing"],
)
def test_a_failing_drafter_costs_speed_only(script) -> None:  # type: ignore[no-untyped-def]
    """E06: the round becomes plain, nothing is lost, and the failure is counted."""
    plain = finish(toy_engine(model()), ask("r", [1, 2]))["r"]
    done = finish(toy_engine(model(), ScriptedDrafter(script), length=3), ask("r", [1, 2]))["r"]
    assert done.token_ids == plain.token_ids
    assert done.counters.num_drafter_failures > 0
    assert done.counters.drafted == 0


def test_a_stop_string_cuts_ids_logprobs_and_text_together() -> None:
    """E12: the stop "CACA" is completed in the middle of an accepted run; streaming and not."""
    text = "ABACACADAB"
    ids = ["ABCDE".index(letter) for letter in text]

    def logits(prefix: tuple[int, ...]) -> list[float]:
        wanted = ids[len(prefix) - 1] if len(prefix) <= len(ids) else EOS
        return [5.0 * (token == wanted) for token in range(VOCAB)]

    drafter = ScriptedDrafter(lambda tokens, k: ids[len(tokens) - 1 :][:k])
    for length in (0, 2, 9):
        for stream in (False, True):
            request = ask("r", [0], max_tokens=10, stop=("CACA",), top_logprobs=0, stream=stream)
            updates = updates_of(toy_engine(model(logits), drafter, length=length), request)
            done = updates[-1].completion
            assert done is not None
            assert done.text == "ABA"
            assert done.token_ids == tuple(ids[:7])
            assert [entry.token_id for entry in done.logprobs or ()] == ids[:7]
            assert (done.finish_reason, done.stop_reason) == (FinishReason.STOP, "CACA")
            assert "".join(update.text for update in updates) == "ABA"
            assert sum((update.token_ids for update in updates), ()) == done.token_ids


def test_a_stop_string_that_came_before_min_tokens_is_not_found_later() -> None:
    """What was sent is not taken back, though another, longer stop makes the search look back."""
    params = {"max_tokens": 8, "min_tokens": 4, "stop": ("B", "CCCC"), "stream": True}
    for length in (0, 3):
        updates = updates_of(
            toy_engine(
                model(spelled("AABDDDDD")), ScriptedDrafter(lambda t, k: [3] * k), length=length
            ),
            ask("r", [0], **params),  # type: ignore[arg-type]
        )
        done = updates[-1].completion
        assert done is not None
        assert done.text == "AABDDDDD"
        assert "".join(update.text for update in updates) == done.text


def test_a_stop_is_seen_in_a_token_whose_last_character_is_unfinished() -> None:
    """The stop's own characters are whole: the row ends here, not when the others come."""

    class HalfCharacters(LetterTokenizer):
        def decode(self, token_ids: list[int]) -> str:
            return b"".join(
                [b"a", b"b\xe2", b"\x82", b"\xac", b"c", b""][i] for i in token_ids
            ).decode(errors="replace")

    engine = toy_engine(model(spelled("ABCDE")), tokenizer=HalfCharacters("ABCDE"))
    done = finish(engine, ask("r", [0], max_tokens=5, stop=("ab",)))["r"]
    assert (done.text, done.token_ids, done.stop_reason) == ("", (0, 1), "ab")


def test_an_eos_the_model_cannot_say_is_ignored() -> None:
    """A tokenizer may name ids behind the model's last."""

    class Longer(LetterTokenizer):
        eos_ids = frozenset({EOS, 77})  # type: ignore[assignment]

    engine = toy_engine(model(), tokenizer=Longer("ABCDE"))
    done = finish(engine, ask("r", [1], min_tokens=3, max_tokens=5))["r"]
    assert len(done.token_ids) == 5


def test_text_is_never_sent_while_it_may_begin_a_stop() -> None:
    ids = [0, 1, 2, 0, 3, 4]  # ABCADE

    def logits(prefix: tuple[int, ...]) -> list[float]:
        return [5.0 * (token == ids[len(prefix) - 1]) for token in range(VOCAB)]

    updates = updates_of(
        toy_engine(model(logits)), ask("r", [0], max_tokens=6, stop=("BCE",), stream=True)
    )
    assert [update.text for update in updates] == ["A", "", "", "BCA", "D", "E"]


def test_a_stop_id_ends_the_row_and_stays_out_of_the_text() -> None:
    full = finish(toy_engine(model()), ask("r", [1, 2]))["r"]
    stop = full.token_ids[4]
    first = full.token_ids.index(stop)
    done = finish(toy_engine(model()), ask("r", [1, 2], stop_token_ids=(stop,)))["r"]
    assert done.token_ids == full.token_ids[: first + 1]
    assert done.text == full.text[:first]
    assert done.stop_reason == stop


def test_ignore_eos_goes_on_to_max_tokens() -> None:
    eager = model(lambda prefix: [0.0] * EOS + [9.0])
    done = finish(toy_engine(eager), ask("r", [0], ignore_eos=True, max_tokens=4))["r"]
    assert done.token_ids == (EOS,) * 4
    assert done.finish_reason is FinishReason.LENGTH


def test_preemption_changes_nothing_but_the_time() -> None:
    """KV for two rows of three: the youngest waits, comes back, and gives the same tokens."""
    requests = [
        ask(f"r{i}", [i, 1, 2, 3], max_tokens=20, temperature=1.0, seed=i) for i in range(3)
    ]
    roomy = finish(toy_engine(model()), *requests)
    tight = finish(toy_engine(model(num_blocks=13), length=0), *requests)
    drafter = ScriptedDrafter(greedy_continuation)
    drafting = finish(toy_engine(model(num_blocks=13), drafter, length=4), *requests)
    assert sum(done.counters.num_preemptions for done in tight.values()) > 0
    for name, done in roomy.items():
        assert tight[name].token_ids == done.token_ids
        assert drafting[name].token_ids == done.token_ids


def test_a_draft_never_preempts_anyone() -> None:
    drafter = ScriptedDrafter(greedy_continuation)
    requests = [ask(f"r{i}", [i, 1], max_tokens=6) for i in range(4)]
    done = finish(toy_engine(model(num_blocks=8), drafter, length=16), *requests)
    assert sum(d.counters.num_preemptions for d in done.values()) == 0


def test_a_request_that_can_never_fit_is_refused_at_once() -> None:
    engine = toy_engine(model(num_blocks=4, context_length=64))
    with pytest.raises(UserError, match=r"max_tokens: .* 22 tokens .* holds 16"):
        engine.submit(ask("r", [1, 2], max_tokens=20))
    with pytest.raises(UserError, match=r"prompt: 64 tokens do not fit the context of 64"):
        engine.submit(ask("r", [1] * 64))
    with pytest.raises(UserError, match=r"prompt: token id 77 is outside"):
        engine.submit(ask("r", [77]))
    with pytest.raises(UserError, match=r"prompt: it holds no tokens"):
        engine.submit(ask("r", []))
    assert not engine.has_work


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("top_p", 0.0),
        ("top_k", -1),
        ("min_p", 1.5),
        ("max_tokens", 0),
        ("min_tokens", 99),
        ("presence_penalty", 3.0),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", 5e-324),
        ("repetition_penalty", 1e300),
        ("top_logprobs", 21),
        ("stop", ("",)),
        ("stop_token_ids", (VOCAB,)),
        ("logit_bias", {-1: 1.0}),
        ("logit_bias", {1: float("nan")}),
        ("logit_bias", {1: float("inf")}),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(UserError, match=rf"^{field}: "):
        toy_engine(model()).submit(ask("r", [1], **{field: value}))


def test_min_tokens_is_refused_where_nothing_but_stops_is_left_to_say() -> None:
    """Else every token would be forbidden; without EOS among them one is left."""
    engine = toy_engine(model())
    stops = tuple(range(EOS))
    with pytest.raises(UserError, match=r"min_tokens: .* whole vocabulary"):
        engine.submit(ask("r", [1], min_tokens=2, stop_token_ids=stops))
    done = finish(engine, ask("r", [1], min_tokens=2, stop_token_ids=stops, ignore_eos=True))["r"]
    assert done.token_ids[:2] == (EOS, EOS)
    assert len(finish(engine, ask("r", [1], stop_token_ids=stops))["r"].token_ids) == 1


def test_a_request_id_in_flight_is_refused() -> None:
    engine = toy_engine(model())
    engine.submit(ask("r", [1]))
    with pytest.raises(UserError, match="'r' is already in flight"):
        engine.submit(ask("r", [2]))


def test_equal_beginnings_share_blocks_and_give_the_same_tokens() -> None:
    prompt = [1, 2, 3, 4] * 5
    engine = toy_engine(model())
    first = finish(engine, ask("a", prompt))["a"]
    second = finish(engine, ask("b", prompt))["b"]
    assert second.token_ids == first.token_ids
    assert first.counters.num_cached_tokens == 0
    assert second.counters.num_cached_tokens == 16  # of 20: the last token is always computed
    engine.reset_prefix_cache()
    assert finish(engine, ask("c", prompt))["c"].counters.num_cached_tokens == 0


def test_the_kv_of_a_failed_row_is_never_shared() -> None:
    """Else one passing fault would fail every later request with the same beginning."""
    is_ill = False

    def logits(prefix: tuple[int, ...]) -> list[float]:
        return [float("nan")] * VOCAB if is_ill else hashed(prefix)

    prompt = [1, 2, 3, 4] * 5
    engine = toy_engine(model(logits))
    engine.submit(ask("before", prompt))
    engine.step()
    is_ill = True
    assert finish(engine, ask("ill", prompt))["ill"].error is not None
    is_ill = False
    after = finish(engine, ask("after", prompt))["after"]
    assert after.counters.num_cached_tokens == 0
    assert after.finish_reason is FinishReason.LENGTH


def test_cached_tokens_are_prompt_tokens_however_often_a_row_comes_back() -> None:
    requests = [ask(f"r{i}", [i, 1, 2, 3], max_tokens=20) for i in range(3)]
    done = finish(toy_engine(model(num_blocks=13)), *requests)
    assert sum(d.counters.num_preemptions for d in done.values()) > 0
    assert [d.counters.num_cached_tokens for d in done.values()] == [0, 0, 0]


def test_prefix_sharing_can_be_switched_off() -> None:
    engine = toy_engine(model(), settings=EngineSettings(prefix_caching=False))
    finish(engine, ask("a", [1, 2, 3, 4] * 5))
    again = finish(engine, ask("b", [1, 2, 3, 4] * 5))["b"]
    assert again.counters.num_cached_tokens == 0


def test_a_long_prompt_is_computed_in_chunks_beside_decoding_rows() -> None:
    records: list[RoundRecord] = []
    engine = toy_engine(model(), settings=EngineSettings(max_round_tokens=8), trace=records.append)
    done = finish(engine, ask("short", [1]), ask("long", [2, 3] * 20))
    assert (
        done["long"].token_ids
        == finish(toy_engine(model()), ask("long", [2, 3] * 20))["long"].token_ids
    )
    first_of_long = next(r.round for r in records if r.request_id == "long")
    short_rounds = [r.round for r in records if r.request_id == "short"]
    assert short_rounds[:5] == [1, 2, 3, 4, 5], "the decoding row waits for no prompt"
    assert first_of_long >= 40 // 8


def test_a_cancelled_request_frees_its_blocks_at_once() -> None:
    engine = toy_engine(model())
    engine.submit(ask("gone", [1, 2, 3]))
    engine.submit(ask("stays", [2, 2, 3]))
    engine.step()
    engine.cancel("gone")
    engine.check_integrity()
    done = {u.request_id: u.completion for u in engine.step() if u.completion}
    assert done["gone"].finish_reason is FinishReason.ABORT
    while engine.has_work:
        engine.step()
    assert engine.stats()["num_free_blocks"] == engine.stats()["num_blocks"]
    engine.cancel("never seen")


def test_two_hundred_cancelled_streams_leave_nothing_and_cost_nothing() -> None:
    """P07, P09: at most two rounds on there is no row, no block and no work but the neighbour's."""
    beginning = [1, 2, 3, 4] * 3  # three blocks that all share
    target, alone = model(num_blocks=400), model(num_blocks=400)
    kept = ask("kept", [2, 2], max_tokens=30)
    wanted = finish(toy_engine(alone), kept)["kept"].token_ids
    engine = toy_engine(target, ScriptedDrafter(greedy_continuation), length=3)
    engine.submit(kept)
    for i in range(200):
        engine.submit(ask(f"r{i}", [*beginning, i % EOS], stream=True, max_tokens=200))
    for _ in range(4):
        engine.step()
    assert engine.load().num_running == EngineSettings().max_rows
    for i in range(200):
        engine.cancel(f"r{i}")
    engine.check_integrity()
    computed = target.num_tokens
    ended = {update.request_id for update in engine.step() if update.completion}
    assert len(ended - {"kept"}) == 200
    assert engine.load().num_running <= 1
    assert target.num_tokens - computed <= 1 + 3  # the neighbour's own, with its draft
    assert finish(engine, ask("next", [2, 2], max_tokens=30))["next"].token_ids == wanted
    load = engine.load()
    assert load.is_idle
    assert (load.num_free_blocks, load.queued_tokens) == (load.num_blocks, 0)


def test_queued_tokens_are_what_the_rows_have_left() -> None:
    settings = EngineSettings(max_rows=1, max_round_tokens=4)
    engine = toy_engine(model(context_length=32), settings=settings)
    engine.submit(ask("runs", [1] * 10, max_tokens=5, ignore_eos=True))
    engine.submit(ask("waits", [2] * 10, max_tokens=400))  # the context ends it at 32
    seen = []
    for _ in range(5):
        seen.append(engine.load().queued_tokens - 32)
        engine.step()
    assert seen == [15, 11, 7, 5, 4]  # three chunks of prompt, then a token a round
    engine.cancel("waits")
    assert engine.load().queued_tokens == 3


def test_more_requests_than_rows_wait_their_turn() -> None:
    engine = toy_engine(model(), settings=EngineSettings(max_rows=2))
    for i in range(5):
        engine.submit(ask(f"r{i}", [i]))
    engine.step()
    assert (engine.stats()["num_running"], engine.stats()["num_waiting"]) == (2, 3)
    assert len(finish(engine)) == 5


def test_a_drafter_held_at_zero_costs_nothing() -> None:
    """E16: the same forwards over the same tokens as without one, and it is never asked."""
    drafter = ScriptedDrafter(greedy_continuation)
    with_one, without = model(), model()
    held = ask("r", [1, 2], speculation=Speculation(max_draft_length=0))
    finish(toy_engine(with_one, drafter, length=5), held)
    finish(toy_engine(without), ask("r", [1, 2]))
    assert drafter.num_offers == 0
    assert (with_one.num_forwards, with_one.num_tokens) == (
        without.num_forwards,
        without.num_tokens,
    )


def test_plain_mode_costs_what_an_engine_without_a_drafter_costs() -> None:
    drafter = ScriptedDrafter(greedy_continuation)
    held, without = model(), model()
    engine = toy_engine(held, drafter, length=5)
    engine.set_control(Mode.PLAIN)
    done = finish(engine, ask("r", [1, 2]))["r"]
    assert done.token_ids == finish(toy_engine(without), ask("r", [1, 2]))["r"].token_ids
    assert drafter.num_offers == 0
    assert (held.num_forwards, held.num_tokens) == (without.num_forwards, without.num_tokens)


def test_times_are_told_in_seconds_of_the_clock() -> None:
    clock = ManualClock()
    slow = model(clock=clock, cost=lambda rows, tokens: 0.5)
    done = finish(toy_engine(slow, clock=clock), ask("r", [1], max_tokens=4))["r"]
    assert done.first_token_s == pytest.approx(0.5)
    assert done.total_s == pytest.approx(2.0)
    assert done.counters.active_s == pytest.approx(2.0)


def test_a_padded_vocabulary_never_leaks() -> None:
    wide = ScriptedModel(lambda prefix: [0.0, 1.0, 0.0, 0.0, 9.0, 9.0], vocab_size=6)
    engine = toy_engine(wide, tokenizer=LetterTokenizer("ABC"))
    assert finish(engine, ask("r", [0], max_tokens=5))["r"].token_ids == (1,) * 5


def test_tracing_leaves_the_evidence_of_all_five_stages() -> None:
    records: list[RoundRecord] = []
    drafter = ScriptedDrafter(greedy_continuation)
    engine = toy_engine(model(), drafter, length=2, trace=records.append)
    finish(engine, ask("r", [1, 2], max_tokens=7))
    drafting = [record for record in records if record.drafted]
    assert drafting
    for record in drafting:
        assert record.drafter == "scripted"
        assert record.q == (1.0,) * len(record.drafted)
        assert all(0.0 < p <= 1.0 for p in record.p)
        assert record.evaluated == len(record.drafted)
        assert not record.resampled
    assert records[-1].stop_reason == "length"
