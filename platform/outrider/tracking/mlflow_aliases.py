"""Aliases of registered models in MLflow: read, moved, and the head's beside its release's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outrider.tracking import heads
from outrider.tracking.registry import Alias, renamed

FINGERPRINT_TAG = "fingerprint"
ABSENT = "RESOURCE_DOES_NOT_EXIST"


def aliases_of(client: Any, name: str) -> dict[str, int]:
    """Alias -> version of the model `name`; none where there is no such model."""
    try:
        found = client.get_registered_model(name).aliases
    except Exception as error:
        if getattr(error, "error_code", "") != ABSENT:
            raise
        return {}
    return {alias: int(number) for alias, number in found.items()}


def give_alias(client: Any, name: str, alias: Alias, number: int) -> None:
    """As `renamed` says. The champion last: cut short, the same call once more does the rest."""
    before = aliases_of(client, name)
    after = renamed(before, alias, number)
    for given in sorted(after, key=lambda given: given == Alias.CHAMPION):
        if before.get(given) != after[given]:
            client.set_registered_model_alias(name, given, str(after[given]))
    for gone in before.keys() - after.keys():
        client.delete_registered_model_alias(name, gone)


def oldest_with(client: Any, name: str, fingerprint: str) -> int | None:
    """The oldest version of the model `name` with this fingerprint."""
    wanted = f"name = '{name}' AND tags.`{FINGERPRINT_TAG}` = '{fingerprint}'"
    numbers = [int(each.version) for each in client.search_model_versions(wanted)]
    return min(numbers, default=None)


def crown_head(client: Any, release_tags: Mapping[str, str]) -> None:
    """The head that the champion drafts with is the champion of heads.

    `release_tags`: of the release's version. Nothing for one without a head that is registered.
    """
    digest = release_tags.get("lineage.draft_weights", "")
    number = oldest_with(client, heads.NAME, digest) if digest else None
    if number is not None:
        give_alias(client, heads.NAME, Alias.CHAMPION, number)
