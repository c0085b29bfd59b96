"""What of the head is learnt: products whose results can be written down."""

import torch
import torch.nn.functional as F

from outrider.testing import toy_head

torch.set_num_threads(1)  # what is as small as this only waits for others
HIDDEN = 8
HEAD = toy_head(vocab_size=12, hidden_size=HIDDEN)


def test_features_of_several_layers_become_one_state():
    features = torch.randn(3, 2 * HIDDEN, dtype=torch.float64)
    assert torch.equal(HEAD.fuse(features), features @ HEAD.fc.weight.T)


def test_logits_are_of_the_trimmed_vocabulary():
    states = torch.randn(3, HIDDEN, dtype=torch.float64)
    scaled = F.rms_norm(states, (HIDDEN,), HEAD.norm.weight, 1e-5)
    assert torch.allclose(HEAD.logits(states), scaled @ HEAD.lm_head.weight.T)
    assert HEAD.logits(states).shape == (3, len(HEAD.d2t)) == (3, 8)
