"""The folder of a search: its record, and a pair of tables for each group that was measured.

A table is written beside its place and moved there, turns last: where they are, the group is done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from outrider.bulk.durable import disk_faults, only_one, replacing, sync_folder
from outrider.core import UserError
from outrider.trial.observation import Measured
from outrider.trial.sweep_record import FILE, Progress, SweepRecord
from outrider.trial.tables import (
    OBSERVATIONS,
    TURNS,
    read_observations,
    read_turns,
    write_observations,
    write_turns,
)

RECOMMENDED = "recommended.yaml"
RAY_LOG = "ray.log"
MOST_NAMED = 6  # differing keys that still fit one readable line


@dataclass(frozen=True, slots=True)
class SweepFolder:
    """Paths of a search."""

    root: Path

    @property
    def record(self) -> Path:
        return self.root / FILE

    @property
    def recommended(self) -> Path:
        return self.root / RECOMMENDED

    @property
    def ray_log(self) -> Path:
        return self.root / RAY_LOG

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder for one process; another one is refused. Ends with the process."""
        self._make()
        taken = f"another search is running in {self.root}: wait for it, or name another"
        with only_one(self.root, f"{taken} sweep.folder"):
            yield

    def progress(self, identity: Mapping[str, Any]) -> Progress:
        """How far the search is. UserError, which names what differs, where it is another one."""
        if not self.record.exists():
            return Progress()
        found = SweepRecord.from_json(self.record.read_text(encoding="utf-8"))
        keys = found.differing(identity)
        if keys:
            more = f" and {len(keys) - MOST_NAMED} more" if len(keys) > MOST_NAMED else ""
            raise UserError(
                f"sweep.folder: {self.root} holds another search, with another"
                f" {', '.join(keys[:MOST_NAMED])}{more}: name another folder, or remove it"
            )
        return found.progress

    def save(self, identity: Mapping[str, Any], progress: Progress) -> None:
        text = SweepRecord(identity=identity, progress=progress).to_json()
        with replacing(self.record) as file:
            file.write(text.encode())

    def recommend(self, content: Mapping[str, Any]) -> None:
        with replacing(self.recommended) as file:
            text = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True)
            file.write(text.encode())

    def measured(self, rung: int, group: int, names: Collection[str]) -> Measured | None:
        """What was seen of a group; None where it is not done, or was of others."""
        if not self._table(rung, group, TURNS).exists():
            return None
        found = Measured(
            observations=read_observations(self._table(rung, group, OBSERVATIONS)),
            turns=read_turns(self._table(rung, group, TURNS)),
        )
        return found if {turn.contender for turn in found.turns} == set(names) else None

    def keep(self, rung: int, group: int, measured: Measured) -> None:
        folder = self._table(rung, group, TURNS).parent
        with disk_faults(folder):
            folder.mkdir(exist_ok=True)
            write_observations(_unfinished(folder / OBSERVATIONS), measured.observations)
            write_turns(_unfinished(folder / TURNS), measured.turns)
            for name in (OBSERVATIONS, TURNS):
                _unfinished(folder / name).replace(folder / name)
            sync_folder(folder)

    def _table(self, rung: int, group: int, name: str) -> Path:
        return self.root / f"rung-{rung + 1}.group-{group + 1}" / name

    def _make(self) -> None:
        if self.root.exists() and not self.root.is_dir():
            raise UserError(f"sweep.folder: {self.root} is a file: name a folder")
        if self.root.exists() and not self.record.exists():
            foreign = sorted(p.name for p in self.root.iterdir() if p.name not in OURS)
            if foreign:
                raise UserError(
                    f"sweep.folder: {self.root} holds other files ({foreign[0]}) and no {FILE}:"
                    " name a new or empty folder"
                )
        with disk_faults(self.root):
            self.root.mkdir(parents=True, exist_ok=True)


def _unfinished(path: Path) -> Path:
    return path.with_name(path.name + ".tmp")


OURS = {".lock", RAY_LOG, f"{FILE}.tmp"}
