"""Every module can be imported by itself, and the hearts of the package know no platform."""

import pkgutil
import subprocess
import sys

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


def imported_by(modules: list[str]) -> set[str]:
    """Import `modules` in a fresh interpreter, warnings as errors; return all that came with it."""
    code = (
        "import importlib, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        "print(*sys.modules)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return set(ended.stdout.split())


def test_every_module_imports() -> None:
    assert len(MODULES) > 20
    assert set(MODULES) <= imported_by(MODULES)


def test_the_hearts_import_no_platform() -> None:
    assert not imported_by(HEARTS) & set(PLATFORMS)


def test_what_a_wrong_configuration_needs_is_light() -> None:
    heavy = {*PLATFORMS, "torch", "transformers", "openvino", "pyarrow", "numpy"}
    assert not imported_by(list(LIGHT)) & heavy


def test_whoever_drives_a_job_loads_no_engine() -> None:
    """Models are loaded where tokens are made: in workers, replicas and contenders."""
    drivers = [f"outrider.wiring.{name}" for name in ("bulk_job", "rollouts", "search", "server")]
    gateway = ["outrider.entry", "outrider.serving.gateway", "outrider.trial.arena"]
    assert not imported_by([*drivers, *gateway]) & {"torch", "transformers", "openvino", "mlflow"}


def test_what_is_exported_exists() -> None:
    import importlib

    for name in MODULES:
        module = importlib.import_module(name)
        for exported in getattr(module, "__all__", ()):
            assert hasattr(module, exported), f"{name}.{exported}"
