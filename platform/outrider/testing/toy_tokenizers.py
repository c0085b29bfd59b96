"""Tokenizers without a vocabulary file: letters, and bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class LetterTokenizer:
    """One token for each character of an alphabet; the last id is EOS and decodes to nothing."""

    def __init__(self, alphabet: str = "ABCDEFG") -> None:
        self._alphabet = alphabet
        self.eos_id = len(alphabet)

    @property
    def eos_ids(self) -> frozenset[int]:
        return frozenset({self.eos_id})

    @property
    def vocabulary(self) -> Mapping[str, int]:
        letters = {letter: index for index, letter in enumerate(self._alphabet)}
        return {**letters, "<eos>": self.eos_id}

    def encode(self, text: str) -> list[int]:
        return [self._alphabet.index(letter) for letter in text]

    def decode(self, token_ids: list[int]) -> str:
        return "".join(self._alphabet[token] for token in token_ids if token != self.eos_id)


class ByteTokenizer:
    """Each byte is a token; the last id is EOS. Its chat template ends with the last message."""

    eos_ids = frozenset({256})
    vocabulary: Mapping[str, int] = {**{chr(byte): byte for byte in range(256)}, "<eos>": 256}

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, token_ids: list[int]) -> str:
        return bytes(token for token in token_ids if token < 256).decode(errors="replace")  # noqa: PLR2004

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        return self.encode("".join(f"<{m['role']}>{m['content']}" for m in messages))
