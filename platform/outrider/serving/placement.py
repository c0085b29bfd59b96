"""How many cores an engine gets."""

from __future__ import annotations

from outrider.config.schema import ServingSettings
from outrider.core import UserError


def most_replicas(settings: ServingSettings) -> int:
    """Engines that there may be at once."""
    return max(settings.num_replicas, settings.max_replicas)


def cpus_per_replica(settings: ServingSettings, cores: int) -> int:
    """Ray CPUs and threads of one engine: all of them fit the machine at once."""
    return settings.cpus_per_replica or max(1, cores // most_replicas(settings))


def check_cores(settings: ServingSettings, cores: int) -> None:
    """Raise UserError where one engine asks for more than the machine has."""
    if settings.cpus_per_replica > cores:
        raise UserError(
            f"serving.cpus_per_replica is {settings.cpus_per_replica}, "
            f"this machine has {cores}: lower it"
        )
