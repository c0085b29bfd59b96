"""From a call to the engine's requests: prompts, seeds, mode."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.core import Mode, SamplingParams, Speculation, UserError
from outrider.openai.call import Call, Endpoint
from outrider.serving.choices import SEED_BITS, choice_seed, encode, make_requests, mode_of
from outrider.serving.messages import Control
from outrider.testing import ByteTokenizer


def text(*prompts: str | tuple[int, ...], n: int = 1, seed: int | None = None) -> Call:
    return Call(call_id="cmpl-1", endpoint=Endpoint.TEXT, prompts=prompts, n=n, seed=seed)


def requests_of(call: Call, drawn_seed: int = 5) -> list[tuple[str, tuple[int, ...], int]]:
    made = make_requests(call, encode(call, ByteTokenizer()), drawn_seed)
    return [(each.request_id, each.prompt_ids, each.params.seed) for each in made]


def test_each_prompt_has_n_choices_and_each_choice_a_name_of_its_own() -> None:
    made = requests_of(text("a", (98, 99), n=2))
    assert [(name, ids) for name, ids, _ in made] == [
        ("cmpl-1-0", (97,)),
        ("cmpl-1-1", (97,)),
        ("cmpl-1-2", (98, 99)),
        ("cmpl-1-3", (98, 99)),
    ]
    assert len({seed for _, _, seed in made}) == 4


def test_a_seed_given_is_the_first_choices_own_and_a_drawn_one_is_not_used() -> None:
    given_ = requests_of(text("a", n=3, seed=11), drawn_seed=5)
    assert given_[0][2] == 11
    assert given_ == requests_of(text("a", n=3, seed=11), drawn_seed=6)
    assert requests_of(text("a"), drawn_seed=5)[0][2] == 5


@given(st.integers(0, 2**SEED_BITS - 1), st.integers(1, 15))
def test_a_choices_seed_is_one_that_a_call_may_have(seed: int, index: int) -> None:
    made = choice_seed(seed, index)
    assert 0 <= made < 2**SEED_BITS
    assert made != seed


def test_the_rest_of_a_call_reaches_every_request() -> None:
    call = Call(
        call_id="c",
        endpoint=Endpoint.CHAT,
        messages=({"role": "user", "content": "hi"},),
        params=SamplingParams(temperature=0.5, max_tokens=3),
        speculation=Speculation(max_draft_length=2),
        stream=True,
        kind="chat",
    )
    (made,) = make_requests(call, encode(call, ByteTokenizer()), 5)
    assert bytes(made.prompt_ids) == b"<user>hi"
    assert (made.params.temperature, made.params.max_tokens) == (0.5, 3)
    assert made.speculation == Speculation(max_draft_length=2)
    assert (made.stream, made.kind) == (True, "chat")


def test_half_a_character_is_the_callers_mistake() -> None:
    with pytest.raises(UserError, match=r"^prompt: "):
        encode(text("a\ud800"), ByteTokenizer())


@pytest.mark.parametrize(
    ("asked", "control", "mode"),
    [
        (Speculation(), Control(), Mode.SPECULATIVE),
        (Speculation(enabled=False), Control(), Mode.PLAIN),
        (Speculation(max_draft_length=0), Control(), Mode.PLAIN),
        (Speculation(max_draft_length=4), Control(max_draft_length=0), Mode.PLAIN),
        (Speculation(), Control(mode=Mode.PLAIN), Mode.PLAIN),
        (Speculation(max_draft_length=4), Control(max_draft_length=2), Mode.SPECULATIVE),
    ],
)
def test_a_call_is_plain_where_it_or_its_release_says_so(
    asked: Speculation, control: Control, mode: Mode
) -> None:
    call = Call(call_id="c", endpoint=Endpoint.TEXT, prompts=("a",), speculation=asked)
    assert mode_of(call, control) is mode
