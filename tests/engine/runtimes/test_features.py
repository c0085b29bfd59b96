"""Both runtimes give what transformers' own layers give, of the tokens asked for and no others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from outrider.config.schema import Dtype, ModelSettings, RuntimeKind
from outrider.core import UserError
from outrider.engine.language_model import FeatureModel, RowSlice
from outrider.engine.runtimes import open_model
from outrider.engine.runtimes.layer_tap import decoder_layers
from outrider.engine.runtimes.openvino_cache import converted
from outrider.engine.runtimes.openvino_runtime import OpenVinoModel
from outrider.engine.runtimes.torch_runtime import TorchModel

LAYERS = (2, 0)  # of three: the last one, and in an order of its own
SIZE = 2 * 64
FINAL_NORM = {
    "llama-gqa": "model.norm",
    "qwen3": "model.norm",
    "gpt2": "transformer.ln_f",
    "gpt-neox": "gpt_neox.final_layer_norm",
}
MODELS = [*(("torch", family) for family in FINAL_NORM), ("openvino", "llama-gqa")]


@dataclass
class Pair:
    """A model, and what transformers itself says of two texts."""

    model: FeatureModel
    texts: dict[str, list[int]]
    expected: dict[str, torch.Tensor]  # [length of the text, SIZE]
    tolerance: float

    def check(self, *spans: tuple[str, int, int]) -> None:
        """The last forward was of positions [begin, end) of the named texts, in this order."""
        expected = torch.cat([self.expected[name][begin:end] for name, begin, end in spans])
        features = self.model.features
        assert features.dtype is torch.float32
        assert features.shape == expected.shape
        assert (features - expected).abs().max().item() < self.tolerance


def expected_of(module: Any, family: str, ids: list[int]) -> torch.Tensor:
    """[T, SIZE] by transformers' own means; its last hidden state is normalised, so not that."""
    before_norm: list[torch.Tensor] = []
    norm = module.get_submodule(FINAL_NORM[family])
    hook = norm.register_forward_pre_hook(lambda _, inputs: before_norm.append(inputs[0]))
    with torch.inference_mode():
        states = module(torch.tensor([ids]), output_hidden_states=True).hidden_states
    hook.remove()
    return torch.cat([before_norm[0][0], states[1][0]], dim=-1)


@pytest.fixture(scope="module", params=MODELS, ids=lambda param: "-".join(param))
def pair(request: Any, tiny: Any, tmp_path_factory: Any) -> Iterator[Pair]:
    runtime, family = request.param
    dtype = torch.float64 if runtime == "torch" else torch.float32
    module = tiny.module(tiny.config(family, num_hidden_layers=3), dtype)
    texts = {"a": tiny.tokens(80, 1), "b": tiny.tokens(40, 2)}
    expected = {name: expected_of(module, family, ids) for name, ids in texts.items()}
    if runtime == "torch":
        common: dict[str, Any] = {"num_blocks": 24, "block_size": 8, "num_threads": 1}
        model = TorchModel(module, context_length=128, digest="", feature_layers=LAYERS, **common)
        yield Pair(model, texts, expected, 1e-4)
    else:
        folder = tmp_path_factory.mktemp(family)
        yield Pair(in_openvino(module, folder), texts, expected, 2e-3)


def in_openvino(module: Any, folder: Path) -> OpenVinoModel:
    return OpenVinoModel(
        converted(folder, "tiny", 128, lambda: module, LAYERS),
        dtype=Dtype.FLOAT32,
        num_blocks=12,
        block_size=32,
        context_length=128,
        num_threads=1,
        digest="tiny",
        twin=True,
        feature_layers=LAYERS,
    )


