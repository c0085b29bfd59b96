"""The command that confirms what a search recommends. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from outrider.config.schema import Part
from outrider.config.words import Word
from outrider.tracking.rebuild import RESOURCE_KEYS
from outrider.tracking.registry import uri_of
from outrider.trial.sweep_record import Outcome

SHARED = ("trial", "criteria", "tracking")  # what the trial has to have as the search had it


def confirm_command(outcome: Outcome, given: Mapping[str, str]) -> str:
    """One line for a shell. `given`: full key -> the word of the search that set it.

    A release that could not be registered is told by its overrides; confirming registers it.
    """
    is_registered = outcome.version is not None
    release = outcome.recommended if outcome.version is None else uri_of(outcome.version)
    releases = f"releases=['{release}']"
    words = " ".join(map(shlex.quote, _words(given, is_registered=is_registered)))
    return (
        f"python jobs/bench.py {_quoted(releases)} part={Part.CONFIRMATION.value} {words}".strip()
    )


def _words(given: Mapping[str, str], *, is_registered: bool) -> Iterator[str]:
    for key, text in given.items():
        section, value = key.partition(".")[0], Word.parse(text).value
        is_off = key == "tracking.enabled" or (key, value) == ("tracking", "off")
        if section == "sweep" or is_off:  # without tracking nothing can be confirmed
            continue
        if section in SHARED or key in RESOURCE_KEYS or not is_registered:
            yield f"{key}={value}"


def _quoted(word: str) -> str:
    """For a shell; in double quotes, where those are enough, as a person would write it."""
    return f'"{word}"' if not set(word) & set('"$`\\!') else shlex.quote(word)
