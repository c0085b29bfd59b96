"""What does not work, told once, and once more when it works again."""

from __future__ import annotations

from collections.abc import Callable


class Complaints:
    """By what they are about: the service, the registry, the database, ..."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._told: dict[str, str] = {}

    def about(self, what: str, trouble: str = "") -> None:
        """Tell `trouble` where it is another than at the last look; empty: all is well."""
        before = self._told.get(what, "")
        self._told[what] = trouble
        if trouble and trouble != before:
            self._tell(f"{what}: {trouble}")
        elif before and not trouble:
            self._tell(f"{what}: all is well again")
