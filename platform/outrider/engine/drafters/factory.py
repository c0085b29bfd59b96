"""From settings to a drafter that can do no harm."""

from __future__ import annotations

from outrider.config.schema import DrafterKind, NgramSettings
from outrider.core import Clock, UserError
from outrider.engine.drafters import Drafter, SafeDrafter
from outrider.engine.drafters.composite import CompositeDrafter
from outrider.engine.drafters.corpus import Corpus
from outrider.engine.drafters.guarded import GuardedDrafter
from outrider.engine.drafters.head import HeadDrafter
from outrider.engine.drafters.model import ModelDrafter
from outrider.engine.drafters.ngram import NgramDrafter
from outrider.engine.drafters.none import NoDrafter
from outrider.engine.language_model import LanguageModel

# A short match is worth less than a draft by a model or a head (composite only).
COMPOSITE_MIN_MATCH = 3


def open_drafter(
    kind: DrafterKind | str,
    *,
    vocab_size: int,
    clock: Clock,
    ngram: NgramSettings | None = None,
    model: LanguageModel | None = None,
    head: HeadDrafter | None = None,
    timeout_s: float | None = None,
) -> SafeDrafter:
    """The drafter of that kind, guarded. `vocab_size` is the target's.

    `model` is the draft model of kind `model`, `head` the drafter of kind `head`; kind `composite`
    takes either. Raises UserError for a kind that is not known, and for what is missing.
    """
    ngram = ngram or NgramSettings()

    def guarded(inner: Drafter) -> GuardedDrafter:
        return GuardedDrafter(inner, vocab_size=vocab_size, clock=clock, timeout_s=timeout_s)

    def guarded_ngram() -> GuardedDrafter:
        return guarded(NgramDrafter(ngram, open_corpus(ngram)))

    match _known(kind):
        case DrafterKind.NONE:
            return guarded(NoDrafter())
        case DrafterKind.NGRAM:
            return guarded_ngram()
        case DrafterKind.MODEL:
            return guarded(_by_model(model, vocab_size))
        case DrafterKind.HEAD:
            return guarded(_given(head))
        case DrafterKind.COMPOSITE:
            second = guarded(_by_model(model, vocab_size) if head is None else head)
            min_match = max(ngram.min_match, COMPOSITE_MIN_MATCH)
            return CompositeDrafter(guarded_ngram(), second, min_level=min_match)


def _by_model(model: LanguageModel | None, vocab_size: int) -> ModelDrafter:
    if model is None:
        raise UserError("draft.drafter: this kind needs a draft model: set draft.model")
    return ModelDrafter(model, vocab_size=vocab_size)


def _given(head: HeadDrafter | None) -> HeadDrafter:
    if head is None:
        raise UserError("draft.drafter: this kind needs a draft head: set draft.head.source")
    return head


def open_corpus(settings: NgramSettings) -> Corpus | None:
    """The corpus that the rows of one engine share, or None where it is off."""
    if not settings.corpus or settings.corpus_tokens == 0:
        return None
    if settings.corpus_tokens < 0:
        raise UserError(f"draft.ngram.corpus_tokens={settings.corpus_tokens} must be 0 or more")
    return Corpus(
        settings.corpus_tokens, min_match=settings.min_match, max_match=settings.max_match
    )


def _known(kind: DrafterKind | str) -> DrafterKind:
    try:
        return DrafterKind(kind)
    except ValueError:
        names = ", ".join(known.value for known in DrafterKind)
        raise UserError(f"draft.drafter={kind} is not known: use one of {names}") from None
