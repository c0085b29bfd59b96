"""What is told of a rollout outside: no prompts, no settings, no secrets."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from outrider.rollout.status import Move, Status
from outrider.tracking.store_uri import redacted


def notice(status: Status, move: Move | None = None) -> dict[str, Any]:
    """Which rollout it is, and the move, where it is about one."""
    candidate = status.candidate
    told: dict[str, Any] = {
        "rollout_id": status.rollout_id,
        "service": redacted(status.service),
        "candidate": candidate.name,
        "fingerprint": candidate.fingerprint,
        "version": candidate.version,
        "stable": status.stable,
        "stable_fingerprint": status.stable_fingerprint,
        "criteria": status.criteria,
        "run_id": status.run_id,
    }
    return told | (asdict(move) if move else {})
