"""The loop: updates, judgements, checkpoints; the same whether or not it was interrupted.

Every update's rows and learning rate follow from its number alone, so what was killed goes on from
its last checkpoint as if nothing had been.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from outrider.config.schema import DistillSettings, Dtype
from outrider.core import Clock, Fault
from outrider.distill.batch import Batch, collated, packed
from outrider.distill.checkpoint import Progress, Training
from outrider.distill.corpus import Example
from outrider.distill.features import Features
from outrider.distill.joining import Alone, Joining
from outrider.distill.judgement import judged
from outrider.distill.moment import Moment
from outrider.distill.objective import loss_of, rate_at, weights_of
from outrider.engine.head import DraftHead

BETAS = (0.9, 0.95)
CHECKPOINT_S = 120.0  # at most this much is learnt again after a kill -9


class Rows(Protocol):
    """Features by the number of the row."""

    def __getitem__(self, number: int) -> Features: ...


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of the corpus and their features; `first` is the number of the first in `rows`."""

    examples: Sequence[Example]
    rows: Rows
    first: int

    def chosen(self, numbers: Sequence[int]) -> list[Example]:
        return [self.examples[number] for number in numbers]

    def batch(self, numbers: Sequence[int], of_head: torch.Tensor) -> Batch:
        pairs = [(self.examples[number], self.rows[self.first + number]) for number in numbers]
        return collated(pairs, of_head)


