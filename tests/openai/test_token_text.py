"""Bytes of the tokens, joined, are the bytes of the text, also where a character has several."""

from __future__ import annotations

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from outrider.core import TokenLogprob
from outrider.models.tokenizer import HfTokenizer
from outrider.openai.token_text import token_texts


def byte_level() -> Tokenizer:
    """One token for each byte, as GPT-2's tokenizers write bytes."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE({letter: i for i, letter in enumerate(alphabet)}, []))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return made


def byte_fallback() -> Tokenizer:
    """One token for each byte, as sentencepiece writes bytes."""
    pieces = {f"<0x{byte:02X}>": byte for byte in range(256)}
    made = Tokenizer(models.BPE(pieces, [], byte_fallback=True))
    made.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return made


@pytest.mark.parametrize("made", [byte_level(), byte_fallback()], ids=["gpt2", "sentencepiece"])
@pytest.mark.parametrize("text", ["plain", "é, 世界 and 🦊", "\x00\xad\x7f", "\ufffd"])
def test_bytes_of_tokens_join_to_the_text(made: Tokenizer, text: str) -> None:
    tokenizer = HfTokenizer(PreTrainedTokenizerFast(tokenizer_object=made), frozenset())
    tokens = tokenizer.encode(text)
    assert len(tokens) == len(text.encode())
    said = token_texts([TokenLogprob(token, -1.0, ((token, -1.0),)) for token in tokens], tokenizer)
    assert b"".join(each.raw for each in said) == text.encode()
    assert b"".join(each.top[0].raw for each in said) == text.encode()
