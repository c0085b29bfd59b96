"""What the registry keeps of a release: enough to build it again, and to tell what differs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from outrider.core import Fault

SECTIONS = ("model", "engine", "draft", "sampling")  # of a job's settings: what decodes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRecord:
    """One release, as `release.json` holds it."""

    fingerprint: str
    settings: Mapping[str, Any]  # what was fingerprinted: weights by digest, no resources
    config: Mapping[str, Any]  # the SECTIONS, whole, as `--cfg` prints them
    lock_sha256: str = ""  # of requirements.lock
    revision: str = ""  # of the code that registered it
    lineage: Mapping[str, str] = field(default_factory=dict)  # `tracking.lineage`: name -> digest

    @property
    def tags(self) -> dict[str, str]:
        """The lineage, as runs and registered versions carry it."""
        return {f"lineage.{name}": digest for name, digest in self.lineage.items()}

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2, sort_keys=True, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ReleaseRecord:
        """Raises Fault for a record of another version, or one cut short."""
        try:
            return cls(**json.loads(text))
        except (ValueError, TypeError) as error:
            raise Fault(f"release.json is not a release's record: {error}") from error