class Trainer:
    """Learns from `train`, is judged by `valid`. `numbers` [V]: see `batch.numbers_of`.

    One of several processes computes its share of each update's rows; `joining` makes of their
    gradients the whole update's, up to rounding. The first of them judges and saves.
    """

    def __init__(
        self,
        settings: DistillSettings,
        head: DraftHead,
        embedding: torch.Tensor,
        numbers: torch.Tensor,
        train: Part,
        valid: Part,
        clock: Clock,
        joining: Joining | None = None,
    ) -> None:
        self._settings = settings
        self._embedding = embedding
        self._numbers = numbers
        self._train = train
        self._valid = valid
        self._clock = clock
        self._joining = joining or Alone()
        self._head = head.train().requires_grad_(True)
        self._training = Training(
            head=self._head,
            optimiser=torch.optim.AdamW(
                head.parameters(), betas=BETAS, weight_decay=settings.weight_decay
            ),
            best={name: weight.detach().clone() for name, weight in head.named_parameters()},
            progress=Progress(),
        )
        self._updates = self._num_updates()

    @property
    def progress(self) -> Progress:
        return self._training.progress

    @property
    def num_updates(self) -> int:
        """Of a training that is not ended early."""
        return self._updates

    def resume(self, checkpoint: Path) -> None:
        """Go on from there, where there is one. UserError where it is damaged."""
        if checkpoint.exists():
            self._training.load(checkpoint)

    def run(
        self,
        checkpoint: Path,
        tell: Callable[[Moment], None],
        on_update: Callable[[int], None],
    ) -> DraftHead:
        """Train to the end and return the best head; checkpoints are written on the way.

        `on_update` hears how many updates are done. Raises Fault where the loss is NaN.
        """
        losses: list[torch.Tensor] = []
        began = saved = self._clock.monotonic()
        for pack in self._packs_left() if not self.progress.is_done else ():
            losses.append(self._learn(pack))
            self.progress.update += 1
            now = self._clock.monotonic()
            self.progress.seconds += now - began
            on_update(self.progress.update)
            if self._is_judged():
                self._judge(_mean(losses), tell)
                losses.clear()
            if not losses or now - saved >= CHECKPOINT_S:
                _mean(losses)  # raises before NaN is kept
                self._save(checkpoint)
                saved = now
            if self.progress.is_done:
                break
            began = self._clock.monotonic()
        return self._best()

    def _num_updates(self) -> int:
        return sum(len(self._packs(epoch)) for epoch in range(self._settings.num_epochs))

    def _packs(self, epoch: int) -> list[list[int]]:
        settings = self._settings
        return packed(self._train.examples, settings.batch_tokens, settings.seed, epoch)

    def _packs_left(self) -> Iterator[list[int]]:
        """The rows of each update that is still to do."""
        skipped = self.progress.update
        for epoch in range(self._settings.num_epochs):
            packs = self._packs(epoch)
            yield from packs[skipped:]
            skipped = max(0, skipped - len(packs))

    def _learn(self, pack: Sequence[int]) -> torch.Tensor:
        """The update's loss, of all its rows."""
        training = self._training
        rate = self._rate(self.progress.update)
        for group in training.optimiser.param_groups:
            group["lr"] = rate
        loss = self._joining.joined(self._head, self._backward(pack))
        torch.nn.utils.clip_grad_norm_(self._head.parameters(), self._settings.max_norm)
        training.optimiser.step()
        training.optimiser.zero_grad()
        return loss

    def _backward(self, pack: Sequence[int]) -> torch.Tensor:
        """The loss of this process's share of the rows, whose gradients are left in the head."""
        settings, share = self._settings, self._joining.share(pack)
        if not share:
            return torch.zeros((), device=self._head.device)
        weights = weights_of(
            self._train.chosen(share),
            self._train.chosen(pack),
            num_steps=settings.num_steps,
            step_weight=settings.step_weight,
        )
        batch = self._train.batch(share, self._numbers).to(self._head.device)
        with self._arithmetic():
            loss = loss_of(self._head, self._embedding, batch, weights=weights)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _judge(self, loss: float, tell: Callable[[Moment], None]) -> None:
        if self._joining.is_first:
            tell(self._judged(loss))
        self.progress.is_done = self._joining.agreed(said=self.progress.is_done)

    def _judged(self, loss: float) -> Moment:
        """In float32, as the drafter runs: in bfloat16 the two likeliest may be equal."""
        judgement = judged(self._head, self._embedding, self._valid_batches())
        progress = self.progress
        is_best = judgement.score > progress.best_score
        if is_best:
            progress.best_score, progress.best_update = judgement.score, progress.update
            progress.best_metrics, progress.num_worse = judgement.metrics(), 0
            named = self._head.named_parameters()
            self._training.best = {name: weight.detach().clone() for name, weight in named}
        else:
            progress.num_worse += 1
        is_last = progress.update == self._updates
        progress.is_done = is_last or progress.num_worse >= self._settings.patience
        rate = self._rate(progress.update - 1)
        return Moment(progress.update, self._updates, loss, rate, judgement, is_best)

    def _save(self, checkpoint: Path) -> None:
        if self._joining.is_first:
            self._training.save(checkpoint)

    def _valid_batches(self) -> Iterator[Batch]:
        examples = self._valid.examples[: self._settings.max_valid_rows]
        for pack in packed(examples, self._settings.batch_tokens, self._settings.seed, 0):
            yield self._valid.batch(pack, self._numbers).to(self._head.device)

    def _is_judged(self) -> bool:
        done = self.progress.update
        return done % self._settings.eval_updates == 0 or done == self._updates

    def _rate(self, update: int) -> float:
        settings = self._settings
        return rate_at(
            update, self._updates, peak=settings.learning_rate, warmup_share=settings.warmup_share
        )

    def _arithmetic(self) -> torch.autocast:
        is_short = self._settings.train_dtype is Dtype.BFLOAT16
        return torch.autocast(self._head.device.type, dtype=torch.bfloat16, enabled=is_short)

    def _best(self) -> DraftHead:
        with torch.no_grad():
            for name, weight in self._head.named_parameters():
                weight.copy_(self._training.best[name])
        return self._head.eval().requires_grad_(False)


def _mean(losses: Sequence[torch.Tensor]) -> float:
    mean = float(torch.stack(list(losses)).mean()) if losses else 0.0
    if mean != mean:  # NaN
        raise Fault("the loss is not a number: give a smaller distill.learning_rate")
    return mean
