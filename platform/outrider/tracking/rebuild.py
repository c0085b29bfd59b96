"""A job that decodes as a registered release did; what no longer matches is refused by name."""

from __future__ import annotations

import json
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version as installed
from typing import Any, TypeVar

from outrider.config.limits import validate
from outrider.config.schema import Accepted, BenchJob, BulkJob, ServeJob
from outrider.config.typed import plain, typed
from outrider.core import UserError
from outrider.tracking.fingerprint import differences
from outrider.tracking.registry import Registry, Version
from outrider.tracking.release import RESOURCES, Release
from outrider.tracking.release_record import SECTIONS, ReleaseRecord

JobT = TypeVar("JobT", BulkJob, ServeJob, BenchJob)

RESOURCE_KEYS = frozenset(f"{part}.{name}" for part, names in RESOURCES.items() for name in names)
DIGESTS = ("weights", "tokenizer", "chat_template")  # of a model
SHORT = 12  # digits of a digest that are shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A release that a job is to decode with."""

    version: Version
    record: ReleaseRecord

    @classmethod
    def found(cls, registry: Registry, uri: str) -> Registered:
        """UserError where there is none, Fault where the registry can't be read."""
        version = registry.find(uri)
        return cls(version=version, record=registry.record(version))

    def rebuilt(self, job: JobT, given: Collection[str]) -> JobT:
        """`job` with the recorded sections; resources that the user gave stay as given.

        An alias becomes the version that it means now, so that what is written down lasts.
        Raises UserError where this engine is another one than the release's.
        """
        self._check_engine()
        config = json.loads(json.dumps(self.record.config))
        for key in RESOURCE_KEYS & set(given):
            section, name = key.split(".")
            config[section][name] = plain(getattr(getattr(job, section), name))
        hints = typing.get_type_hints(type(job))
        parts: dict[str, Any] = {name: typed(hints[name], config[name], name) for name in SECTIONS}
        made = replace(job, release=self.version.uri, **parts)
        validate(made)
        return made

    def confirmed(self, release: Release, accept: Collection[Accepted] = ()) -> Release:
        """`release`, which was made here, if it is the recorded one; it carries the version's tag.

        Raises UserError that names all that differs: weights, tokenizers, templates, lock.
        """
        found = list(self._differing(release, accept))
        if not found and release.fingerprint != self.record.fingerprint:
            found = differences(self.record.settings, release.settings) or ["its fingerprint"]
        if found:
            raise UserError(f"{self.version.uri} can't be rebuilt here: {'; '.join(found)}")
        return release.tagged({"release.version": str(self.version.number)})

    def _check_engine(self) -> None:
        was, here = self.record.settings.get("engine", {}).get("version"), installed("outrider")
        if was != here:
            raise UserError(
                f"{self.version.uri} can't be rebuilt here: engine.version is {here}, "
                f"registered {was}"
            )

    def _differing(self, release: Release, accept: Collection[Accepted]) -> Iterator[str]:
        was, here = _digests(self.record.settings), _digests(release.settings)
        for name in here | was:
            yield from _differs(name, here.get(name), was.get(name))
        if Accepted.LOCK not in accept:
            lock = _differs("requirements.lock", release.lock_sha256, self.record.lock_sha256)
            yield from (f"{said} (accept=[lock] lets it differ)" for said in lock)


def check_words(uri: str, given: Mapping[str, str]) -> None:
    """Raise UserError for a word that says otherwise than the release. `given`: key -> word."""
    for key, word in given.items():
        if key.partition(".")[0] in SECTIONS and key not in RESOURCE_KEYS:
            name = word.partition("=")[0].lstrip("+")
            shown = key if key.endswith(name) else f"{word} ({key})"
            raise UserError(
                f"{shown}: release={uri} says what decodes; leave it out, or leave out release"
            )


def _digests(settings: Mapping[str, Any]) -> dict[str, str]:
    """Of the target and, where there is one, of the draft model or the draft head."""
    draft = settings.get("draft", {})
    models = {"model": settings.get("model"), "draft.model": draft.get("model")}
    found = {
        f"{place}.{name}": str(model.get(name) or "")
        for place, model in models.items()
        if model
        for name in DIGESTS
    }
    if "head" in draft:
        found["draft.head.weights"] = str(draft["head"]["weights"])
    return found


def _differs(name: str, here: str | None, was: str | None) -> Iterator[str]:
    if here != was:
        yield f"{name} is {_short(here)}, registered {_short(was)}"


def _short(digest: str | None) -> str:
    return digest[:SHORT] if digest else "none"
