"""Confirmation prompts are spent once for a release: a second look would be tuning on them.

Each use is a run id in a tag of the registered version, named by the prompts' digest. It is
written before the first request, so that a use that was cut short counts too.
"""

from __future__ import annotations

from dataclasses import dataclass

from outrider.tracking.registry import Registry, Version

DIGITS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """One evaluation set's part that confirms. Each question is asked of it once by itself."""

    registry: Registry
    evaluation_sha256: str
    question: str = "confirmation"  # is it faster; rollout.confirmation: does it say the same

    @property
    def tag(self) -> str:
        return f"{self.question}.{self.evaluation_sha256[:DIGITS]}"

    def spend(self, version: Version, run_id: str) -> int:
        """Record a use by the run; return which use it is, from 1. Raises Fault as the registry.

        A run that goes on after a crash is the same use.
        """
        uses = [use for use in version.tags.get(self.tag, "").split(",") if use]
        if run_id not in uses:
            uses.append(run_id)
            self.registry.set_tags(version.number, {self.tag: ",".join(uses)})
        return uses.index(run_id) + 1
