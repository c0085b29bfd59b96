"""What a person reads when the server is ready. Pure."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass

from outrider.config.schema import ServingSettings
from outrider.core import Fault, UserError

WILDCARDS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
QUESTION = "Why does a boat float?"
REASON = re.compile(r"\b(?P<kind>UserError|Fault): (?P<said>.+)")


def url_of(settings: ServingSettings) -> str:
    """Where the server answers, from this machine."""
    host = WILDCARDS.get(settings.host, settings.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{settings.port}"


def model_name(source: str) -> str:
    """A short name for what `model.source` names: what clients call the model."""
    kind, _, rest = source.partition(":")
    place, _, member = rest.partition("#")
    if kind == "hub":
        return place.partition("@")[0]
    if kind == "mlflow":
        return re.split("[@/]", place.removeprefix("models:/"))[0]
    file = member.partition("&")[0] if kind == "wheel" else place
    return file.rstrip("/").rpartition("/")[2].removesuffix(".gguf") or source


@dataclass(frozen=True, kw_only=True)
class Ready:
    """A server that answers."""

    settings: ServingSettings
    model: str
    fingerprint: str
    cpus: int  # of one engine
    run_id: str = ""
    open_command: str = ""
    has_console: bool = False

    @property
    def lines(self) -> list[str]:
        serving, url = self.settings, url_of(self.settings)
        engines = "1 engine" if serving.num_replicas == 1 else f"{serving.num_replicas} engines"
        cores = "1 core" if self.cpus == 1 else f"{self.cpus} cores"
        said = [
            f"ready: {url}/v1 serves {self.model}, release {serving.name}, "
            f"fingerprint {self.fingerprint[:12]}, {engines} of {cores}",
            "",
            self.curl,
            "",
        ]
        if self.has_console:
            said.append(f"console: {url}/console")
        if self.run_id:
            said.append(f"recorded as MLflow run {self.run_id}: {self.open_command}")
        return [*said, "Ctrl-C stops it once the requests in flight have ended"]

    @property
    def curl(self) -> str:
        """A command that works when it is pasted; a key is read from its file, never shown."""
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": QUESTION}],
            "stream": True,
        }
        words = ["curl", "-sN", f"{url_of(self.settings)}/v1/chat/completions"]
        words += ["-H", "content-type: application/json", "-d", json.dumps(body)]
        command = shlex.join(words)
        if self.settings.keys_file:
            file = shlex.quote(self.settings.keys_file)
            command += f""" -H "authorization: Bearer $(grep -m1 '^[^#]' {file})\""""
        return command


def reason_in(message: str) -> UserError | Fault:
    """What a replica died of, out of Serve's message with its traceback."""
    found = list(REASON.finditer(message))
    if found:
        said = found[-1]["said"].strip()
        return UserError(said) if found[-1]["kind"] == "UserError" else Fault(said)
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return Fault(f"Serve gave up: {lines[-1] if lines else 'no reason given'}")
