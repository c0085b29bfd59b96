"""Emitted tokens as a client reads them."""

from __future__ import annotations

from collections.abc import Sequence

from outrider.core import Tokenizer, TokenLogprob
from outrider.openai.answer import TokenText


def token_texts(logprobs: Sequence[TokenLogprob], tokenizer: Tokenizer) -> tuple[TokenText, ...]:
    """One entry for each token, its likeliest others inside."""
    return tuple(
        _entry(
            each.token_id,
            each.logprob,
            tokenizer,
            tuple(_entry(token, value, tokenizer) for token, value in each.top),
        )
        for each in logprobs
    )


def _entry(
    token: int, logprob: float, tokenizer: Tokenizer, top: tuple[TokenText, ...] = ()
) -> TokenText:
    text = tokenizer.decode([token])
    return TokenText(text, text.encode("utf-8", "surrogatepass"), logprob, top)
