"""What a gateway works with, built where the gateway runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from outrider.config.schema import EngineSettings, SamplingSettings, ServingSettings
from outrider.core import SamplingParams
from outrider.serving.addition import MakeAddition
from outrider.serving.api import Service
from outrider.serving.fleet import Fleet
from outrider.serving.gateway_metrics import GatewayMetrics
from outrider.serving.guard_metrics import GuardMetrics
from outrider.serving.keys import Keys
from outrider.serving.metrics_page import MetricsPage
from outrider.serving.request_entry import RequestEntry
from outrider.serving.request_log import RequestLog
from outrider.serving.watch import Watch


@dataclass(frozen=True, kw_only=True)
class ServiceRecipe:
    """Picklable. Keys are read from their files in the gateway, never sent."""

    settings: ServingSettings
    engine: EngineSettings
    sampling: SamplingSettings
    model: str  # name that clients see
    created: int  # seconds since 1970
    additions: tuple[MakeAddition, ...] = ()  # what else is served: made in the gateway

    def __call__(self, fleet: Fleet) -> Service:
        watch = Watch(lambda: fleet.desk.releases, self.settings)
        additions = tuple(make() for make in self.additions)
        page = MetricsPage(
            self.model, (GuardMetrics(watch.told), GatewayMetrics(fleet.desk), *additions)
        )
        log = self._request_log()

        def ended(entry: RequestEntry) -> None:
            page.see(entry)
            if log is not None:
                log.add(entry)

        return Service(
            fleet=fleet,
            settings=self.settings,
            model=self.model,
            defaults=self.defaults,
            created=self.created,
            keys=Keys.read(self.settings.keys_file, "serving.keys_file"),
            admin_keys=Keys.read(self.settings.admin_keys_file, "serving.admin_keys_file"),
            log=ended,
            metrics=page.render,
            watch=watch,
            additions=additions,
            close=log.close if log is not None else lambda: None,
        )

    def _request_log(self) -> RequestLog | None:
        settings = self.settings
        if not (settings.log_requests and settings.log_dir):
            return None
        return RequestLog(
            Path(settings.log_dir),
            rows=settings.log_rows,
            period_s=settings.log_period_s,
            with_text=settings.log_prompts,
        )

    @property
    def defaults(self) -> SamplingParams:
        """Where a request is silent."""
        return SamplingParams(
            temperature=self.sampling.temperature,
            top_p=self.sampling.top_p,
            top_k=self.sampling.top_k,
            min_p=self.sampling.min_p,
            max_tokens=self.sampling.max_tokens,
            min_tokens=self.sampling.min_tokens,
            seed=self.engine.seed,
        )
