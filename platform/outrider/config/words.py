"""What the user typed -> overrides that Hydra takes, or an error that says what is near.

A word is checked against the settings' own keys and the choices in `conf/`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum

from outrider.config.folders import Folders
from outrider.config.typed import choose, keys, suggest
from outrider.core import UserError


@dataclass(frozen=True)
class Word:
    """One `key=value` of the command line."""

    key: str
    value: str

    @staticmethod
    def parse(text: str) -> Word:
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise UserError(f"{text!r}: expected key=value (see --help)")
        return Word(key.lstrip("+"), value)  # Hydra's `+key`: there is nothing to add, only to set


def overrides_for(
    job: type, texts: Sequence[str], groups: Mapping[str, str | None], folders: Folders
) -> list[str]:
    """Return Hydra's overrides for what was typed. Raises UserError saying what is near."""
    return [_checked(Word.parse(text), job, groups, folders) for text in texts]


def _checked(word: Word, job: type, groups: Mapping[str, str | None], folders: Folders) -> str:
    if word.key in groups:
        return _choice(word, folders.choices(word.key))
    known = dict(keys(job))
    key = full_key(word.key, list(known), job)
    if key is None:
        raise UserError(f"{word.key}: no such key{_near(word.key, [*known, *groups])}")
    hint = known[key]
    if isinstance(hint, type) and is_dataclass(hint) and not word.value.startswith(("{", "null")):
        raise UserError(f"{key} is a section: set its keys, {key}.{fields(hint)[0].name}=... say")
    return f"{key}={word.value if _is_read_by_hydra(hint, word.value) else _quoted(word.value)}"


def _choice(word: Word, choices: list[str]) -> str:
    if word.value in (*choices, "null"):
        return f"{word.key}={word.value}"
    raise UserError(f"{word.key}={word.value}: no such choice; {choose(word.value, choices)}")


def full_key(short: str, known: list[str], job: type) -> str | None:
    """A key may lose its front: in full, then the job's own section, then the one that ends so."""
    own = job.__name__.removesuffix("Job").lower()
    for candidate in (short, f"{own}.{short}"):
        if candidate in known:
            return candidate
    ends = [key for key in known if key.endswith(f".{short}")]
    if len(ends) > 1:
        raise UserError(f"{short}: more than one key ends so: {', '.join(ends)}")
    return ends[0] if ends else None


def _near(key: str, known: list[str]) -> str:
    """The nearest key in full, else the key whose last name is nearest to the last name given."""
    by_end = {full.rpartition(".")[2]: full for full in reversed(known)}
    whole = suggest(key, known)
    end = suggest(key.rpartition(".")[2], list(by_end))
    if "mean" in whole or "mean" not in end:
        return whole or "; --help lists them"
    nearest = end.removeprefix("; did you mean ").removesuffix("?")
    return f"; did you mean {by_end[nearest]}?"


def _is_read_by_hydra(hint: object, value: str) -> bool:
    """Texts and names are taken as they stand: Hydra's grammar knows no `#`, spaces or commas.

    Numbers, flags and lists go through it; what does not look like one is quoted as well, so that
    the error is about the key and its type and not about the grammar.
    """
    if not isinstance(hint, type) or is_dataclass(hint):
        return True  # a list or a section
    if value == "null" or _is_quoted(value) or value.startswith("${"):
        return True
    is_text = hint is str or issubclass(hint, Enum)
    return not is_text and all(letter.isalnum() or letter in "+-._" for letter in value.strip())


def _is_quoted(value: str) -> bool:
    return len(value) > 1 and value[0] == value[-1] and value[0] in "'\""


def _quoted(value: str) -> str:
    # A backslash is itself unless a quote follows it, at the end too: there it counts double.
    body = re.sub(r"(\\*)('|$)", lambda run: run[1] * 2 + run[2].replace("'", "\\'"), value)
    return f"'{body}'"
