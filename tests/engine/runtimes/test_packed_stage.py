"""With weights of eight bits a stage is near the exact one, whatever it computed before."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from outrider.engine.head import CompiledHead, Told
from outrider.engine.head.stages import Compile, as_it_is
from outrider.engine.runtimes.packed_stage import PackedStage
from outrider.testing import toy_head

WIDTH = 64


class Two(nn.Module):
    """Two products of a sum; `sizes` [48]: of each output of the first."""

    def __init__(self, sizes: torch.Tensor) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(1)
        self.first, self.second = nn.Linear(WIDTH, 48, bias=False), nn.Linear(WIDTH, 8, bias=False)
        self.first.weight.data = torch.randn(48, WIDTH, generator=random) * sizes[:, None]
        self.second.weight.data = torch.randn(8, WIDTH, generator=random)

    def forward(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = left + right
        return self.first(both), self.second(both)


def some(num: int, width: int = WIDTH, seed: int = 0) -> torch.Tensor:
    return torch.randn(num, width, generator=torch.Generator().manual_seed(seed + num))


def packed(module: nn.Module) -> PackedStage:
    return PackedStage(module, (some(2), some(2)), num_threads=1)


def error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


@pytest.fixture(scope="module")
def exact() -> Two:
    return Two(torch.ones(48))


@pytest.fixture(scope="module")
def stage(exact: Two) -> PackedStage:
    return packed(exact)


@torch.inference_mode()
def test_it_is_near_the_exact_one_at_any_number_of_rows(exact: Two, stage: PackedStage) -> None:
    for num in (1, 7, 1, 2, 130):
        given = some(num), some(num, seed=500)
        for found, wanted in zip(stage(*given), exact(*given), strict=True):
            assert 0 < error(found, wanted) < 0.03


def test_a_result_stays_when_the_next_comes(stage: PackedStage) -> None:
    first = stage(some(2), some(2))
    kept = [each.clone() for each in first]
    stage(some(2) * 3, some(2))
    assert all(torch.equal(*pair) for pair in zip(first, kept, strict=True))


def test_it_takes_a_part_of_something_wider(stage: PackedStage) -> None:
    wide = some(3, 2 * WIDTH)[:, ::2]
    assert torch.equal(stage(wide, wide)[0], stage(wide.contiguous(), wide.contiguous())[0])


@torch.inference_mode()
def test_each_output_has_a_scale_of_its_own_and_nothing_is_nothing() -> None:
    sizes = torch.logspace(-6, 6, 48)
    sizes[7] = 0
    module, given = Two(sizes), (some(64), some(64, seed=500))
    for found, wanted in zip(packed(module)(*given)[0].T, module(*given)[0].T, strict=True):
        assert (found - wanted).norm() <= 0.02 * wanted.norm()


@torch.inference_mode()
def test_a_packed_head_says_nearly_what_the_exact_one_says() -> None:
    head = toy_head(vocab_size=40, hidden_size=32).float()
    embedding = some(40, 32)

    def told(compiled: Compile) -> list[Told]:
        made = CompiledHead(head, embedding, compiled)
        rows = [(made.new_kv(), 3), (made.new_kv(), 2)]
        first = made.read(some(5, head.config.feature_size), range(5), (0, 1, 2, 0, 1), rows)
        again = [(kv, 1) for kv, _ in rows]
        return [first, made.step(first.states, (3, 4), (3, 2), again)]

    def pack(module: nn.Module, example: tuple[torch.Tensor, ...]) -> PackedStage:
        return PackedStage(module, example, num_threads=1)

    for found, wanted in zip(told(pack), told(as_it_is), strict=True):
        assert error(found.logits, wanted.logits) < 0.1
        assert found.tops == pytest.approx(wanted.tops, rel=0.3)
