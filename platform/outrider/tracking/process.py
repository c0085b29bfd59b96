"""Which process a run belongs to, told apart from a later process with the same number."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PREFIX = "outrider.process."
PROC = Path("/proc")
DEAD_STATES = frozenset("ZX")  # zombie, dead: a killed process whose parent has not looked yet
STATE_FIELD, START_FIELD = 0, 19  # of /proc/<pid>/stat after the parenthesis that ends the name


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process of this or another machine. Unknown parts are empty strings (no /proc)."""

    host: str
    boot: str  # changes at every boot
    namespace: str  # of process numbers: containers of one machine count apart
    pid: str
    started: str  # clock ticks from boot to the process's start

    @classmethod
    def current(cls) -> Process:
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            boot=_read(PROC / "sys/kernel/random/boot_id").strip(),
            namespace=_namespace(),
            pid=str(pid),
            started=_stat(pid)[1],
        )

    @classmethod
    def from_tags(cls, tags: Mapping[str, str]) -> Process | None:
        """The process that `to_tags` recorded, or None where there is no such record."""
        parts = {name: tags.get(PREFIX + name) for name in cls.__slots__}
        known = {name: part for name, part in parts.items() if part is not None}
        return cls(**known) if len(known) == len(parts) else None

    def to_tags(self) -> dict[str, str]:
        return {PREFIX + name: part for name, part in asdict(self).items()}

    def is_gone(self, here: Process) -> bool:
        """Whether this process surely ended, as seen from the process `here`.

        Of another host, or of another container on this boot, nothing is sure.
        """
        if self.host != here.host:
            return False
        if self.boot != here.boot:
            return bool(self.boot and here.boot)
        if self.namespace != here.namespace:
            return False
        return not _is_alive(int(self.pid), self.started)


def _is_alive(pid: int, started: str) -> bool:
    if not started:  # no /proc when the run began: the number is all we have
        return _exists(pid)
    state, since = _stat(pid)
    return since == started and state not in DEAD_STATES


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _stat(pid: int) -> tuple[str, str]:
    """(state, start in ticks since boot) of a process; empty strings where there is none."""
    after_name = _read(PROC / str(pid) / "stat").rpartition(")")[2].split()
    if len(after_name) <= START_FIELD:
        return "", ""
    return after_name[STATE_FIELD], after_name[START_FIELD]


def _namespace() -> str:
    try:
        return str((PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
