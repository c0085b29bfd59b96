"""Features are those of the target at the right tokens, and are computed once."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import pytest
import torch

from outrider.core import Fault, UserError
from outrider.distill.corpus import Example
from outrider.distill.feature_cache import SHARD_ROWS, FeatureCache, cache_key
from outrider.distill.features import Features, batches, chosen_layers, computed
from outrider.testing import ScriptedFeatureModel

VOCAB = 40


def score(prefix: tuple[int, ...]) -> Sequence[float]:
    """Depends on the whole prefix, so that a row mixed with another shows."""
    return [math.sin(1.0 + token * (1 + len(prefix)) + sum(prefix)) for token in range(VOCAB)]


def feature(prefix: tuple[int, ...]) -> Sequence[float]:
    return [float(prefix[-1]), float(len(prefix) - 1), float(sum(prefix) % 7)]


def model() -> ScriptedFeatureModel:
    return ScriptedFeatureModel(
        score, feature=feature, feature_size=3, vocab_size=VOCAB, num_blocks=16
    )


def example(number: int, num_prompt: int = 4, num_answer: int = 5) -> Example:
    tokens = [(number * 7 + place * 3) % VOCAB for place in range(num_prompt + num_answer)]
    return Example(f"e{number}", "", array("i", tokens), num_prompt)


def compute(rows: Iterable[Example]) -> list[Features]:
    return list(computed(model(), rows, most_tokens=32, dtype=torch.float32))


def test_each_position_has_its_feature_and_what_the_target_says_two_tokens_on() -> None:
    rows = [example(number, 1 + number % 5, 2 + number % 7) for number in range(20)]
    for row, found in zip(rows, compute(rows), strict=True):
        tokens = tuple(row.tokens)
        num, first = len(tokens) - 2, row.num_prompt - 1
        assert found.features.tolist() == [list(feature(tokens[: at + 1])) for at in range(num)]
        assert found.top_ids.shape == found.top_logprobs.shape == (num - first, 32)
        for at in range(first, num):
            said = torch.tensor(score(tokens[: at + 2])).log_softmax(-1)
            top, ids = said.topk(32)
            assert found.top_ids[at - first].tolist() == ids.tolist()
            assert torch.allclose(found.top_logprobs[at - first].float(), top, atol=2e-3)


def test_rows_of_a_forward_fit_the_blocks_and_a_long_one_goes_alone() -> None:
    rows = [example(0, 4, 5), example(1, 20, 20), example(2, 4, 4), example(3, 4, 4)]
    found = list(batches(rows, 5, 4))
    assert [[row.name for row in each] for each in found] == [["e0"], ["e1"], ["e2", "e3"]]


def test_a_target_that_breaks_is_a_fault() -> None:
    broken = ScriptedFeatureModel(
        lambda prefix: [math.nan] * VOCAB, feature=feature, feature_size=3, vocab_size=VOCAB
    )
    with pytest.raises(Fault, match="not finite"):
        list(computed(broken, [example(0)], most_tokens=32, dtype=torch.float32))


@pytest.mark.parametrize(
    ("num_layers", "wanted", "layers"),
    [(30, (), (2, 15, 29)), (2, (), (0, 1)), (1, (), (0,)), (30, (3, 7), (3, 7))],
)
def test_layers_are_a_low_a_middle_and_the_last(
    num_layers: int, wanted: tuple[int, ...], layers: tuple[int, ...]
) -> None:
    assert chosen_layers(wanted, num_layers) == layers


def cache(folder: Path, rows: Sequence[Example], dtype: str = "float32") -> FeatureCache:
    return FeatureCache(folder, {"corpus": "c"}, rows, 3, dtype)


def test_a_killed_run_goes_on_with_the_next_shard(tmp_path: Path) -> None:
    rows = [example(number) for number in range(2 * SHARD_ROWS + 5)]
    asked: list[str] = []

    def breaks(some: Sequence[Example]) -> list[Features]:
        if len(asked) >= SHARD_ROWS:
            raise KeyboardInterrupt
        asked.extend(each.name for each in some)
        return compute(some)

    with pytest.raises(KeyboardInterrupt):
        cache(tmp_path, rows).fill(breaks, lambda: None)
    (tmp_path / "shard-00001.arrow.tmp").write_bytes(b"half a shard")
    with pytest.raises(UserError, match="shard-00001"):
        cache(tmp_path, rows).open()
    assert cache(tmp_path, rows).missing == [1, 2]
    again: list[str] = []

    def counts(some: Sequence[Example]) -> list[Features]:
        again.extend(each.name for each in some)
        return compute(some)

    told: list[int] = []
    left = partial(cache, tmp_path, rows)
    cache(tmp_path, rows).fill(counts, lambda: told.append(left().num_missing_tokens))
    assert again == [row.name for row in rows[SHARD_ROWS:]]
    assert told == [5 * len(rows[0].tokens), 0]
    reader = cache(tmp_path, rows).open()
    for number in (0, SHARD_ROWS - 1, SHARD_ROWS, 2 * SHARD_ROWS + 4):
        expected, found = compute([rows[number]])[0], reader[number]
        assert torch.equal(found.features, expected.features)
        assert torch.equal(found.top_ids, expected.top_ids)
        assert torch.equal(found.top_logprobs, expected.top_logprobs)


def test_features_may_be_kept_short(tmp_path: Path) -> None:
    rows = [example(0)]
    short = cache(tmp_path, rows, "bfloat16")
    short.fill(
        lambda some: computed(model(), some, most_tokens=32, dtype=torch.bfloat16),
        lambda: None,
    )
    found = short.open()[0].features
    assert found.dtype is torch.bfloat16
    assert torch.equal(found, compute(rows)[0].features.bfloat16())


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    rows = [example(0)]
    cache(tmp_path, rows).fill(compute, lambda: None)
    (tmp_path / "shard-00000.arrow").write_bytes(b"no Arrow")
    with pytest.raises(UserError, match=r"shard-00000\.arrow can't be read: remove it"):
        cache(tmp_path, rows).open()


def test_other_features_have_another_key() -> None:
    one = cache_key({"corpus": "a", "layers": [1, 2]})
    assert one == cache_key({"layers": [1, 2], "corpus": "a"})
    assert one != cache_key({"corpus": "a", "layers": [1, 3]})
