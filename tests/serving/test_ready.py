"""What a person reads: the URL, a command to paste, why it did not start."""

import json
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from outrider.config.schema import ServingSettings
from outrider.core import Fault, UserError
from outrider.serving.placement import check_cores, cpus_per_replica, most_replicas
from outrider.serving.ready import Ready, model_name, reason_in, url_of


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("hub:Qwen/Qwen3-0.6B@main", "Qwen/Qwen3-0.6B"),
        ("hub:org/name@main#a.gguf", "org/name"),
        ("path:/models/mine/", "mine"),
        ("path:/models/mine.gguf#sha256=00", "mine"),
        ("wheel:llm==1#folder/Small.Q4_1.gguf", "Small.Q4_1"),
        ("wheel:llm==1#folder/Small.gguf&sha256=00", "Small"),
        ("mlflow:models:/name@champion", "name"),
        ("mlflow:models:/name/3", "name"),
    ],
)
def test_a_model_has_a_short_name(source: str, name: str) -> None:
    assert model_name(source) == name


def test_a_url_can_be_opened_from_this_machine() -> None:
    assert url_of(ServingSettings(port=1)) == "http://127.0.0.1:1"
    assert url_of(ServingSettings(host="0.0.0.0", port=1)) == "http://127.0.0.1:1"
    assert url_of(ServingSettings(host="::", port=1)) == "http://[::1]:1"


def ready(settings: ServingSettings) -> Ready:
    return Ready(settings=settings, model="it's", fingerprint="f" * 64, cpus=2)


def test_the_command_can_be_pasted() -> None:
    words = shlex.split(ready(ServingSettings()).curl)
    body = json.loads(words[words.index("-d") + 1])
    assert body["model"] == "it's"
    assert words[:2] == ["curl", "-sN"]


def test_the_console_is_named_where_there_is_one() -> None:
    plain = ready(ServingSettings(port=8123))
    assert "console: http://127.0.0.1:8123/console" in replace(plain, has_console=True).lines
    assert "console" not in "\n".join(plain.lines)


def test_a_key_is_read_from_its_file_and_never_shown(tmp_path: Path) -> None:
    keys = tmp_path / "my keys"
    keys.write_text("# ours\n\nsecret-1\nsecret-2\n")
    shown = ready(ServingSettings(keys_file=str(keys)))
    assert "secret" not in "\n".join(shown.lines)
    typed = shown.curl.replace("curl", "printf '%s\\n'", 1)
    printed = subprocess.run(["bash", "-c", typed], capture_output=True, text=True, check=True)
    assert printed.stdout.splitlines()[-1] == "authorization: Bearer secret-1"


def test_what_a_replica_died_of_is_one_line() -> None:
    trace = "Retrying. Error:\nray::x\n  File a, line 1\noutrider.core.UserError: model.dtype: no\n"
    reason = reason_in(trace)
    assert isinstance(reason, UserError)
    assert str(reason) == "model.dtype: no"
    assert isinstance(reason_in("x\noutrider.core.Fault: broke"), Fault)
    assert str(reason_in("first\nMemoryError: none\n")) == "Serve gave up: MemoryError: none"
    assert "no reason" in str(reason_in(""))


def test_engines_share_the_cores() -> None:
    assert cpus_per_replica(ServingSettings(), 8) == 8
    assert cpus_per_replica(ServingSettings(num_replicas=2, max_replicas=4), 8) == 2
    assert cpus_per_replica(ServingSettings(num_replicas=4), 2) == 1
    assert cpus_per_replica(ServingSettings(num_replicas=4, cpus_per_replica=3), 2) == 3
    assert most_replicas(ServingSettings(num_replicas=3)) == 3
    check_cores(ServingSettings(cpus_per_replica=2), 2)
    with pytest.raises(UserError, match=r"^serving\.cpus_per_replica is 3, this machine has 2"):
        check_cores(ServingSettings(cpus_per_replica=3), 2)
