"""A prompt's replica: the same while it may be, another where that one is too busy."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from outrider.openai.call import Call, Endpoint
from outrider.serving.affinity import favourite, prefix_key

IDLE = {f"replica-{i}": 0 for i in range(5)}
KEYS = [f"prompt {i}" for i in range(1000)]

loads_of = st.dictionaries(st.sampled_from(sorted(IDLE)), st.integers(0, 20), min_size=1)


def chat(*contents: str) -> Call:
    messages = tuple({"role": "user", "content": each} for each in contents)
    return Call(call_id="c", endpoint=Endpoint.CHAT, messages=messages)


def test_every_replica_has_a_fair_share_of_the_prompts() -> None:
    shares = [sum(favourite(key, IDLE, 0) == name for key in KEYS) for name in IDLE]
    assert sum(shares) == len(KEYS)
    assert min(shares) > 140
    assert max(shares) < 260  # 200 each, by chance


def test_a_replica_that_goes_moves_its_own_prompts_only() -> None:
    left = {name: 0 for name in IDLE if name != "replica-2"}
    moved = {key for key in KEYS if favourite(key, IDLE, 0) != favourite(key, left, 0)}
    assert moved == {key for key in KEYS if favourite(key, IDLE, 0) == "replica-2"}


@given(st.text(max_size=20), loads_of, st.integers(0, 5))
def test_no_favourite_is_further_ahead_than_the_slack(
    key: str, loads: dict[str, int], slack: int
) -> None:
    chosen = favourite(key, loads, slack)
    own = favourite(key, dict.fromkeys(loads, 0), slack)
    assert own is not None
    if loads[own] - min(loads.values()) <= slack:
        assert chosen == own
    else:
        assert chosen is None


def test_without_a_replica_there_is_no_favourite() -> None:
    assert favourite("key", {}, 4) is None


def test_a_key_is_the_beginning_of_the_conversation() -> None:
    system = "You answer briefly and in rhyme. " * 4
    assert prefix_key(chat(system, "one"), 16) == prefix_key(chat(system, "two"), 16)
    assert prefix_key(chat("one", system), 16) != prefix_key(chat("two", system), 16)


def test_token_ids_and_text_have_keys_too() -> None:
    ids = Call(call_id="c", endpoint=Endpoint.TEXT, prompts=(tuple(range(100)),))
    assert prefix_key(ids, 3) == "0 1 2"
    text = Call(call_id="c", endpoint=Endpoint.TEXT, prompts=("abcdefgh" * 9, "other"))
    assert prefix_key(text, 2) == "abcdefgh"


def test_half_a_character_has_a_replica_as_well() -> None:
    assert favourite(prefix_key(chat("\ud800"), 4), IDLE, 0) in IDLE
