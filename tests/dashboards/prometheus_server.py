"""A real Prometheus on a free port, which looks at one page every second."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import asked
import httpx2 as httpx
import yaml

BINARY = shutil.which("prometheus")


class PrometheusServer:
    """Of the committed scrape config and rules. Close it."""

    def __init__(self, folder: Path, target: str) -> None:
        """`target`: host and port of the gateway; `folder` for what it writes."""
        assert BINARY is not None
        config = folder / "prometheus.yml"
        config.write_text(yaml.safe_dump(_config(target)), encoding="utf-8")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.url = f"http://{address}"
        words = [
            BINARY,
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address={address}",
            "--log.level=error",
        ]
        self._log = (folder / "prometheus.log").open("w")
        self._process = subprocess.Popen(words, stdout=self._log, stderr=subprocess.STDOUT)
        self._client = httpx.Client(base_url=self.url, timeout=10)

    def __enter__(self) -> PrometheusServer:
        until = time.monotonic() + 30
        while not self._is_ready():
            assert self._process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._process.terminate()
        self._process.wait(timeout=30)
        self._log.close()

    def values(self, query: str) -> list[float]:
        """Of its series now."""
        return [float(each["value"][1]) for each in self._get("query", query=query)["result"]]

    def rules(self) -> list[dict[str, Any]]:
        """As it evaluated them last."""
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, path: str, **words: str) -> dict[str, Any]:
        answer = self._client.get(f"/api/v1/{path}", params=words).json()
        assert answer["status"] == "success", (words, answer)
        return dict(answer["data"])

    def _is_ready(self) -> bool:
        try:
            return bool(self._client.get("/-/ready").is_success)
        except httpx.TransportError:
            return False


def _config(target: str) -> dict[str, Any]:
    folder = asked.FOLDER / "prometheus"
    written = dict(yaml.safe_load((folder / "scrape.yml").read_text(encoding="utf-8")))
    (job,) = written["scrape_configs"]
    job |= {"scrape_interval": "1s", "scrape_timeout": "1s"}
    job["static_configs"] = [{"targets": [target]}]
    written["global"] = {"evaluation_interval": "1s"}
    written["rule_files"] = [str(folder / "rules.yml"), str(folder / "alerts.yml")]
    return written
