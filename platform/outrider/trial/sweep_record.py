"""`sweep.json`: what a search is of, how far it is and what it found. Plain data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from outrider.config.typed import plain, typed
from outrider.core import Fault, UserError
from outrider.tracking.fingerprint import differences, fingerprint
from outrider.trial.halving import Fate, Score
from outrider.trial.judgement import Decision
from outrider.trial.record import Ratio

FILE = "sweep.json"
VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One candidate in one rung."""

    candidate: str
    score: Score
    fate: Fate


@dataclass(frozen=True, slots=True, kw_only=True)
class RungRecord:
    """A rung that is over. Its children are in the tracking store."""

    number: int  # from 0
    num_prompts: int
    standings: tuple[Standing, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a search ended with."""

    recommended: str  # name of the candidate; `plain`: plain decoding
    fingerprint: str
    speedup: Ratio | None = None  # of the recommended over plain decoding, on all prompts
    decision: Decision | None = None  # by the criteria, on these prompts; None: plain decoding
    reason: str = ""  # of the decision
    version: int | None = None  # as it is registered; None: it is not, or not yet
    is_challenger: bool = False  # whether it was named so


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a search is."""

    run_id: str = ""  # of its run; empty: it has none yet
    rungs: tuple[RungRecord, ...] = ()
    outcome: Outcome | None = None  # None: not over


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepRecord:
    """A search. `identity`: everything that another search would have otherwise."""

    identity: Mapping[str, Any]
    progress: Progress

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.identity)

    def to_json(self) -> str:
        whole = {
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "identity": self.identity,
            "progress": plain(self.progress),
        }
        return json.dumps(whole, indent=2, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> SweepRecord:
        """Raises Fault for a record of another version, or one that was changed by hand."""
        try:
            data = json.loads(text)
            found = cls(identity=data["identity"], progress=typed(Progress, data["progress"]))
            if data["version"] != VERSION or data["fingerprint"] != found.fingerprint:
                raise ValueError("its version or its fingerprint is another one")
        except (ValueError, TypeError, KeyError, UserError) as error:
            raise Fault(f"{FILE} is not a search's record: {error}") from error
        return found

    def differing(self, identity: Mapping[str, Any]) -> list[str]:
        """Dotted keys by which a search of `identity` is another one."""
        return differences(self.identity, json.loads(json.dumps(identity)))
