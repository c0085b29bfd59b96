"""Emitted tokens as a client reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from outrider.core import Tokenizer, TokenLogprob
from outrider.openai.answer import TokenText

PART_OF_A_CHARACTER = "\ufffd"
BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>\Z")  # as sentencepiece writes a byte
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_LETTERS = {  # GPT-2's alphabet: each byte has a letter that can be seen
    **{chr(byte): byte for byte in _PRINTABLE},
    **{chr(256 + index): byte for index, byte in enumerate(_HIDDEN)},
}
_KNOWN: WeakKeyDictionary[Tokenizer, dict[int, str]] = WeakKeyDictionary()


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
    raw = text.encode("utf-8", "surrogatepass")
    if PART_OF_A_CHARACTER in text:  # a client joins the bytes of several tokens
        raw = _bytes_of(_pieces(tokenizer).get(token, ""), otherwise=raw)
    return TokenText(text, raw, logprob, top, token)


def _bytes_of(piece: str, *, otherwise: bytes) -> bytes:
    """The bytes that a piece of a vocabulary stands for, where it is written in one of two ways."""
    byte = BYTE_PIECE.match(piece)
    if byte:
        return bytes.fromhex(byte[1])
    if piece and all(letter in BYTE_LETTERS for letter in piece):
        return bytes(BYTE_LETTERS[letter] for letter in piece)
    return otherwise


def _pieces(tokenizer: Tokenizer) -> dict[int, str]:
    """Turned round once for each tokenizer: a vocabulary is large."""
    if tokenizer not in _KNOWN:
        _KNOWN[tokenizer] = {token: piece for piece, token in tokenizer.vocabulary.items()}
    return _KNOWN[tokenizer]
