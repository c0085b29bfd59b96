"""Draft heads that were registered: versions of one model of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

NAME = "outrider-draft"  # of the registered model whose versions heads are
FILES = ("config.json", "model.safetensors")  # of a head's folder


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadVersion:
    """A registered head, and the name that it was given."""

    number: int
    alias: str  # champion: the first of all; challenger: the newest; "": known, as it was

    @property
    def source(self) -> str:
        """What `draft.head.source` takes."""
        return f"mlflow:models:/{NAME}/{self.number}"


class HeadRegistry(Protocol):
    """Where heads are registered. Raises Fault while the store is away.

    The head of a release that becomes champion becomes the champion of heads.
    """

    def register(
        self, folder: Path, fingerprint: str, tags: Mapping[str, str], run_id: str
    ) -> HeadVersion:
        """The version of this fingerprint: looked up first, made of `folder` where there is none.

        Of the folder only `FILES` are taken. `tags` name its parents.
        """
