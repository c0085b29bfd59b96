"""Stage 2 of a round: one ragged forward over the committed and drafted tokens of all rows."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from outrider.core import Clock
from outrider.engine.block import ScoredBlock
from outrider.engine.language_model import LanguageModel, RowSlice
from outrider.engine.round import Round, Turn


class ScoreStage:
    """Gives each row that samples its scored block."""

    def __init__(self, model: LanguageModel, clock: Clock, *, vocab_size: int) -> None:
        self._model = model
        self._clock = clock
        self._vocab_size = vocab_size

    def run(self, round_: Round) -> None:
        """Set the blocks of `round_`."""
        started = self._clock.monotonic()
        round_.was_unprepared = not self._model.is_prepared(round_.num_tokens)
        scores = self._scores([_row_slice(turn) for turn in round_.turns])
        best = scores.argmax(axis=-1)
        begin = 0
        for turn in round_.turns:
            if turn.slot.samples:
                end = begin + 1 + len(turn.proposal.tokens)
                turn.block = ScoredBlock(
                    turn.row, turn.proposal, scores[begin:end], best[begin:end]
                )
                begin = end
        round_.score_s = self._clock.monotonic() - started

    def _scores(self, rows: list[RowSlice]) -> NDArray[np.floating]:
        """Logits [sum of num_logits, vocab] of what the tokenizer knows."""
        logits = self._model.forward(rows)
        # bfloat16 has no numpy type; anything else is looked at in place.
        widened = logits.float() if logits.dtype is torch.bfloat16 else logits
        scores: NDArray[np.floating] = widened.numpy(force=True)
        return scores[:, : self._vocab_size]


def _row_slice(turn: Turn) -> RowSlice:
    return RowSlice(
        tokens=turn.inputs,
        past_length=turn.row.num_computed,
        blocks=turn.row.table.blocks,
        num_logits=1 + len(turn.proposal.tokens) if turn.slot.samples else 0,
    )
