"""The whole HTTP API over engines in this process, on a free port of the loopback address."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import uvicorn

from outrider.config.schema import EngineSettings, ServingSettings
from outrider.core import SamplingParams, UserError
from outrider.serving.api import Service, create_api
from outrider.serving.deployer import LocalDeployer
from outrider.serving.fleet import open_fleet
from outrider.serving.kept import Card, Kept, MemoryKept
from outrider.serving.local import LocalRelease
from outrider.serving.ports import OpenEngine
from outrider.serving.replica import Replica
from outrider.serving.request_entry import RequestEntry
from outrider.serving.service_recipe import ServiceRecipe
from outrider.testing import AlphabetEngine

SETTINGS = ServingSettings(port=0)


@dataclass
class Site:
    """A server in a thread. Close it."""

    engine: AlphabetEngine = field(default_factory=AlphabetEngine)
    settings: ServingSettings = SETTINGS
    num_replicas: int = 1
    service_fields: dict[str, object] = field(default_factory=dict)
    log: list[RequestEntry] = field(default_factory=list)
    engines: Mapping[str, OpenEngine] = field(default_factory=dict)  # of what may be deployed
    kept: Kept = field(default_factory=MemoryKept)
    recipe: ServiceRecipe | None = None  # None: a service that keeps `log` and shows no figures

    def __post_init__(self) -> None:
        self.replicas = [self._replica(self.engine, f"r{i}") for i in range(self.num_replicas)]
        self.release = LocalRelease("main", self.replicas)
        self.fleet = open_fleet(
            "main",
            Card(fingerprint="fp"),
            owner="site",
            deployer=LocalDeployer(self._make, [self.release]),
            kept=self.kept,
            most_calls=1000,
            deadline_s=self.settings.deadline_s,
        )
        service = self.recipe(self.fleet) if self.recipe else self._service()
        service = replace(service, **self.service_fields)  # type: ignore[arg-type]
        config = uvicorn.Config(
            create_api(service), port=self.settings.port, log_level="error", access_log=False
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]

    def _service(self) -> Service:
        return Service(
            fleet=self.fleet,
            settings=self.settings,
            model="alphabet",
            defaults=SamplingParams(max_tokens=64),
            created=1,
            log=self.log.append,
        )

    def _make(self, name: str, settings: object) -> LocalRelease:
        """What `deploy` starts: it knows the engine by the release's name."""
        if name not in self.engines:
            raise UserError(f"model.source: there is no engine for {name}")
        replica = self._replica(self.engines[name], f"{name}-r0")
        self.replicas.append(replica)
        return LocalRelease(name, [replica])

    def _replica(self, engine: OpenEngine, name: str) -> Replica:
        rows = EngineSettings(max_rows=getattr(engine, "max_rows", 16))
        return Replica(engine, self.settings, rows, name=name, draw_seed=lambda: 7)

    def _run(self) -> None:
        asyncio.run(self.server.serve())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self.server.should_exit = True
        self.thread.join(timeout=30)
        for replica in self.replicas:
            replica.close()

    def __enter__(self) -> Site:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
