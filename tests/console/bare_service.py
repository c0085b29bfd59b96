"""A service without a server: its desk, its fleet and its releases, for who only looks at it."""

from __future__ import annotations

from collections.abc import Mapping

from outrider.config.schema import ServingSettings
from outrider.core import SamplingParams
from outrider.serving.deployer import Deployer
from outrider.serving.fleet import open_fleet
from outrider.serving.kept import Card, MemoryKept
from outrider.serving.messages import Release
from outrider.serving.service import Service


def bare_service(deployer: Deployer, releases: Mapping[str, Release]) -> Service:
    """Main is stable, the others are beside it. Fingerprints are `fp-` and the name."""
    fleet = open_fleet(
        "main",
        Card(fingerprint="fp-main"),
        owner="test",
        deployer=deployer,
        kept=MemoryKept(),
        most_calls=10,
        deadline_s=60.0,
    )
    for name, release in releases.items():
        fleet.cards[name] = Card(fingerprint=f"fp-{name}")
        fleet.desk.releases[name] = release
    return Service(
        fleet=fleet,
        settings=ServingSettings(),
        model="alphabet",
        defaults=SamplingParams(),
        created=1,
    )
