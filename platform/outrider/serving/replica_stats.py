"""What the replicas of each release tell now."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from outrider.serving.messages import Release, ReplicaStats

WAIT_S = 10.0

_LOG = logging.getLogger(__name__)


async def stats_of(releases: Mapping[str, Release]) -> dict[str, list[ReplicaStats]]:
    """By release; empty where no replica answers within some seconds."""
    told = await asyncio.gather(*map(_stats, releases.values()))
    return dict(zip(releases, told, strict=True))


async def _stats(release: Release) -> list[ReplicaStats]:
    try:
        async with asyncio.timeout(WAIT_S):
            return await release.stats()
    except Exception as error:  # noqa: BLE001 - whatever it is, nobody answered
        _LOG.warning("no replica of %s answers: %s", release.name, type(error).__name__)
        return []
