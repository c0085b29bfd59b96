"""Between stages 2 and 3: who drafts from what the target's layers made of the tokens is told."""

from __future__ import annotations

from outrider.core import Clock, Request, UserError
from outrider.engine.drafters import Drafter, FeatureReader, Read
from outrider.engine.language_model import FeatureModel, LanguageModel
from outrider.engine.round import Round


class FeatureReading:
    """Nothing where the drafter reads nothing.

    Raises UserError where the model was opened without the layers that the drafter reads.
    """

    def __init__(self, model: LanguageModel, drafter: Drafter, clock: Clock) -> None:
        self._clock = clock
        self._pair: tuple[FeatureModel, FeatureReader] | None = None
        if isinstance(drafter, FeatureReader) and drafter.feature_layers:
            self._pair = _giving(model, drafter), drafter

    def run(self, round_: Round) -> None:
        """After the forward, before the commit; its time is the draft's."""
        if self._pair is None:
            return
        started = self._clock.monotonic()
        model, reader = self._pair
        reads = _reads(model, round_)
        if reads:
            reader.read(reads)
        round_.draft_s += self._clock.monotonic() - started


def _giving(model: LanguageModel, drafter: FeatureReader) -> FeatureModel:
    given = model.feature_layers if isinstance(model, FeatureModel) else ()
    if not isinstance(model, FeatureModel) or given != drafter.feature_layers:
        raise UserError(
            f"drafter {drafter.name} reads layers {drafter.feature_layers} of the target, "
            f"which was opened with {given or 'none'}"
        )
    return model


def _reads(model: FeatureModel, round_: Round) -> list[Read]:
    features, reads, begin = model.features, [], 0
    for turn in round_.turns:
        tokens = turn.inputs
        end = begin + len(tokens)
        if _may_ever_draft(turn.row.request):
            row = turn.row
            reads.append(Read(row.row_id, row.num_computed, tokens, features[begin:end]))
        begin = end
    return reads


def _may_ever_draft(request: Request) -> bool:
    return request.speculation.enabled and request.speculation.max_draft_length != 0
