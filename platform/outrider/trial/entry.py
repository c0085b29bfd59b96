"""What the user named as `releases`, and the plain decoding that each is compared with. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from outrider.config.schema import BenchJob, DrafterKind, DraftSettings, RuleKind
from outrider.core import UserError
from outrider.tracking.rebuild import Registered

URI = "models:/"
PLAIN = "plain"
SHARED = ("bench", "trial", "criteria", "tracking")  # what no release sets for itself

Compose = Callable[[Sequence[str]], BenchJob]
"""Words -> settings. Raises UserError."""
Rebuild = Callable[[str], tuple[BenchJob, Registered]]
"""A registered release's URI -> the settings that it decodes with. Raises UserError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the table to be: its name, and the settings that it decodes with."""

    name: str
    job: BenchJob
    baseline: str = ""  # name of the plain entry; empty: it is one
    registered: Registered | None = None


def entries(
    releases: Sequence[str], words: Sequence[str], compose: Compose, rebuild: Rebuild
) -> list[Entry]:
    """Each release behind the plain decoding of its model and engine, which comes once.

    `words`: what else was typed, which every release starts from. Raises UserError for a release
    that is not one, comes twice or sets what all share.
    """
    common = compose(words)
    plains: dict[object, Entry] = {}
    found: list[Entry] = []
    for text in releases:
        if text in {one.name for one in found} or text == PLAIN:
            raise UserError(f"trial.releases: {text!r} is there already; give each release once")
        entry = _entry(text, words, common, compose, rebuild)
        plain = _plain(entry.job, plains)
        if plain.name not in {one.name for one in found}:
            found.append(plain)
        found.append(replace(entry, baseline=plain.name))
    _check_rows(found)
    return found


def _entry(
    text: str, words: Sequence[str], common: BenchJob, compose: Compose, rebuild: Rebuild
) -> Entry:
    if text.startswith(URI):
        job, registered = rebuild(text)
        return Entry(name=text, job=job, registered=registered)
    try:
        own = shlex.split(text)
    except ValueError as error:
        raise UserError(f"trial.releases: {text!r}: {error}") from error
    if not own:
        raise UserError('trial.releases: a release is empty; "draft=ngram" says as it is shipped')
    job = compose([*words, *own])
    for section in SHARED:
        if getattr(job, section) != getattr(common, section):
            raise UserError(
                f"trial.releases: {text!r} sets {section}, which all releases share; "
                "model, engine, draft and sampling make a release"
            )
    return Entry(name=text, job=job)


def _plain(job: BenchJob, plains: dict[object, Entry]) -> Entry:
    """Under rule coupled a sampled answer can be compared; plain speed does not know the rule."""
    engine = replace(job.engine, rule=RuleKind.COUPLED)
    key = (job.model, engine)
    if key not in plains:
        name = PLAIN if not plains else f"{PLAIN} {len(plains) + 1}"
        draft = DraftSettings(drafter=DrafterKind.NONE)
        plains[key] = Entry(name=name, job=replace(job, engine=engine, draft=draft))
    return plains[key]


def _check_rows(found: Iterable[Entry]) -> None:
    for entry in found:
        most, rows = max(entry.job.trial.in_flight), entry.job.engine.max_rows
        if most > rows:
            raise UserError(
                f"trial.in_flight: {most} is more than the rows that {entry.name!r} decodes "
                f"together; give engine.max_rows={most} too"
            )


def without_releases(words: Iterable[str]) -> list[str]:
    """The words that each release starts from."""
    return [word for word in words if word.partition("=")[0].lstrip("+") not in NAMES]


NAMES = ("releases", "trial.releases")
