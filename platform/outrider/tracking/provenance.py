"""Where a run comes from: code, packages, machine. No environment variable, no user name."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path

from outrider.tracking.fingerprint import flatten

PACKAGES = (
    "outrider",
    "torch",
    "openvino",
    "transformers",
    "tokenizers",
    "safetensors",
    "numpy",
    "ray",
    "pyarrow",
    "mlflow",
    "hydra-core",
)
# What decides the speed of bf16 and int8 arithmetic, on x86 and ARM.
FLAGS = (
    "avx2",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "avx_vnni",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "bf16",
    "i8mm",
    "sve",
)
SOURCES = ("*.py", "*.yaml", "*.toml", "*.lock")
LOCK = "requirements.lock"
COMMAND_WAIT_S = 20.0
MAX_DIFF = 1_000_000  # bytes of a diff that are kept with a run


@dataclass(frozen=True, kw_only=True)
class Code:
    """The revision, and a digest of what differs from it. Empty where there is no git."""

    revision: str = ""
    is_dirty: bool = False
    diff_sha256: str = ""  # of the diff against the revision, and of new source files
    lock_sha256: str = ""  # of requirements.lock
    diff: str = field(default="", repr=False)  # what was digested, cut at MAX_DIFF


@dataclass(frozen=True, kw_only=True)
class Hardware:
    cpu: str = ""
    num_cores: int = 0
    num_usable_cores: int = 0  # what this process may run on
    cpu_flags: tuple[str, ...] = ()
    memory_bytes: int = 0
    gpus: tuple[str, ...] = ()  # name, memory, driver


@dataclass(frozen=True, kw_only=True)
class Provenance:
    code: Code
    hardware: Hardware
    python: str
    platform: str
    packages: dict[str, str] = field(default_factory=dict)

    def to_tags(self) -> dict[str, str]:
        """Dotted names: code.revision, hardware.cpu, packages.torch, ...; not the diff itself."""
        tags = flatten(replace(self, code=replace(self.code, diff="")))
        return {name: value for name, value in tags.items() if value and not _is_kind(name)}


def collect(root: Path) -> Provenance:
    """What is known here and now of the code under `root`. Takes some tens of milliseconds."""
    return Provenance(
        code=code_of(root),
        hardware=hardware(),
        python=platform.python_version(),
        platform=platform.platform(),
        packages=dict(_versions(PACKAGES)),
    )


def code_of(root: Path) -> Code:
    lock_sha256 = _sha256_of_file(root / LOCK)
    revision = _output("git", "-C", str(root), "rev-parse", "HEAD").decode().strip()
    if not revision:
        return Code(lock_sha256=lock_sha256)
    diff = _difference(root)
    return Code(
        revision=revision,
        is_dirty=bool(diff),
        diff_sha256=hashlib.sha256(diff).hexdigest() if diff else "",
        lock_sha256=lock_sha256,
        diff=_bounded(diff),
    )


def hardware() -> Hardware:
    cpuinfo = _fields(Path("/proc/cpuinfo"))
    present = set(cpuinfo.get("flags", cpuinfo.get("Features", "")).split())
    gpus = _output("nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv")
    return Hardware(
        cpu=cpuinfo.get("model name", platform.processor() or platform.machine()),
        num_cores=os.cpu_count() or 0,
        num_usable_cores=_num_usable_cores(),
        cpu_flags=tuple(flag for flag in FLAGS if flag in present),
        memory_bytes=_memory_bytes(),
        gpus=tuple(line.strip() for line in gpus.decode().splitlines()[1:]),
    )


def _difference(root: Path) -> bytes:
    """The diff against HEAD, then names and digests of source files that git does not know."""
    git = ("git", "--no-optional-locks", "-C", str(root))
    diff = _output(*git, "diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv")
    unknown = _output(*git, "ls-files", "--others", "--exclude-standard", "-z", "--", *SOURCES)
    names = sorted(name for name in unknown.decode().split("\0") if name)
    lines = (f"{name} {_sha256_of_file(root / name)}\n" for name in names)
    return diff + "".join(lines).encode()


def _bounded(diff: bytes) -> str:
    """The diff as text; a note behind it where it goes on."""
    text = diff[:MAX_DIFF].decode(errors="replace")
    return f"{text}\n... {len(diff)} bytes in all\n" if len(diff) > MAX_DIFF else text


def _versions(packages: Iterable[str]) -> Iterable[tuple[str, str]]:
    for package in packages:
        try:
            yield package, metadata.version(package)
        except metadata.PackageNotFoundError:
            continue


def _num_usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 0


def _memory_bytes() -> int:
    kilobytes = _fields(Path("/proc/meminfo")).get("MemTotal", "0 kB").split()[0]
    return int(kilobytes) * 1024


def _fields(path: Path) -> dict[str, str]:
    """The first `name : value` of each name; empty where the file isn't there."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return {}
    found: dict[str, str] = {}
    for line in lines:
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    return found


def _sha256_of_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _output(*command: str) -> bytes:
    """What a command prints; empty if it is absent, fails or takes too long."""
    try:
        done = subprocess.run(command, capture_output=True, timeout=COMMAND_WAIT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return b""
    return done.stdout


def _is_kind(name: str) -> bool:
    return name.rpartition(".")[2] == "kind"
