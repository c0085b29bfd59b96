"""The console of a gateway, built where the gateway runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from outrider.config.schema import ConsoleSettings
from outrider.console.assets import read_assets
from outrider.console.bulk_jobs import LitJobs
from outrider.console.console import Beside, Console
from outrider.console.links import KeptRuns, runs_view
from outrider.console.ports import NoBulkJobs, NoRollouts
from outrider.console.rollouts import StoredRollouts
from outrider.serving.ray_kept import RayKept


@dataclass(frozen=True, kw_only=True)
class ConsoleRecipe:
    """Picklable. What is not there (a cluster has no database or beacons of ours) is not shown."""

    settings: ConsoleSettings
    store: str = ""  # where runs are recorded, as `tracking.uri` names it; empty: nowhere

    def __call__(self) -> Console:
        return Console(self.settings, self.beside, read_assets())

    @property
    def beside(self) -> Beside:
        chosen = self.settings
        return Beside(
            rollouts=StoredRollouts(chosen.database, chosen.url)
            if chosen.database
            else NoRollouts(),
            jobs=LitJobs(Path(chosen.beacons_dir)) if chosen.beacons_dir else NoBulkJobs(),
            runs=KeptRuns(RayKept(), runs_view(chosen.mlflow_url, self.store)),
        )
