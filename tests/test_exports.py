"""Every module can be imported by itself, and the hearts of the package know no platform."""

import pkgutil
import subprocess
import sys
from collections.abc import Sequence

import pytest

import outrider

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(outrider.__path__, prefix="outrider.")
)
HEARTS = [
    name
    for name in MODULES
    if name in ("outrider.core", "outrider.config.schema")
    or name.startswith(("outrider.engine.", "outrider.engine"))
]
PLATFORMS = ("ray", "mlflow", "hydra", "omegaconf")
LIGHT = ("outrider.core", "outrider.config.schema", "outrider.config.console", "outrider.models")

IMPORTS = """
import importlib, sys
for group in {groups!r}:
    for name in group: importlib.import_module(name)
    print(*sys.modules)
print(*(
    f"{{name}}.{{exported}}"
    for name, module in list(sys.modules.items()) if name.startswith("outrider")
    for exported in getattr(module, "__all__", ()) if not hasattr(module, exported)
))
"""


def imported_by(*groups: Sequence[str]) -> list[set[str]]:
    """Import the modules of one group after the other in a fresh interpreter; return all that is
    there behind each group, and last what is exported but does not exist.
    """
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTS.format(groups=groups)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return [set(line.split()) for line in ended.stdout.splitlines()]


@pytest.fixture(scope="module")
def imported() -> list[set[str]]:
    """Behind what is light, behind the hearts too, behind everything; what is missing."""
    return imported_by(LIGHT, HEARTS, MODULES)


def test_every_module_imports(imported: list[set[str]]) -> None:
    assert len(MODULES) > 20
    assert set(MODULES) <= imported[2]


def test_the_hearts_import_no_platform(imported: list[set[str]]) -> None:
    assert set(HEARTS) <= imported[1]
    assert not imported[1] & set(PLATFORMS)


def test_what_a_wrong_configuration_needs_is_light(imported: list[set[str]]) -> None:
    heavy = {*PLATFORMS, "torch", "transformers", "openvino", "pyarrow", "numpy"}
    assert not imported[0] & heavy


def test_whoever_drives_a_job_loads_no_engine() -> None:
    """Models are loaded where tokens are made: in workers, replicas and contenders."""
    drivers = [f"outrider.wiring.{name}" for name in ("bulk_job", "rollouts", "search", "server")]
    gateway = ["outrider.entry", "outrider.serving.gateway", "outrider.trial.arena"]
    loaded, _ = imported_by([*drivers, *gateway])
    assert not loaded & {"torch", "transformers", "openvino", "mlflow"}


def test_what_is_exported_exists(imported: list[set[str]]) -> None:
    assert imported[3] == set()
