"""What a head's folder was begun with: `begun.json`, written before anything is learnt."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from outrider.bulk.durable import replacing
from outrider.core import UserError


@dataclass(frozen=True, slots=True)
class Begun:
    """`identity`: digest of everything that decides what is learnt."""

    identity: str
    run_id: str = ""  # of the tracked run

    @classmethod
    def read(cls, path: Path, identity: str) -> Self:
        """The file's, or a new one. UserError where it is of another identity, or damaged."""
        if not path.exists():
            return cls(identity)
        try:
            found = cls(**json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError) as error:
            raise UserError(f"distill.head_dir: {path} can't be read: name another") from error
        if found.identity != identity:
            raise UserError(
                f"distill.head_dir: {path.parents[1]} was begun with another target, input or "
                "settings: put them back, or name another folder"
            )
        return found

    def save(self, path: Path) -> None:
        with replacing(path) as out:
            out.write(json.dumps(asdict(self)).encode() + b"\n")
