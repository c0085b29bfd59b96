"""`hub:` against a small hub on this machine: what is asked for, checked, and said in failure."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from outrider.core import Fault, UserError
from outrider.models.files import check_folder
from outrider.models.hub import fetch_snapshot
from outrider.models.source import HubSource

COMMIT = "c" * 40
SOURCE = HubSource(repository="org/tiny", revision="main")


@dataclass
class SmallHub:
    """One repository, `org/tiny`, in the hub's wire format; weights are large files."""

    files: dict[str, bytes]
    asked: list[str] = field(default_factory=list)
    url: str = ""
    lie: bool = False  # serve weights that are not what their digest says

    def headers(self, name: str) -> dict[str, str]:
        content = self.files[name]
        large = name.endswith((".safetensors", ".gguf", ".bin"))
        digest = (hashlib.sha256 if large else hashlib.sha1)(content).hexdigest()
        return {
            "ETag": f'"{digest}"',
            "X-Repo-Commit": COMMIT,
            "Content-Length": str(len(content)),
        }

    def tree(self) -> list[dict[str, object]]:
        return [
            {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
            for name, content in self.files.items()
        ]

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body for a path of the hub."""
        if not path.startswith(("/api/models/org/tiny/", "/org/tiny/")):
            return 404, {"X-Error-Code": "RepoNotFound"}, b""
        if path.startswith("/api/"):
            return 200, {}, json.dumps(self.tree() if "/tree/" in path else self.info()).encode()
        name = path.rpartition("/resolve/")[2].partition("/")[2]
        if name not in self.files:
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        self.asked.append(name)
        return 200, self.headers(name), self.content(name)

    def content(self, name: str) -> bytes:
        content = self.files[name]
        if self.lie and name.endswith(".safetensors"):
            return content[:-1] + bytes([content[-1] ^ 1])
        return content

    def info(self) -> dict[str, object]:
        siblings = [{"rfilename": name} for name in self.files]
        return {"id": "org/tiny", "sha": COMMIT, "siblings": siblings}


def handler_of(hub: SmallHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(with_body=False)

        def do_GET(self) -> None:
            self.answer(with_body=True)

        def answer(self, *, with_body: bool) -> None:
            status, headers, body = hub.answer(self.path.split("?")[0])
            self.send_response(status)
            for key, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(key, value)
            self.end_headers()
            if with_body:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """The test says what matters."""

    return Handler


@pytest.fixture
def hub(tiny_folder: Path) -> Iterator[SmallHub]:
    hub = SmallHub({path.name: path.read_bytes() for path in tiny_folder.iterdir()})
    hub.files |= {
        "pytorch_model.bin": b"\x80",
        "modeling.py": b"raise SystemExit",
        "README.md": b"",
    }
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(hub))
    hub.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    serving.start()
    yield hub
    server.shutdown()
    serving.join()
    server.server_close()


def fetch(hub: SmallHub, tmp_path: Path, source: HubSource = SOURCE) -> Path:
    folder = tmp_path / "folder"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    fetch_snapshot(source, folder, downloads=tmp_path / "downloads", endpoint=hub.url)
    return folder


def test_a_snapshot_is_a_whole_model_without_pickles_or_code(hub: SmallHub, tmp_path: Path) -> None:
    folder = fetch(hub, tmp_path)
    check_folder(folder)
    assert not {"pytorch_model.bin", "modeling.py"} & {path.name for path in folder.iterdir()}
    assert not {"pytorch_model.bin", "modeling.py"} & set(hub.asked)
    assert not any(path.is_symlink() for path in folder.iterdir())


def test_weights_that_are_not_what_the_hub_announced_are_refused(
    hub: SmallHub, tmp_path: Path
) -> None:
    hub.lie = True
    with pytest.raises(Fault, match="sha256"):
        fetch(hub, tmp_path)


def test_one_gguf_can_be_named(hub: SmallHub, tmp_path: Path) -> None:
    hub.files["q/tiny.gguf"] = b"GGUF..."
    source = HubSource(repository="org/tiny", revision="main", member="q/tiny.gguf")
    assert (fetch(hub, tmp_path, source) / "tiny.gguf").read_bytes() == b"GGUF..."
    assert "model.safetensors" not in hub.asked


def test_a_file_or_repository_that_is_not_there_is_one_line(hub: SmallHub, tmp_path: Path) -> None:
    no_file = HubSource(repository="org/tiny", revision="main", member="none.gguf")
    with pytest.raises(UserError, match=r"none\.gguf"):
        fetch(hub, tmp_path, no_file)
    with pytest.raises(UserError, match="org/none@main") as refusal:
        fetch(hub, tmp_path, HubSource(repository="org/none", revision="main"))
    assert "\n" not in str(refusal.value)


def test_a_hub_that_does_not_answer_is_one_line_with_a_way_out(
    hub: SmallHub, tmp_path: Path
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused at once
        hub.url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(Fault, match="path:") as fault:
            fetch(hub, tmp_path)
    assert "\n" not in str(fault.value)
