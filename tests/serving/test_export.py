"""A server as files: what Serve and KubeRay are given, and that Serve really takes it."""

import json
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml

from outrider.cluster.environment import prepare_environment
from outrider.config.load import load
from outrider.config.schema import ServeAction, ServeJob
from outrider.core import UserError
from outrider.serving.export import Export

SERVE = Path(sys.executable).with_name("serve")


def export(*words: str) -> Export:
    return Export(
        job=load(ServeJob, "serve", ["action=export", *words]),
        fingerprint="f" * 64,
        cpus=1,
        created=7,
        ray_version="2.60.0",
    )


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_both_files_hold_a_config_that_serve_knows(tmp_path: Path) -> None:
    prepare_environment()
    from ray.serve.schema import ServeDeploySchema

    written = export("name=blue", "port=8123").write(tmp_path / "out")
    first, second = (yaml.safe_load(path.read_text()) for path in written)
    for config in (first, yaml.safe_load(second["spec"]["serveConfigV2"])):
        schema = ServeDeploySchema.model_validate(config)
        assert [app.name for app in schema.applications] == ["release-blue", "gateway"]
        assert [app.route_prefix for app in schema.applications] == [None, "/"]
        assert schema.http_options.port == 8123


def test_builders_read_back_what_was_exported() -> None:
    from outrider.entry import gateway, release

    made = export("num_replicas=2", "max_rows=3", "draft=fixed")
    apps = made.serve_config()["applications"]
    asked = json.loads(json.dumps(apps[0]["args"]))  # nothing but plain data
    deployment = release(asked)._bound_deployment
    assert deployment.num_replicas == 2
    assert deployment.ray_actor_options["num_cpus"] == 1
    assert deployment.init_args[1:] == (made.job.serving, made.job.engine)
    assert gateway(apps[1]["args"])._bound_deployment.num_replicas == 1
    asked["settings"]["serving"]["port"] = 0
    with pytest.raises(UserError, match=r"^serving\.port"):
        release(asked)


def test_a_pod_is_never_open_to_strangers() -> None:
    service = export().ray_service()
    config = yaml.safe_load(service["spec"]["serveConfigV2"])
    for app in config["applications"]:
        serving = app["args"]["settings"]["serving"]
        assert serving["host"] == "0.0.0.0"
        assert serving["keys_file"]
        assert serving["admin_keys_file"]
        assert app["args"]["settings"]["action"] == ServeAction.RUN.value
    for template in templates(service):
        mounted = {each["name"] for each in template["containers"][0]["volumeMounts"]}
        assert mounted == {each["name"] for each in template["volumes"]}


def test_the_manifest_follows_the_settings() -> None:
    made = replace(
        export("num_replicas=2", "max_replicas=5", "name=Blue_1", "export_image=mine:2"), cpus=3
    )
    service = made.ray_service()
    assert (service["apiVersion"], service["kind"]) == ("ray.io/v1", "RayService")
    assert service["metadata"]["name"] == "outrider-blue-1"
    cluster = service["spec"]["rayClusterConfig"]
    group = cluster["workerGroupSpecs"][0]
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"]) == (2, 2, 5)
    assert cluster["enableInTreeAutoscaling"] is True
    worker = group["template"]["spec"]["containers"][0]
    assert worker["image"] == "mine:2"
    assert worker["resources"]["limits"] == {"cpu": "3", "memory": "8Gi"}


def test_serve_deploy_takes_it(model_folder: Path, tmp_path: Path, cluster: Any) -> None:
    """On a cluster that is there, as an operator would."""
    prepare_environment()
    import ray
    from ray import serve

    port = free_port()
    made = export(
        f"model.source=path:{model_folder}",
        *("model.runtime=torch", "model.dtype=float32", "draft=ngram", "max_tokens=8"),
        *(f"serving.port={port}", f"serving.log_dir={tmp_path / 'requests'}"),
    )
    files = made.write(tmp_path)
    ray.init(cluster.address, log_to_driver=False, logging_level="error")
    try:
        done = subprocess.run(
            [SERVE, "deploy", str(files[0]), "-a", f"http://{cluster.dashboard}"],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        wait_until_running(serve)
        answer = ask(port)
        assert answer["usage"]["completion_tokens"] == 8
        assert answer["system_fingerprint"] == "f" * 64
    finally:
        serve.shutdown()
        ray.shutdown()


def wait_until_running(serve: Any) -> None:
    until = time.monotonic() + 120
    while True:
        told = serve.status().applications
        if len(told) == 2 and all(app.status == "RUNNING" for app in told.values()):
            return
        assert time.monotonic() < until, told
        time.sleep(0.2)


def ask(port: int) -> Any:
    body = {"messages": [{"role": "user", "content": "Name: Ada"}], "ignore_eos": True}
    request = Request(
        f"http://127.0.0.1:{port}/v1/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urlopen(request, timeout=60) as response:
        return json.load(response)


def templates(service: dict[str, Any]) -> list[dict[str, Any]]:
    cluster = service["spec"]["rayClusterConfig"]
    groups = [cluster["headGroupSpec"], *cluster["workerGroupSpecs"]]
    return [group["template"]["spec"] for group in groups]
