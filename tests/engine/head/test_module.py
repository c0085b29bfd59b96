"""One step over ragged rows is what the whole sequence at once would give."""

import torch
import torch.nn.functional as F

from outrider.testing import toy_head

torch.set_num_threads(1)  # what is as small as this only waits for others
HIDDEN = 8
HEAD = toy_head(vocab_size=12, hidden_size=HIDDEN)


def some(length, seed):
    random = torch.Generator().manual_seed(seed)
    states = torch.randn(length, HIDDEN, dtype=torch.float64, generator=random)
    return states, torch.randn(length, HIDDEN, dtype=torch.float64, generator=random)


def step(states, embeddings, kv, begin):
    positions = torch.arange(begin, begin + len(states))
    return HEAD.step(states, embeddings, positions, [(kv, len(states))])


def at_once(states, embeddings):
    """The layer as the paper draws it, without a cache."""
    layer, length = HEAD.layer, len(states)
    queries, keys, values = layer.project(states, embeddings, torch.arange(length))
    keys, values = (each.repeat_interleave(2, dim=1) for each in (keys, values))
    scores = torch.einsum("qhd,khd->hqk", queries, keys) / queries.shape[-1] ** 0.5
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    weights = scores.masked_fill(future, -torch.inf).softmax(-1)
    return layer.finish(states, torch.einsum("hqk,khd->qhd", weights, values))


def test_tokens_one_by_one_give_what_all_at_once_give():
    states, embeddings = some(9, 1)
    kv = HEAD.new_kv()
    parts = [step(states[i : i + 1], embeddings[i : i + 1], kv, i) for i in range(9)]
    assert torch.allclose(torch.cat(parts), at_once(states, embeddings), atol=1e-12)
    assert kv.length == 9


def test_chunks_give_what_all_at_once_give():
    states, embeddings = some(9, 2)
    kv = HEAD.new_kv()
    parts = [step(states[i:j], embeddings[i:j], kv, i) for i, j in ((0, 4), (4, 5), (5, 9))]
    assert torch.allclose(torch.cat(parts), at_once(states, embeddings), atol=1e-12)


def test_rows_are_strangers():
    """Law 7: in a ragged batch each row gets what it gets alone."""
    rows = [some(length, seed) for seed, length in enumerate((3, 1, 5))]
    alone = [step(states, embeddings, HEAD.new_kv(), 0) for states, embeddings in rows]
    together = HEAD.step(
        torch.cat([states for states, _ in rows]),
        torch.cat([embeddings for _, embeddings in rows]),
        torch.cat([torch.arange(len(states)) for states, _ in rows]),
        [(HEAD.new_kv(), len(states)) for states, _ in rows],
    )
    assert torch.allclose(together, torch.cat(alone), atol=1e-12)


def test_what_was_cut_leaves_no_trace():
    states, embeddings = some(6, 3)
    kv = HEAD.new_kv()
    step(states[:3], embeddings[:3], kv, 0)
    step(*some(70, 4), kv, 3)  # beyond what it had room for
    kv.cut(3)
    again = step(states[3:], embeddings[3:], kv, 3)
    assert torch.allclose(again, at_once(states, embeddings)[3:], atol=1e-12)


def test_only_distances_count():
    """RoPE: all positions moved by as much change nothing."""
    states, embeddings = some(5, 5)
    near, far = (step(states, embeddings, HEAD.new_kv(), begin) for begin in (0, 100))
    assert torch.allclose(near, far, atol=1e-4)  # angles are in float32


def test_features_of_several_layers_become_one_state():
    features = torch.randn(3, 2 * HIDDEN, dtype=torch.float64)
    assert torch.equal(HEAD.fuse(features), features @ HEAD.fc.weight.T)


def test_logits_are_of_the_trimmed_vocabulary():
    states, _ = some(3, 6)
    scaled = F.rms_norm(states, (HIDDEN,), HEAD.norm.weight, 1e-5)
    assert torch.allclose(HEAD.logits(states), scaled @ HEAD.lm_head.weight.T)
    assert HEAD.logits(states).shape == (3, len(HEAD.d2t)) == (3, 8)
