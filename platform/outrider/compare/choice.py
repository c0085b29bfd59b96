"""The release that a user means by a word: an address, a version, a run or a name. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from outrider.compare.candidate import Candidate
from outrider.compare.name import near
from outrider.core import UserError
from outrider.tracking.registry import NAME, Version, chosen

MIN_ID = 6  # characters of a run's id that tell it


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A release, and what was measured of it, newest first (a run's id: of that run alone)."""

    word: str  # as the user wrote it
    version: Version | None
    candidates: tuple[Candidate, ...]

    @property
    def identity(self) -> str:
        """What its runs have in common."""
        return self.version.fingerprint if self.version else self.candidates[0].identity

    @property
    def params(self) -> Mapping[str, str]:
        """Of the newest run."""
        return self.candidates[0].run.params if self.candidates else {}

    @property
    def title(self) -> str:
        """`models:/outrider/3 (champion)`, or the word."""
        if self.version is None:
            return self.word
        return f"models:/{NAME}/{self.version}"


def address(word: str) -> str:
    """`3` -> `models:/outrider/3`; everything else as it is."""
    return f"models:/{NAME}/{word}" if word.isdecimal() and len(word) < MIN_ID else word


def choose(
    word: str, candidates: Sequence[Candidate], versions: Sequence[Version], key: str
) -> Choice:
    """What `word` means. `key` names the setting in a UserError, which says what is near."""
    uri = address(word.strip())
    if uri.startswith("models:"):
        return _registered(word, uri, candidates, versions)
    found = _with_id(uri, candidates)
    if len(found) == 1:
        return Choice(word=word, version=found[0].version, candidates=(found[0],))
    named = [one for one in candidates if one.name == uri]
    if named:
        same = tuple(one for one in candidates if one.identity == named[0].identity)
        return Choice(word=word, version=named[0].version, candidates=same)
    raise UserError(
        f"{key}: no release, run or contender is called {word!r}{_near(uri, candidates)}"
    )


def _with_id(word: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """Of the run of that id, or of those whose id begins so."""
    whole = [one for one in candidates if one.run.run_id == word]
    if whole or len(word) < MIN_ID:
        return whole
    return [one for one in candidates if one.run.run_id.startswith(word)]


def _registered(
    word: str, uri: str, candidates: Sequence[Candidate], versions: Sequence[Version]
) -> Choice:
    version = chosen(uri, versions)
    same = (one for one in candidates if one.version and one.version.number == version.number)
    return Choice(word=word, version=version, candidates=tuple(same))


def _near(word: str, candidates: Sequence[Candidate]) -> str:
    return near(word, list(dict.fromkeys(one.name for one in candidates)))