def table(pair: Pair, first: int) -> list[int]:
    return list(range(first, first + 80 // pair.model.shape.block_size + 1))


def test_a_text_in_pieces_gives_the_features_of_the_text_at_once(pair: Pair) -> None:
    """Chunks that want no logits too, and rounds that a runtime fills up."""
    ids, blocks = pair.texts["a"], table(pair, 1)
    assert (pair.model.feature_layers, pair.model.feature_size) == (LAYERS, SIZE)
    for begin, end, num_logits in ((0, 33, 0), (33, 34, 1), (34, 41, 7), (41, 80, 2)):
        pair.model.forward([RowSlice(ids[begin:end], begin, blocks, num_logits)])
        pair.check(("a", begin, end))


def test_rows_lie_in_the_order_in_which_they_were_given(pair: Pair) -> None:
    a, b = pair.texts["a"], pair.texts["b"]
    at_a, at_b = table(pair, 0), table(pair, 12 if pair.model.shape.block_size == 8 else 4)
    pair.model.forward([RowSlice(b[:9], 0, at_b, 0), RowSlice(a[:50], 0, at_a, 1)])
    pair.check(("b", 0, 9), ("a", 0, 50))
    pair.model.forward([RowSlice(a[50:51], 50, at_a, 1), RowSlice(b[9:12], 9, at_b, 3)])
    pair.check(("a", 50, 51), ("b", 9, 12))


def test_rolled_back_tokens_leave_no_trace(pair: Pair) -> None:
    right, wrong, blocks = pair.texts["a"], pair.texts["b"], table(pair, 2)
    pair.model.forward([RowSlice(right[:30], 0, blocks, 0)])
    pair.model.forward([RowSlice(wrong[30:36], 30, blocks, 6)])
    pair.model.forward([RowSlice(right[30:34], 30, blocks, 4)])
    pair.check(("a", 30, 34))


Open = Callable[..., FeatureModel]


@pytest.fixture
def open_(tiny: Any, tmp_path: Path) -> Open:
    tiny.module(tiny.config("llama-gqa", num_hidden_layers=1)).save_pretrained(tmp_path / "model")

    def open_with(layers: tuple[int, ...], runtime: RuntimeKind) -> FeatureModel:
        return open_model(
            tmp_path / "model",
            ModelSettings(source="", device="cpu", dtype=Dtype.FLOAT32, runtime=runtime),
            digest="tiny",
            cache_dir=tmp_path / "cache",
            notice=pytest.fail,
            feature_layers=layers,
        )

    return open_with


def test_a_model_gives_the_features_that_it_was_opened_for(open_: Open, tmp_path: Path) -> None:
    row, given = RowSlice([5, 6, 7], 0, [2], 3), []
    for runtime in (RuntimeKind.TORCH, RuntimeKind.OPENVINO):
        plain, model = open_((), runtime), open_((0,), runtime)
        assert torch.allclose(plain.forward([row]), model.forward([row]), atol=1e-4)
        assert (plain.feature_layers, plain.feature_size) == ((), 0)
        assert plain.features.numel() == 0
        assert model.identity == {**plain.identity, "feature_layers": "0"}
        given.append(model.features)
    assert torch.allclose(given[0], given[1], atol=1e-3)
    kept = [path for path in (tmp_path / "cache").iterdir() if path.suffix != ".lock"]
    assert len(kept) == 2  # the graph without features is not the one with


@pytest.mark.parametrize("runtime", RuntimeKind)
def test_layers_that_the_model_does_not_have_are_refused(open_: Open, runtime: RuntimeKind) -> None:
    for layers, text in (((0, 2), "layer 2 is not"), ((-1,), "layer -1 is not"), ((0, 0), "rep")):
        with pytest.raises(UserError, match=text):
            open_(layers, runtime)


def test_layers_that_can_t_be_told_are_refused_by_name() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.experts = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])

    module: Any = nn.Module()
    module.config = SimpleNamespace(num_hidden_layers=2, model_type="odd")
    module.layers = nn.ModuleList([Block(), Block()])
    assert decoder_layers(module) is module.layers  # not the experts, of which there are as many
    module.others = nn.ModuleList([nn.Linear(1, 1), nn.Linear(1, 1)])
    with pytest.raises(UserError, match=r"model type odd gives no features: .*\(layers, others\)"):
        decoder_layers(module)
    del module.layers, module.others
    with pytest.raises(UserError, match=r"can't be told \(none\)"):
        decoder_layers(module)
