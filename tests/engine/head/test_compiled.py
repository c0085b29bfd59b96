"""One step over ragged rows is what the whole sequence at once would give."""

import pytest
import torch
from torch import nn

from outrider.engine.head import CompiledHead
from outrider.testing import toy_head

torch.set_num_threads(1)  # what is as small as this only waits for others
VOCAB, HIDDEN = 12, 8
EMBEDDING = torch.randn(VOCAB, HIDDEN, generator=torch.Generator().manual_seed(1)).double()


def toy():
    """Its norms do something."""
    head, random = toy_head(vocab_size=VOCAB, hidden_size=HIDDEN), torch.Generator().manual_seed(2)
    for module in head.modules():
        if isinstance(module, nn.RMSNorm):
            module.weight.copy_(torch.rand(HIDDEN, generator=random) + 0.5)
    return head


HEAD = toy()
COMPILED = CompiledHead(HEAD, EMBEDDING)


def some(length, seed):
    random = torch.Generator().manual_seed(seed)
    states = torch.randn(length, HIDDEN, dtype=torch.float64, generator=random)
    return states, torch.randint(VOCAB, (length,), generator=random).tolist()


def step(states, tokens, kv, begin):
    """[1, HIDDEN]: of the last token."""
    positions = range(begin, begin + len(states))
    return COMPILED.step(states, tokens, positions, [(kv, len(states))]).states


def at_once(states, tokens):
    """The layer as the paper draws it, without a cache, of the weights that are learnt."""
    layer, length = HEAD.layer, len(states)
    queries, keys, values = layer.project(states, EMBEDDING[tokens], torch.arange(length))
    keys, values = (each.repeat_interleave(2, dim=1) for each in (keys, values))
    scores = torch.einsum("qhd,khd->hqk", queries, keys) / queries.shape[-1] ** 0.5
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(-1)
    return layer.finish(states, torch.einsum("hqk,khd->qhd", weights, values))


def test_tokens_one_by_one_give_what_all_at_once_give():
    states, tokens = some(9, 1)
    kv = COMPILED.new_kv()
    parts = [step(states[i : i + 1], tokens[i : i + 1], kv, i) for i in range(9)]
    assert torch.allclose(torch.cat(parts), at_once(states, tokens), atol=1e-12)
    assert kv.length == 9


def test_chunks_give_what_all_at_once_give():
    states, tokens = some(9, 2)
    kv = COMPILED.new_kv()
    parts = [step(states[i:j], tokens[i:j], kv, i) for i, j in ((0, 4), (4, 5), (5, 9))]
    assert torch.allclose(torch.cat(parts), at_once(states, tokens)[[3, 4, 8]], atol=1e-12)


def test_rows_are_strangers():
    """Law 7: in a ragged batch each row gets what it gets alone."""
    rows = [some(length, seed) for seed, length in enumerate((3, 1, 5))]
    alone = [step(states, tokens, COMPILED.new_kv(), 0) for states, tokens in rows]
    together = COMPILED.step(
        torch.cat([states for states, _ in rows]),
        [token for _, tokens in rows for token in tokens],
        [position for states, _ in rows for position in range(len(states))],
        [(COMPILED.new_kv(), len(states)) for states, _ in rows],
    )
    assert torch.allclose(together.states, torch.cat(alone), atol=1e-12)


def test_what_was_cut_leaves_no_trace():
    states, tokens = some(6, 3)
    kv = COMPILED.new_kv()
    step(states[:3], tokens[:3], kv, 0)
    step(*some(70, 4), kv, 3)  # beyond what it had room for
    kv.cut(3)
    again = step(states[3:], tokens[3:], kv, 3)
    assert torch.allclose(again, at_once(states, tokens)[5:], atol=1e-12)


@pytest.mark.parametrize(("begin", "atol"), [(100, 1e-4), (5000, 1e-3)])
def test_only_distances_count(begin, atol):
    """RoPE: all positions moved by as much change nothing."""
    states, tokens = some(5, 5)
    near, far = (step(states, tokens, COMPILED.new_kv(), at) for at in (0, begin))
    assert torch.allclose(near, far, atol=atol)  # angles are in float32: coarser far out


def test_it_reads_features_as_the_head_fuses_them_and_tells_what_the_head_would():
    features, tokens = torch.cat(some(4, 6)[:1] * 2, dim=-1), some(4, 6)[1]
    told = COMPILED.read(features, tokens, range(4), [(COMPILED.new_kv(), 4)])
    states = at_once(HEAD.fuse(features), tokens)[-1:]
    assert torch.allclose(told.states, states, atol=1e-12)
    assert torch.allclose(told.logits, HEAD.logits(states), atol=1e-12)
    assert told.tops == pytest.approx([float(told.logits.softmax(-1).max())])


def test_a_broken_state_has_no_likeliest_token():
    states, tokens = some(1, 7)
    told = COMPILED.step(states * torch.nan, tokens, [0], [(COMPILED.new_kv(), 1)])
    assert told.tops[0] != told.tops[0]
