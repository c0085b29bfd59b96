"""manifest.json: whose job the folder is, and which parts are its truth.

Schema, version 1:
  kind "outrider-bulk-job", version
  fingerprint   of the release that decodes now
  settings      what was fingerprinted, and the layout of the job, so that differences have names
  input         path, digest (sha256), num_rows
  num_shards
  configurations  fingerprint -> when it began (seconds since the epoch), oldest first
  min_attempt   parts of this number or later belong to the present configuration
  sessions      runs of the job: began (epoch seconds), duration_s, run_id, status
  shards        shard number -> PartState of the part that counts

Parts on disk are the truth and this file follows, so it may be written about once a second.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from outrider.bulk.durable import replacing
from outrider.bulk.parts import PartState
from outrider.core import UserError
from outrider.tracking.fingerprint import leaves, plain

KIND = "outrider-bulk-job"
VERSION = 1
SHOWN_DIFFERENCES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What must be the same when a job goes on."""

    fingerprint: str
    settings: Mapping[str, Any]
    input_path: str
    input_digest: str
    num_rows: int
    num_shards: int


@dataclass(slots=True, kw_only=True)
class Session:
    """One run of the job's driver."""

    began: float  # seconds since the epoch
    fingerprint: str
    run_id: str = ""
    duration_s: float = 0.0
    status: str = "RUNNING"


@dataclass(slots=True)
class Manifest:
    """The file in memory. `record` and `save` are called by the driver only."""

    path: Path
    identity: Identity
    min_attempt: int = 1
    configurations: dict[str, float] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)
    shards: dict[int, PartState] = field(default_factory=dict)

    def record(self, shard: int, state: PartState) -> None:
        self.shards[shard] = state

    @property
    def num_done(self) -> int:
        return sum(state.num_done for state in self.shards.values())

    @property
    def num_failed(self) -> int:
        return sum(state.num_failed for state in self.shards.values())

    @property
    def used_fingerprints(self) -> list[str]:
        """Of the releases whose rows count, in the order in which they came."""
        used = {f for state in self.shards.values() for f in state.fingerprints}
        return [fingerprint for fingerprint in self.configurations if fingerprint in used]

    def save(self) -> None:
        """Write whole, sync, rename."""
        text = json.dumps(self._to_dict(), ensure_ascii=False, indent=1)
        with replacing(self.path) as file:
            file.write(text.encode("utf-8", "backslashreplace") + b"\n")

    def _to_dict(self) -> dict[str, Any]:
        identity = self.identity
        return {
            "kind": KIND,
            "version": VERSION,
            "fingerprint": identity.fingerprint,
            "settings": plain(identity.settings),
            "input": {
                "path": identity.input_path,
                "digest": identity.input_digest,
                "num_rows": identity.num_rows,
            },
            "num_shards": identity.num_shards,
            "configurations": self.configurations,
            "min_attempt": self.min_attempt,
            "sessions": [asdict(session) for session in self.sessions],
            "shards": {str(n): self.shards[n].to_dict() for n in sorted(self.shards)},
        }


def load_manifest(path: Path) -> Manifest | None:
    """The folder's manifest; None where there is none; `UserError` where it isn't readable."""
    try:
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(value, dict) or value.get("kind") != KIND:
        raise _unreadable(path, "it is not the manifest of a bulk job")
    if value.get("version") != VERSION:
        raise _unreadable(path, f"its version is {value.get('version')}, this is {VERSION}")
    try:
        return _from_dict(path, value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _unreadable(path, f"{type(error).__name__} {error}") from error


def _from_dict(path: Path, value: Mapping[str, Any]) -> Manifest:
    identity = Identity(
        fingerprint=value["fingerprint"],
        settings=value["settings"],
        input_path=value["input"]["path"],
        input_digest=value["input"]["digest"],
        num_rows=value["input"]["num_rows"],
        num_shards=value["num_shards"],
    )
    return Manifest(
        path,
        identity,
        min_attempt=value["min_attempt"],
        configurations=dict(value["configurations"]),
        sessions=[Session(**session) for session in value["sessions"]],
        shards={int(n): PartState.from_dict(state) for n, state in value["shards"].items()},
    )


def _unreadable(path: Path, why: str) -> UserError:
    return UserError(f"{path} can't be used: {why.splitlines()[0]}. Name another bulk.job_dir")


def differences(began: Identity, now: Identity) -> list[str]:
    """What differs, each as "key: before -> now", in the order of the keys."""
    old, new = leaves(began.settings), leaves(now.settings)
    found = [
        f"{key}: {_shown(old.get(key))} -> {_shown(new.get(key))}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    if began.input_digest != now.input_digest:
        found.append(f"input: {began.input_digest[:12]} -> {now.input_digest[:12]} (sha256)")
    if began.fingerprint != now.fingerprint and not found:
        found.append(f"fingerprint: {began.fingerprint[:12]} -> {now.fingerprint[:12]}")
    return found


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False) if value is not None else "unset"


def refusal(folder: Path, found: list[str]) -> UserError:
    shown = "; ".join(found[:SHOWN_DIFFERENCES])
    more = f" and {len(found) - SHOWN_DIFFERENCES} more" if len(found) > SHOWN_DIFFERENCES else ""
    return UserError(
        f"{folder} was begun with other settings: {shown}{more}. Put them back, name another"
        " bulk.job_dir, or set bulk.new_attempt=true to keep what is done and go on with these"
    )
