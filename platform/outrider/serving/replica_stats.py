"""What the replicas of each release tell now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from outrider.serving.messages import Release, ReplicaStats

WAIT_S = 10.0

_LOG = logging.getLogger(__name__)


async def stats_of(
    releases: Mapping[str, Release], *, wait_s: float = WAIT_S
) -> dict[str, list[ReplicaStats]]:
    """By release; empty where not all its replicas answer within `wait_s`."""
    told = await asyncio.gather(*(_stats(release, wait_s) for release in releases.values()))
    return dict(zip(releases, told, strict=True))


async def _stats(release: Release, wait_s: float) -> list[ReplicaStats]:
    try:
        async with asyncio.timeout(wait_s):
            return await release.stats()
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody answered
        _LOG.warning("no replica of %s answers: %s", release.name, type(error).__name__)
        return []
