"""What a GPU does while a contender decodes, as `nvidia-smi` samples it."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterable
from dataclasses import dataclass

PERIOD_MS = 100
FIELDS = "utilization.gpu,power.draw"
NUM_FIELDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUsed:
    """Between two moments."""

    busy_ratio: float  # mean share of the devices' time with a kernel running
    energy_j: float | None  # None: the device does not tell its power


@dataclass(frozen=True, slots=True)
class Sample:
    """One device at one time."""

    busy_ratio: float
    power_w: float | None


class GpuWatch:
    """Reads samples in a thread of its own for as long as the process lives."""

    def __init__(self, lines: Iterable[str], *, period_s: float) -> None:
        self._lines = lines
        self._period_s = period_s
        self._samples: list[Sample] = []
        threading.Thread(target=self._read, name="gpu", daemon=True).start()

    @property
    def num_samples(self) -> int:
        return len(self._samples)

    def since(self, num_before: int) -> GpuUsed | None:
        """None where nothing was sampled: a turn shorter than the period."""
        samples = self._samples[num_before:]
        if not samples:
            return None
        powers = [one.power_w for one in samples if one.power_w is not None]  # of every device
        return GpuUsed(
            busy_ratio=sum(one.busy_ratio for one in samples) / len(samples),
            energy_j=sum(powers) * self._period_s if powers else None,
        )

    def _read(self) -> None:
        for line in self._lines:
            sample = parse(line)
            if sample is not None:
                self._samples.append(sample)


def parse(line: str) -> Sample | None:
    """`37, 212.50` -> a sample; None for what is no sample of a device that tells its use."""
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != NUM_FIELDS or not parts[0].isdigit():
        return None
    power = parts[1].replace(".", "", 1)
    return Sample(int(parts[0]) / 100, float(parts[1]) if power.isdigit() else None)


def open_gpu() -> GpuWatch | None:
    """The devices that this process may use; None where there are none."""
    program, visible = shutil.which("nvidia-smi"), os.environ.get("CUDA_VISIBLE_DEVICES")
    if program is None or visible == "":
        return None
    devices = ["-i", visible] if visible else []
    query = [program, *devices, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
    try:
        subprocess.run(query, capture_output=True, timeout=10, check=True)  # is there a driver?
        stream = subprocess.Popen(
            [*query, "-lms", str(PERIOD_MS)], stdout=subprocess.PIPE, text=True, bufsize=1
        )
    except (OSError, subprocess.SubprocessError):
        return None
    assert stream.stdout is not None
    return GpuWatch(stream.stdout, period_s=PERIOD_MS / 1000)
