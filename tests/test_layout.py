"""The source root is called `platform`, as a module of Python's own is: Python's must win."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
TEXTS = {".py", ".md", ".toml", ".yaml", ".yml", ".jsonl", ".lock", ".json", ".sh", ""}


def output(*words: str, cwd: Path = REPOSITORY) -> list[str]:
    ended = subprocess.run(
        [sys.executable, *words], cwd=cwd, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split("\n")


def files() -> Iterator[Path]:
    """What is written by hand, without what is installed, built or cached."""
    for name in ("platform", "conf", "jobs", "tests", "dashboards", ".ci"):
        for path in (REPOSITORY / name).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix in TEXTS:
                yield path
    for name in ("README.md", "Makefile", "pyproject.toml", "requirements.lock", ".gitignore"):
        yield REPOSITORY / name


def test_the_source_root_is_not_a_package() -> None:
    assert not (REPOSITORY / "platform" / "__init__.py").exists()


@pytest.mark.parametrize("cwd", [REPOSITORY, REPOSITORY / "platform"])
def test_pythons_own_platform_wins_in_a_command(cwd: Path) -> None:
    code = "import platform, uuid; print(platform.__file__, platform.python_version())"
    printed = output("-c", code, cwd=cwd)[0]
    assert str(REPOSITORY) not in printed.replace(sys.prefix, "")
    assert sys.version.split()[0] in printed


def test_pythons_own_platform_wins_in_a_module() -> None:
    assert output("-m", "platform")[0].startswith(("Linux", "macOS", "Windows"))


def test_pythons_own_platform_wins_in_pytest() -> None:
    import platform

    assert platform.python_version() == sys.version.split()[0]


def test_pythons_own_platform_wins_in_a_ray_worker(joined: None) -> None:
    import ray

    @ray.remote
    def where() -> tuple[str | None, str, str]:
        import platform

        import outrider.core

        return platform.__file__, platform.python_version(), outrider.core.__file__

    path, version, ours = ray.get(where.remote())
    assert Path(path).name == "platform.py"
    assert version == sys.version.split()[0]
    assert Path(ours) == REPOSITORY / "platform" / "outrider" / "core.py"


def test_a_job_is_at_most_40_lines() -> None:
    jobs = sorted((REPOSITORY / "jobs").glob("*.py"))
    assert jobs
    for path in jobs:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 40, path


def test_no_file_names_a_place_of_one_machine() -> None:
    """Neither a home folder nor a package registry or mirror."""
    place = re.compile(r"(?<![\w.}>/:])/(home|root|work|Users|opt|mnt)/\w|(?<=[\"'])/tmp/\w")
    registry = re.compile(r"pypi\.org|pythonhosted\.org|https?://\S+/simple\b|\bmirror\.")
    for path in files():
        if path == Path(__file__):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            assert not place.search(line), f"{path}:{number}: {line.strip()[:80]}"
            assert not registry.search(line), f"{path}:{number}: {line.strip()[:80]}"


def test_the_lock_pins_every_package_exactly_once() -> None:
    lines = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    for pin in pins:
        assert re.fullmatch(r"[\w.-]+==[\w.!]+", pin), pin  # no local version, no URL
    names = [re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower() for pin in pins]
    assert len(set(names)) == len(names)
    assert {"torch==2.13.0", "openvino==2026.4.1"} <= set(pins)


def test_the_lock_has_what_the_project_asks_for() -> None:
    import tomllib

    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    lock = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8").lower()
    for requirement in wanted:
        name = re.split(r"[\[<>=~! ]", requirement, maxsplit=1)[0].lower()
        assert f"\n{name}==" in lock.replace("_", "-"), name
