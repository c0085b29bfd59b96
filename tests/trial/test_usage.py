"""What a machine tells of itself, and what it does not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from outrider.trial.gpu import GpuWatch, parse
from outrider.trial.usage import UsageMeter, packages, peak_memory_bytes, reset_peak_memory

MIB = 2**20


def counter(root: Path, name: str, value: int, *, range_uj: int = 10**9) -> Path:
    folder = root / name
    folder.mkdir(exist_ok=True)
    (folder / "energy_uj").write_text(f"{value}\n")
    (folder / "max_energy_range_uj").write_text(f"{range_uj}\n")
    return folder


def test_energy_is_of_all_packages_without_their_parts_and_survives_a_wrap(tmp_path: Path) -> None:
    counter(tmp_path, "intel-rapl:0", 999_000_000)
    counter(tmp_path, "intel-rapl:1", 5_000_000)
    counter(tmp_path, "intel-rapl:0:0", 7)
    meter = UsageMeter(packages=packages(tmp_path))
    mark = meter.begin()
    counter(tmp_path, "intel-rapl:0", 999_999)  # over the end of its range, once
    counter(tmp_path, "intel-rapl:1", 6_000_000)
    assert meter.since(mark).energy_j == pytest.approx(3.0)


def test_a_machine_without_meters_tells_no_energy(tmp_path: Path) -> None:
    meter = UsageMeter(packages=packages(tmp_path))
    used = meter.since(meter.begin())
    assert used.energy_j is None
    assert used.gpu_ratio is None
    assert used.cpu_s >= 0


def test_peak_memory_is_since_it_was_reset() -> None:
    block = bytearray(64 * MIB)
    block[::4096] = b"x" * len(block[::4096])
    high = peak_memory_bytes()
    del block
    reset_peak_memory()
    assert peak_memory_bytes() <= high
    assert peak_memory_bytes() > MIB


def test_a_gpu_is_sampled_between_two_moments() -> None:
    watch = GpuWatch(iter(["50, 100.0", "100, 200.0", "nonsense", "[N/A], 3"]), period_s=0.1)
    deadline = time.monotonic() + 10
    while watch.num_samples < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    used = watch.since(0)
    assert used is not None
    assert used.busy_ratio == pytest.approx(0.75)
    assert used.energy_j == pytest.approx(30.0)
    later = watch.since(1)
    assert later is not None
    assert later.busy_ratio == 1.0
    assert watch.since(2) is None


def test_a_device_that_tells_no_power_has_no_energy() -> None:
    sample = parse("37, [N/A]")
    assert sample is not None
    assert (sample.busy_ratio, sample.power_w) == (0.37, None)
