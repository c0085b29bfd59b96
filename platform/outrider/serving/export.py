"""A server as files: a Serve config, and a RayService for KubeRay. Pure but for `write`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from outrider.config.schema import ServeAction, ServeJob
from outrider.config.typed import plain
from outrider.serving.placement import most_replicas

BUILDERS = "outrider.entry"
GATEWAY = "gateway"
SECRET = "outrider-keys"
PLACES = {  # in a pod
    "keys": "/etc/outrider",
    "requests": "/var/log/outrider",
    "cache": "/var/cache/outrider",
}
HEAD_CPUS, HEAD_MEMORY = "2", "4Gi"
WIDTH = 1000  # characters of a line: nothing is folded

SERVE_TITLE = "# serve deploy {path}\n"
KUBE_TITLE = f"""\
# kubectl create secret generic {SECRET} --from-file=keys --from-file=admin-keys
# kubectl apply -f {{path}}
# image and memory: export_image=..., export_memory=...; keys and admin-keys: one key a line.
"""


@dataclass(frozen=True, kw_only=True)
class Export:
    """What is exported, with what only the exporting machine could work out."""

    job: ServeJob
    fingerprint: str
    cpus: int  # of one engine
    created: int  # seconds since 1970
    ray_version: str

    def serve_config(self) -> dict[str, Any]:
        """What `serve deploy` takes (`ray.serve.schema.ServeDeploySchema`)."""
        return _serve_config(self, replace(self.job, action=ServeAction.RUN), "HeadOnly")

    def ray_service(self) -> dict[str, Any]:
        """A RayService (KubeRay, ray.io/v1) that listens on every pod, with keys from a secret."""
        serving = replace(
            self.job.serving,
            host="0.0.0.0",
            keys_file=f"{PLACES['keys']}/keys",
            admin_keys_file=f"{PLACES['keys']}/admin-keys",
            log_dir=PLACES["requests"],
        )
        job = replace(self.job, action=ServeAction.RUN, serving=serving)
        config = _yaml(_serve_config(self, job, "EveryNode"))
        name = self.job.serving.name.lower().replace("_", "-").strip("-")
        return {
            "apiVersion": "ray.io/v1",
            "kind": "RayService",
            "metadata": {"name": f"outrider-{name}".rstrip("-")},
            "spec": {"serveConfigV2": config, "rayClusterConfig": self._cluster()},
        }

    def write(self, folder: Path) -> list[Path]:
        """Write both files and return their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        texts = {
            folder / "serve.yaml": (SERVE_TITLE, self.serve_config()),
            folder / "rayservice.yaml": (KUBE_TITLE, self.ray_service()),
        }
        for path, (title, document) in texts.items():
            path.write_text(title.format(path=path) + _yaml(document), encoding="utf-8")
        return list(texts)

    def _cluster(self) -> dict[str, Any]:
        least, most = self.job.serving.num_replicas, most_replicas(self.job.serving)
        return {
            "rayVersion": self.ray_version,
            "enableInTreeAutoscaling": most > least,
            "headGroupSpec": {
                "rayStartParams": {"dashboard-host": "0.0.0.0", "num-cpus": "0"},
                "template": self._pod("ray-head", HEAD_CPUS, HEAD_MEMORY, self._head_ports()),
            },
            "workerGroupSpecs": [
                {
                    "groupName": "engines",
                    "replicas": least,
                    "minReplicas": least,
                    "maxReplicas": most,
                    "rayStartParams": {"num-cpus": str(self.cpus)},
                    "template": self._pod(
                        "ray-worker", str(self.cpus), self.job.export_memory, self._worker_ports()
                    ),
                }
            ],
        }

    def _head_ports(self) -> list[dict[str, Any]]:
        ports = {"gcs-server": 6379, "dashboard": 8265, "client": 10001}
        named = [{"name": name, "containerPort": port} for name, port in ports.items()]
        return [*named, *self._worker_ports()]

    def _worker_ports(self) -> list[dict[str, Any]]:
        return [{"name": "serve", "containerPort": self.job.serving.port}]

    def _pod(self, name: str, cpus: str, memory: str, ports: list[dict[str, Any]]) -> Any:
        amount = {"cpu": cpus, "memory": memory}
        container = {
            "name": name,
            "image": self.job.export_image,
            "ports": ports,
            "resources": {"requests": amount, "limits": dict(amount)},
            "env": [{"name": "OUTRIDER_CACHE", "value": PLACES["cache"]}],
            "volumeMounts": [
                {
                    "name": volume,
                    "mountPath": path,
                    **({"readOnly": True} if volume == "keys" else {}),
                }
                for volume, path in PLACES.items()
            ],
        }
        volumes = [
            {"name": "keys", "secret": {"secretName": SECRET}},
            {"name": "requests", "emptyDir": {}},
            {"name": "cache", "emptyDir": {}},
        ]
        return {"spec": {"containers": [container], "volumes": volumes}}


def _serve_config(export: Export, job: ServeJob, location: str) -> dict[str, Any]:
    settings = plain(job)
    release_args = {"settings": settings, "cpus": export.cpus}
    gateway_args = {
        "settings": settings,
        "fingerprint": export.fingerprint,
        "created": export.created,
    }
    return {
        "proxy_location": location,
        "http_options": {"host": job.serving.host, "port": job.serving.port},
        "logging_config": {"enable_access_log": False, "log_level": "WARNING"},
        "applications": [
            _application(f"release-{job.serving.name}", None, "release", release_args),
            _application(GATEWAY, "/", "gateway", gateway_args),
        ],
    }


def _application(
    name: str, route: str | None, builder: str, args: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "name": name,
        "route_prefix": route,
        "import_path": f"{BUILDERS}:{builder}",
        "args": dict(args),
    }


class _Dumper(yaml.SafeDumper):
    """Without anchors; a text of many lines as a block."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def _yaml(document: Mapping[str, Any]) -> str:
    return yaml.dump(
        dict(document), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000
    )
