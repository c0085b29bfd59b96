"""Releases that were registered: one version for each fingerprint, and the names they go by."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from outrider.core import UserError
from outrider.tracking.release_record import ReleaseRecord

NAME = "outrider"  # of the registered model whose versions releases are


class Alias(StrEnum):
    """What a version is now. At most one version has each."""

    CHAMPION = "champion"  # serves
    CHALLENGER = "challenger"  # is to be tried against it
    PREVIOUS = "previous"  # was champion before


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One registered release."""

    number: int
    fingerprint: str
    aliases: tuple[str, ...] = ()
    run_id: str = ""  # of the run that registered it
    created_s: float = 0.0  # seconds since the epoch
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def uri(self) -> str:
        return uri_of(self.number)

    def __str__(self) -> str:
        return f"{self.number} ({', '.join(self.aliases)})" if self.aliases else str(self.number)


class Registry(Protocol):
    """Where releases are registered. Every method raises Fault while the store is away."""

    def register(self, record: ReleaseRecord, run_id: str) -> Version:
        """The version of this fingerprint: looked up first, made only where there is none."""

    def find(self, uri: str) -> Version:
        """`models:/outrider@champion` or `models:/outrider/3`. UserError where there is none."""

    def record(self, version: Version) -> ReleaseRecord:
        """What was registered. Raises Fault where it can't be read."""

    def versions(self) -> Sequence[Version]:
        """All of them, oldest first."""

    def give(self, alias: Alias, number: int) -> None:
        """Name a version as `renamed` says. UserError where there is none of that number."""

    def set_tags(self, number: int, tags: Mapping[str, str]) -> None: ...


_URI = re.compile(rf"models:/{NAME}(?:@(?P<alias>[A-Za-z][\w-]*)|/(?P<number>[1-9]\d*))")


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed release URI: either an alias or a number."""

    alias: str | None = None
    number: int | None = None

    @staticmethod
    def parse(uri: str) -> Address:
        """UserError, which says the two forms, for anything else."""
        found = _URI.fullmatch(uri.strip())
        if found is None:
            raise UserError(
                f"release={uri!r}: a release is written models:/{NAME}@champion or models:/{NAME}/3"
            )
        number = found["number"]
        return Address(found["alias"], int(number) if number else None)


def uri_of(number: int) -> str:
    return f"models:/{NAME}/{number}"


def chosen(uri: str, versions: Sequence[Version]) -> Version:
    """The version that `uri` means. UserError, which lists what there is, where it means none."""
    address = Address.parse(uri)
    for version in versions:
        if version.number == address.number or address.alias in version.aliases:
            return version
    if not versions:
        raise UserError(f"{uri}: no release is registered here yet; bulk and serve register theirs")
    what = "that alias" if address.alias else "that number"
    raise UserError(f"{uri}: no release has {what}; there are {', '.join(map(str, versions))}")


def renamed(aliases: Mapping[str, int], alias: Alias, number: int) -> dict[str, int]:
    """Who has which alias once `number` was given `alias`.

    The champion from before becomes `previous`; a champion is neither challenger nor previous.
    Raises UserError where a champion would become its own challenger.
    """
    champion = aliases.get(Alias.CHAMPION)
    if alias is not Alias.CHAMPION:
        if number == champion:
            raise UserError(f"{uri_of(number)} is the champion: it can't be the {alias} too")
        return {**aliases, alias: number}
    if number == champion:
        return dict(aliases)
    others = {name: held for name, held in aliases.items() if held != number or _is_foreign(name)}
    before = {} if champion is None else {Alias.PREVIOUS.value: champion}
    return {**others, **before, Alias.CHAMPION.value: number}


def _is_foreign(alias: str) -> bool:
    """Whether a person gave it, for purposes of their own."""
    return alias not in set(Alias)
