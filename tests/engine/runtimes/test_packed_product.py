"""A product of eight bits is near the exact one, whatever it computed before."""

from __future__ import annotations

import pytest
import torch

from outrider.engine.head import FoldedHead
from outrider.engine.head.product import exact
from outrider.engine.runtimes.packed_product import PackedProduct
from outrider.testing import toy_head

WEIGHT = torch.randn(48, 64, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def packed() -> PackedProduct:
    return PackedProduct(WEIGHT, num_threads=1)


def states(num_rows: int, width: int = 64) -> torch.Tensor:
    return torch.randn(num_rows, width, generator=torch.Generator().manual_seed(num_rows))


def error(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


def test_it_is_near_the_exact_one_at_any_number_of_rows(packed: PackedProduct) -> None:
    for num_rows in (1, 7, 1, 2, 130):
        given = states(num_rows)
        assert error(packed(given), exact(WEIGHT)(given)) < 0.02


def test_a_result_stays_when_the_next_comes(packed: PackedProduct) -> None:
    first = packed(states(2))
    kept = first.clone()
    packed(states(2) * 3)
    assert torch.equal(first, kept)


def test_it_takes_a_part_of_something_wider(packed: PackedProduct) -> None:
    wide = states(3, 128)
    assert torch.equal(packed(wide[:, ::2]), packed(wide[:, ::2].contiguous()))


def test_outputs_of_other_sizes_each_have_a_scale_and_nothing_is_nothing() -> None:
    sizes = torch.logspace(-6, 6, 48)[:, None]
    sizes[7] = 0
    product, given = PackedProduct(WEIGHT * sizes, num_threads=1), states(64)
    for found, wanted in zip(product(given).T, exact(WEIGHT * sizes)(given).T, strict=True):
        assert (found - wanted).norm() <= 0.02 * wanted.norm()


def test_a_head_of_packed_products_says_nearly_what_the_exact_one_says() -> None:
    head = toy_head(vocab_size=40, hidden_size=32).float()
    embedding = torch.randn(40, 32, generator=torch.Generator().manual_seed(3))
    said = []
    for product in (exact, lambda weight: PackedProduct(weight, num_threads=1)):
        folded = FoldedHead(head, embedding, product)
        given = folded.fuse(states(5, head.config.feature_size))
        after = folded.step(given, range(5), range(5), [(folded.new_kv(), 5)])
        said.append(folded.logits(after))
    assert error(said[1], said[0]) < 0.1
