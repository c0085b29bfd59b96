"""Processes under a server, read from /proc: which are its replicas, what they computed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_REPLICA = "ray::ServeReplica:release-"  # how Ray titles the process of a release's replica


@dataclass(frozen=True, slots=True)
class Process:
    """One process as it is now."""

    pid: int
    parent: int
    title: str
    cpu_s: float  # of all its threads since it began

    @property
    def is_replica(self) -> bool:
        return self.title.startswith(_REPLICA)


def descendants(pid: int, proc: Path = Path("/proc")) -> list[Process]:
    """The process and everything it started, directly or not."""
    alive = list(_all(proc))
    found = [process for process in alive if process.pid == pid]
    for ancestor in found:  # grows while it is walked
        found += [process for process in alive if process.parent == ancestor.pid]
    return found


def replicas(pid: int) -> list[int]:
    """Process ids of the engines under the server, oldest first."""
    return sorted(process.pid for process in descendants(pid) if process.is_replica)


def cpu_s(pid: int) -> float:
    """Seconds of CPU that the living processes of a server have used."""
    return sum(process.cpu_s for process in descendants(pid))


def _all(proc: Path) -> Iterator[Process]:
    for folder in proc.iterdir():
        if folder.name.isdigit() and (process := _read(folder)) is not None:
            yield process


def _read(folder: Path) -> Process | None:
    """None where it ended while we looked."""
    try:
        stat = (folder / "stat").read_text(errors="replace")
        title = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return None
    # The name stands in parentheses and may hold anything: the fields begin behind the last one.
    values = stat.rpartition(")")[2].split()
    ticks = int(values[11]) + int(values[12])  # utime, stime: fields 14 and 15 of proc(5)
    return Process(int(folder.name), int(values[1]), title, ticks / os.sysconf("SC_CLK_TCK"))
