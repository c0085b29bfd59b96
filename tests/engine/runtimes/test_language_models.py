"""Both runtimes give transformers' own logits, however a text is cut, mixed and taken back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from outrider.config.schema import Dtype
from outrider.engine.language_model import LanguageModel, RowSlice
from outrider.engine.runtimes.openvino_cache import converted
from outrider.engine.runtimes.openvino_runtime import OpenVinoModel
from outrider.engine.runtimes.torch_runtime import TorchModel

TORCH = ("llama-gqa", "llama-tied", "qwen2", "qwen3", "mistral", "gpt-neox", "gpt2", "granite")
OPENVINO = ("llama-gqa", "qwen3", "gpt-neox", "gpt2")
MODELS = [*(("torch", family) for family in TORCH), *(("openvino", family) for family in OPENVINO)]
NUM_BLOCKS = 24


@dataclass
class Pair:
    """A model, and what transformers itself says of three texts."""

    model: LanguageModel
    texts: dict[str, list[int]]
    expected: dict[str, torch.Tensor]  # [length of the text, vocab]
    tolerance: float

    def check(self, name: str, begin: int, end: int, logits: torch.Tensor) -> None:
        """`logits` are those of positions [begin, end) of the text."""
        expected = self.expected[name][begin:end]
        assert logits.shape == expected.shape
        assert (logits - expected).abs().max().item() < self.tolerance

    def table(self, length: int, first: int) -> list[int]:
        """Blocks for `length` tokens, the `first`-th and next of an order that jumps about."""
        count = -(-length // self.model.shape.block_size)
        return [7 * index % NUM_BLOCKS for index in range(first, first + count)]


@pytest.fixture(scope="module", params=MODELS, ids=lambda param: "-".join(param))
def pair(request: Any, tiny: Any, tmp_path_factory: Any) -> Iterator[Pair]:
    runtime, family = request.param
    dtype = torch.float64 if runtime == "torch" else torch.float32
    module = tiny.module(tiny.config(family), dtype)
    texts = {"a": tiny.tokens(90, 1), "b": tiny.tokens(70, 2), "c": tiny.tokens(3, 3)}
    with torch.inference_mode():
        expected = {name: module(torch.tensor([ids])).logits[0] for name, ids in texts.items()}
    if runtime == "torch":
        yield Pair(in_torch(module, tiny), texts, expected, 1e-10)
    else:
        folder = tmp_path_factory.mktemp(family)
        yield Pair(in_openvino(module, folder, tiny), texts, expected, 2e-4)


def in_torch(module: Any, tiny: Any, block_size: int = 8) -> TorchModel:
    return TorchModel(
        module,
        num_blocks=NUM_BLOCKS,
        block_size=block_size,
        context_length=tiny.context_length,
        num_threads=1,
        digest="tiny",
    )


def in_openvino(module: Any, folder: Path, tiny: Any) -> OpenVinoModel:
    return OpenVinoModel(
        converted(folder, "tiny", tiny.context_length, lambda: module),
        dtype=Dtype.FLOAT32,
        num_blocks=NUM_BLOCKS,
        block_size=32,
        context_length=tiny.context_length,
        num_threads=1,
        digest="tiny",
    )


def test_a_text_in_pieces_equals_the_text_at_once(pair: Pair) -> None:
    ids, blocks = pair.texts["a"], pair.table(80, first=0)
    nothing = pair.model.forward([RowSlice(ids[:40], 0, blocks, 0)])
    assert nothing.shape == (0, pair.model.shape.vocab_size)
    pair.check("a", 40, 41, pair.model.forward([RowSlice(ids[40:41], 40, blocks, 1)]))
    pair.check("a", 50, 80, pair.model.forward([RowSlice(ids[41:80], 41, blocks, 30)]))


def test_prefill_decode_and_verification_in_one_forward_equal_each_alone(pair: Pair) -> None:
    """E19, law 7: rows of other lengths and places are strangers."""
    a, b, c = (pair.texts[name] for name in "abc")
    at_a, at_b, at_c = pair.table(73, first=0), pair.table(32, first=10), pair.table(3, first=20)
    pair.model.forward([RowSlice(a[:64], 0, at_a, 0), RowSlice(b[:31], 0, at_b, 0)])
    rows = [
        RowSlice(a[64:73], 64, at_a, 9),
        RowSlice(c, 0, at_c, 1),
        RowSlice(b[31:32], 31, at_b, 1),
    ]
    logits = pair.model.forward(rows)
    pair.check("a", 64, 73, logits[:9])
    pair.check("c", 2, 3, logits[9:10])
    pair.check("b", 31, 32, logits[10:])


def test_rolled_back_tokens_leave_no_trace(pair: Pair) -> None:
    right, wrong, blocks = pair.texts["a"], pair.texts["b"], pair.table(45, first=3)
    pair.model.forward([RowSlice(right[:30], 0, blocks, 0)])
    pair.model.forward([RowSlice(wrong[30:45], 30, blocks, 15)])
    pair.check("a", 32, 40, pair.model.forward([RowSlice(right[30:40], 30, blocks, 8)]))
    pair.check("a", 35, 36, pair.model.forward([RowSlice(right[35:36], 35, blocks, 1)]))


def test_rows_may_share_the_blocks_of_a_common_beginning(pair: Pair) -> None:
    size = pair.model.shape.block_size
    ids, other = pair.texts["a"], pair.texts["b"]
    shared, own, strange = [5], [9], [11]
    pair.model.forward([RowSlice(ids[:size], 0, shared, 0)])
    logits = pair.model.forward(
        [
            RowSlice(other[size : size + 4], size, shared + strange, 4),
            RowSlice(ids[size : size + 4], size, shared + own, 4),
        ]
    )
    pair.check("a", size, size + 4, logits[4:])


def test_spare_blocks_are_not_read(pair: Pair) -> None:
    ids = pair.texts["c"]
    pair.check("c", 0, 3, pair.model.forward([RowSlice(ids, 0, [4, 6, 8, 10], 3)]))


def test_a_row_that_breaks_the_contract_is_refused(pair: Pair) -> None:
    shape = pair.model.shape
    cases = {
        "at least one row": [],
        "row 0: no tokens": [RowSlice([], 0, [0], 0)],
        "do not fit its 1 blocks": [RowSlice([1] * (shape.block_size + 1), 0, [0], 1)],
        "row 1: .* do not fit the context": [
            RowSlice([1], 0, [0], 1),
            RowSlice([1], shape.context_length, list(range(20)), 1),
        ],
        "num_logits 2": [RowSlice([1], 0, [0], 2)],
        "past_length -1 is negative": [RowSlice([1], -1, [0], 1)],
        f"token id {shape.vocab_size} ": [RowSlice([1, shape.vocab_size], 0, [0], 1)],
        "token id -1 ": [RowSlice([-1], 0, [0], 1)],
        f"block id {shape.num_blocks} ": [RowSlice([1], 0, [shape.num_blocks], 1)],
    }
    for text, rows in cases.items():
        with pytest.raises(ValueError, match=text):
            pair.model.forward(rows)
    pair.check("c", 2, 3, pair.model.forward([RowSlice(pair.texts["c"], 0, [0], 1)]))


def test_models_of_one_config_object_do_not_meet(tiny: Any) -> None:
    config = tiny.config("llama-gqa")
    first, second, untouched = (tiny.module(config, torch.float64, seed) for seed in (1, 2, 2))
    ids = tiny.tokens(20, 4)
    with torch.inference_mode():
        expected = [module(torch.tensor([ids])).logits[0] for module in (first, second)]
    models = [in_torch(first, tiny), in_torch(second, tiny)]
    row = RowSlice(ids[:10], 0, [0, 1, 2], 10)
    for model, logits in zip(models, expected, strict=True):
        assert torch.allclose(model.forward([row]), logits[:10], rtol=0, atol=1e-10)
    rest = RowSlice(ids[10:], 10, [0, 1, 2], 10)
    for model, logits in zip(models, expected, strict=True):
        assert torch.allclose(model.forward([rest]), logits[10:], rtol=0, atol=1e-10)
    with torch.inference_mode():
        assert torch.equal(untouched(torch.tensor([ids])).logits[0], expected[1])


def test_experts_are_exact_in_torch(tiny: Any) -> None:
    module = tiny.module(tiny.config("mixtral"), torch.float64)
    module.set_experts_implementation("eager")  # the grouped product has no float64
    ids = tiny.tokens(60, 5)
    with torch.inference_mode():
        expected = module(torch.tensor([ids])).logits[0]
    model = in_torch(module, tiny)
    blocks = list(range(8))
    model.forward([RowSlice(ids[:33], 0, blocks, 0)])
    logits = model.forward([RowSlice(ids[33:], 33, blocks, 27)])
    assert torch.allclose(logits, expected[33:], rtol=0, atol=1e-10)
