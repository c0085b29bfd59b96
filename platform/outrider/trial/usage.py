"""What decoding costs the machine: CPU seconds, memory, energy, as far as it tells. Linux."""

from __future__ import annotations

import logging
import resource
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from outrider.trial.gpu import GpuWatch

RAPL = Path("/sys/class/powercap")
STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # `man 5 proc`: the peak begins again at what is in memory now
KIB = 1024
MICRO = 1e-6

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Between two moments. None: the machine does not tell."""

    cpu_s: float
    peak_memory_bytes: int  # since the process was opened
    gpu_ratio: float | None = None
    energy_j: float | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment to measure from."""

    cpu_s: float
    counters_uj: tuple[int, ...]  # of the processor packages
    num_gpu_samples: int


@dataclass(frozen=True, slots=True)
class Package:
    """One processor's energy counter, which wraps."""

    counter: Path
    range_uj: int

    def read(self) -> int:
        return int(self.counter.read_text())


@dataclass(frozen=True, kw_only=True)
class UsageMeter:
    """Of this process; energy is the whole machine's, which one contender has to itself."""

    packages: Sequence[Package] = field(default_factory=lambda: packages(RAPL))
    gpu: GpuWatch | None = None

    def begin(self) -> Mark:
        counters = tuple(package.read() for package in self.packages)
        return Mark(cpu_seconds(), counters, 0 if self.gpu is None else self.gpu.num_samples)

    def since(self, mark: Mark) -> Used:
        gpu = None if self.gpu is None else self.gpu.since(mark.num_gpu_samples)
        parts = [self._package_j(mark), None if gpu is None else gpu.energy_j]
        told = [part for part in parts if part is not None]
        return Used(
            cpu_s=cpu_seconds() - mark.cpu_s,
            peak_memory_bytes=peak_memory_bytes(),
            gpu_ratio=None if gpu is None else gpu.busy_ratio,
            energy_j=sum(told) if told else None,
        )

    def _package_j(self, mark: Mark) -> float | None:
        if not self.packages:
            return None
        pairs = zip(self.packages, mark.counters_uj, strict=True)
        return sum((one.read() - before) % one.range_uj for one, before in pairs) * MICRO


def packages(root: Path) -> list[Package]:
    """Those that may be read: `intel-rapl:0`, ... (AMD's as well), without their parts."""
    found = []
    for folder in sorted(root.glob("intel-rapl:*")):
        if folder.name.count(":") == 1:
            try:
                one = Package(
                    folder / "energy_uj", int((folder / "max_energy_range_uj").read_text()) + 1
                )
                one.read()
            except (OSError, ValueError):  # only root may read it, by default
                continue
            found.append(one)
    return found


def cpu_seconds() -> float:
    """Of this process and its threads so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_memory_bytes() -> int:
    """Most resident memory of this process, since `reset_peak_memory` where that worked."""
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB
    peak = next((line for line in lines if line.startswith("VmHWM:")), "VmHWM: 0 kB")
    return int(peak.split()[1]) * KIB


def reset_peak_memory() -> None:
    """Leave out what only loading or converting a model needed."""
    try:
        CLEAR.write_text(RESET_PEAK)
    except OSError as error:
        _LOG.info("peak memory includes loading: %s", error)
