"""Which keys the user's words set: in full, by themselves or by a choice of a whole file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path

from outrider.config.comments import document
from outrider.config.folders import SHIPPED
from outrider.config.typed import keys
from outrider.config.words import Word, full_key


def overridden(job: type, groups: Iterable[str], texts: Sequence[str]) -> dict[str, str]:
    """Full key -> the word that set it. A choice of a section's file sets the section's own key.

    `texts` are words that `load` has taken, `groups` the names of what can be chosen.
    """
    chooses = set(groups)
    found: dict[str, str] = {}
    for text in texts:
        word = Word.parse(text)
        set_keys = _chosen(word, job) if word.key in chooses else [_key(word, job)]
        found.update(dict.fromkeys(set_keys, text))
    return found


def _key(word: Word, job: type) -> str:
    return full_key(word.key, [key for key, _ in keys(job)], job) or word.key


def _chosen(word: Word, job: type) -> list[str]:
    """The section; for a file that reaches into many (a preset), the keys in it."""
    sections = [field.name for field in fields(job)]
    if word.key in sections or word.value == "null":
        return [word.key]
    path = SHIPPED / word.key / f"{word.value}.yaml"
    return _keys_of(path) if path.exists() else sections  # a file of the user's: it may set all


def _keys_of(path: Path) -> list[str]:
    return [entry.key for entry in document(path, SHIPPED).entries if not entry.is_section]
