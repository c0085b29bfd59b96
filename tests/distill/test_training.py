"""A head learns what its target would say, and is the same whether or not it was interrupted."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from outrider.config.schema import DistillSettings, Dtype
from outrider.core import Fault, SystemClock, UserError
from outrider.distill.batch import collated, numbers_of, packed
from outrider.distill.corpus import Example
from outrider.distill.features import Features, computed
from outrider.distill.judgement import NUM_POSITIONS, judged
from outrider.distill.moment import Moment
from outrider.distill.objective import loss_of, rate_at, weights_of
from outrider.distill.training import Part, Trainer
from outrider.distill.unrolled import shifted, unrolled
from outrider.engine.head import CompiledHead, DraftHead
from outrider.testing import ScriptedFeatureModel
from outrider.testing.toy_head import toy_head

VOCAB, HIDDEN = 24, 16
SAID = tuple(range(2, VOCAB))  # what the heads here can say


def alphabet(prefix: tuple[int, ...]) -> Sequence[float]:
    """The next letter, nearly surely; where the text ends the first one comes again."""
    scores = [0.0] * VOCAB
    scores[2 + (prefix[-1] - 1) % (VOCAB - 2)] = 9.0
    return scores


def feature(prefix: tuple[int, ...]) -> Sequence[float]:
    return [float(prefix[-1] == at % VOCAB) for at in range(2 * HIDDEN)]


def example(number: int, length: int = 16) -> Example:
    letters = [2 + (number + place) % (VOCAB - 2) for place in range(length)]
    return Example(f"e{number}", "", array("i", letters), 3)


EXAMPLES = [example(number, 10 + number % 9) for number in range(40)]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Products this small take longer on two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def rows() -> list[Features]:
    model = ScriptedFeatureModel(
        alphabet, feature=feature, feature_size=2 * HIDDEN, vocab_size=VOCAB
    )
    return list(computed(model, EXAMPLES, most_tokens=256, dtype=torch.float32))


@pytest.fixture(scope="module")
def embedding() -> torch.Tensor:
    return torch.randn(VOCAB, HIDDEN, generator=torch.Generator().manual_seed(3))


def head(seed: int = 0) -> DraftHead:
    made = toy_head(vocab_size=VOCAB, hidden_size=HIDDEN, num_said=len(SAID), seed=seed, scale=0.1)
    made.d2t.copy_(torch.tensor(SAID))
    return made.float()


def settings(**changes: Any) -> DistillSettings:
    return DistillSettings(
        **{
            "batch_tokens": 128,
            "num_epochs": 12,
            "eval_updates": 20,
            "learning_rate": 0.02,
            "num_steps": 3,
            "train_dtype": Dtype.FLOAT32,
        }
        | changes
    )


Make = Callable[..., Trainer]


@pytest.fixture
def make(rows: list[Features], embedding: torch.Tensor) -> Make:
    def make(**changes: Any) -> Trainer:
        return Trainer(
            settings(**changes),
            head(),
            embedding,
            numbers_of(SAID, VOCAB),
            Part(EXAMPLES[:32], rows, 0),
            Part(EXAMPLES[32:], rows, 32),
            SystemClock(),
        )

    return make


def run(
    trainer: Trainer, path: Path, on_update: Callable[[int], None] = lambda done: None
) -> tuple[DraftHead, list[Moment]]:
    moments: list[Moment] = []
    trainer.resume(path)
    return trainer.run(path, moments.append, on_update), moments


@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.BFLOAT16])
def test_a_head_learns_to_say_what_its_target_says(
    dtype: Dtype, make: Make, tmp_path: Path
) -> None:
    _, moments = run(make(train_dtype=dtype), tmp_path / "checkpoint")
    first, last = moments[0], moments[-1]
    assert last.loss < first.loss
    assert all(ratio > 0.9 for ratio in last.judgement.agreement[:3])
    assert last.judgement.overlap[0] > 0.9
    assert last.judgement.tokens_per_round[2] > 3.5
    told = last.metrics()
    assert told["agreement_ratio_1"] == last.judgement.agreement[0]
    assert {f"tokens_per_round_{k}" for k in range(1, NUM_POSITIONS + 1)} <= told.keys()


def test_what_was_killed_ends_as_if_it_had_not_been(make: Make, tmp_path: Path) -> None:
    whole, _ = run(make(num_epochs=6, eval_updates=10), tmp_path / "whole")

    def kill(done: int) -> None:
        if done == 17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(make(num_epochs=6, eval_updates=10), tmp_path / "killed", kill)
    updates: list[int] = []
    resumed, _ = run(make(num_epochs=6, eval_updates=10), tmp_path / "killed", updates.append)
    assert updates[0] == 11
    for one, other in zip(whole.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(one, other)
    again: list[int] = []
    ended, _ = run(make(num_epochs=6, eval_updates=10), tmp_path / "killed", again.append)
    assert again == [], "what has ended has nothing to do"
    assert torch.equal(ended.fc.weight, whole.fc.weight)


def test_it_ends_early_and_keeps_the_best(make: Make, tmp_path: Path) -> None:
    trainer = make(learning_rate=1e-9, eval_updates=2, patience=3)
    best, moments = run(trainer, tmp_path / "checkpoint")
    assert trainer.progress.is_done
    assert trainer.progress.update < trainer.num_updates
    assert [moment.is_best for moment in moments[-3:]] == [False] * 3
    assert not best.training


def test_a_loss_that_is_no_number_is_a_fault(make: Make, tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"smaller distill\.learning_rate"):
        run(make(learning_rate=1e30), tmp_path / "checkpoint")


def test_a_damaged_checkpoint_is_named(make: Make, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(b"nothing")
    with pytest.raises(UserError, match="checkpoint can't be read: remove it"):
        run(make(), path)


def test_every_draft_is_unrolled_as_the_drafter_steps(
    rows: list[Features], embedding: torch.Tensor
) -> None:
    """From every position on: the target's features so far, then the head's own states."""
    made = head(seed=5).double()
    told = rows[0].features.double()
    ids = EXAMPLES[0].tokens[1:-1].tolist()
    embeddings = embedding.double()[ids]
    steps = list(unrolled(made, told[None], embeddings[None], 4))
    answered = list(unrolled(made, told[None], embeddings[None], 4, begin=3))
    for step, (whole, part) in enumerate(zip(steps, answered, strict=True)):
        assert torch.allclose(whole[:, 3 + step :], part[:, step:], atol=1e-12)
    drafting = CompiledHead(made, embedding)
    for begin in range(len(told) - 4):
        kv, end = drafting.new_kv(), begin + 1
        states = drafting.read(told[:end], ids[:end], range(end), [(kv, end)]).states
        assert torch.allclose(steps[0][0, begin], states[0], atol=1e-12)
        for step in range(1, 4):
            at = begin + step
            states = drafting.step(states, ids[at : at + 1], [at], [(kv, 1)]).states
            assert torch.allclose(steps[step][0, at], states[0], atol=1e-12)


def test_a_row_learns_the_same_alone_and_beside_a_longer_one(
    rows: list[Features], embedding: torch.Tensor
) -> None:
    made, numbers = head(), numbers_of(SAID, VOCAB)
    pairs = [(EXAMPLES[at], rows[at]) for at in (0, 8)]
    alone = judged(made, embedding, [collated([pair], numbers) for pair in pairs])
    beside = judged(made, embedding, [collated(pairs, numbers)])
    assert beside.num == alone.num
    assert beside.agreed == alone.agreed
    assert beside.shared == pytest.approx(alone.shared, abs=1e-4)
    assert alone.num[0] == sum(example.num_answer - 1 for example, _ in pairs)


@pytest.mark.parametrize("num", [1, 3, 8])
def test_gradients_of_shares_add_up_to_those_of_the_whole(
    num: int, rows: list[Features], embedding: torch.Tensor
) -> None:
    """Also where rows are of many lengths, and some processes have none."""
    numbers, steps = numbers_of(SAID, VOCAB), {"num_steps": 5, "step_weight": 0.7}
    pack = [0, 8, 3, 17, 5]

    def learnt(made: DraftHead, share: Sequence[int]) -> float:
        part = Part(EXAMPLES, rows, 0)
        weights = weights_of(part.chosen(share), part.chosen(pack), **steps)
        loss = loss_of(made, embedding.double(), part.batch(share, numbers), weights=weights)
        loss.backward()
        return float(loss.detach())

    whole, parts = (head().double().requires_grad_(True) for _ in range(2))
    powers = [0.7**step for step in range(5)]
    assert weights_of([EXAMPLES[0]], [EXAMPLES[0]], **steps) == powers, "to the bit"
    loss = learnt(whole, pack)
    shares = [pack[rank::num] for rank in range(num)]
    assert sum(learnt(parts, share) for share in shares if share) == pytest.approx(loss)
    for one, other in zip(whole.parameters(), parts.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-6, rtol=1e-5)


def test_what_the_head_can_not_say_is_not_taught(
    rows: list[Features], embedding: torch.Tensor
) -> None:
    deaf = numbers_of((), VOCAB)
    made = head()
    batch = collated([(EXAMPLES[0], rows[0])], deaf)
    assert float(loss_of(made, embedding, batch, weights=(1, 0.9, 0.81))) == 0
    found = judged(made, embedding, [batch])
    assert found.agreement == found.overlap == [0.0] * NUM_POSITIONS
    assert found.tokens_per_round == [1.0] * NUM_POSITIONS


def test_batches_have_every_row_once_in_an_order_of_their_epoch() -> None:
    one, same, other = (packed(EXAMPLES, 100, 1, epoch) for epoch in (0, 0, 1))
    assert one == same != other
    assert sorted(number for pack in one for number in pack) == list(range(len(EXAMPLES)))
    for pack in one:
        longest = max(len(EXAMPLES[number].tokens) for number in pack)
        assert len(pack) * longest <= 100


def test_the_rate_rises_and_falls() -> None:
    rates = [rate_at(at, 100, peak=1.0, warmup_share=0.1) for at in range(100)]
    assert rates[0] == 0.1
    assert max(rates) == rates[9] == 1.0
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0.05 <= rates[-1] < 0.06


def test_shifting_lets_nothing_through_from_behind() -> None:
    numbers = torch.arange(1, 7).view(1, 3, 2)
    assert shifted(numbers, 0) is numbers
    assert shifted(numbers, 2)[0].tolist() == [[0, 0], [0, 0], [1, 2]]
    assert shifted(numbers, 5)[0].tolist() == [[0, 0]] * 3
