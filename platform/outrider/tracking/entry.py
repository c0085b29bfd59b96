"""What a run says to its store, one entry at a time; each is also one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TypeAlias

from outrider.core import Fault

LOCAL = "local-"  # begins the id of a run that the store does not know yet


@dataclass(frozen=True, kw_only=True)
class Opened:
    """A run began, or goes on. `key` is ours and exists before the store's `run_id` does.

    `parent` and `resumes` are run ids as `Run.run_id` told them: the store's, or `local-<key>` of
    a run that it did not have yet.
    """

    key: str
    name: str
    at_s: float  # seconds since the epoch
    tags: Mapping[str, str] = field(default_factory=dict)
    params: Mapping[str, str] = field(default_factory=dict)
    run_id: str = ""  # the store's; empty while unknown
    parent: str = ""  # the run that this one is shown under
    resumes: str = ""  # the run that this one is, if the store has it

    @property
    def shown_id(self) -> str:
        """What `Run.run_id` tells."""
        return self.run_id or self.resumes or LOCAL + self.key

    @property
    def ids(self) -> frozenset[str]:
        """All that it may have told, now and before."""
        return frozenset({self.run_id, self.resumes, LOCAL + self.key}) - {""}


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Metrics of one step."""

    metrics: Mapping[str, float]
    step: int
    at_s: float


@dataclass(frozen=True, kw_only=True)
class Tagged:
    tags: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class FileKept:
    """A copy of the file `path` goes into `folder` of the artifacts."""

    path: str
    folder: str = ""


@dataclass(frozen=True, kw_only=True)
class TextKept:
    """`text` becomes the artifact `name`."""

    text: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Registered:
    """The release that the run decodes with; `record` is its `release.json`."""

    record: str


@dataclass(frozen=True, kw_only=True)
class Closed:
    status: str
    at_s: float


Entry: TypeAlias = Opened | Figures | Tagged | FileKept | TextKept | Registered | Closed

KINDS: dict[str, type[Entry]] = {
    kind.__name__: kind
    for kind in (Opened, Figures, Tagged, FileKept, TextKept, Registered, Closed)
}


def to_line(entry: Entry) -> str:
    """One line of JSON, without its newline."""
    return json.dumps({"kind": type(entry).__name__} | asdict(entry))  # ASCII: no odd line ends


def from_line(line: str) -> Entry:
    """The entry of `to_line`. Raises Fault for a line cut short or of another version."""
    try:
        fields = json.loads(line)
        return KINDS[fields.pop("kind")](**fields)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Fault(f"not an entry: {line[:80]!r}") from error


def grouped(entries: Sequence[Entry], most: int) -> Iterator[Sequence[Entry]]:
    """`entries` in their order, neighbours that are Figures together: at most `most` of them."""
    group: list[Entry] = []
    for entry in entries:
        if group and not (isinstance(entry, Figures) and len(group) < most):
            yield group
            group = []
        group.append(entry)
        if not isinstance(entry, Figures):
            yield group
            group = []
    if group:
        yield group


def with_run_id(opened: Opened, run_id: str) -> Opened:
    return replace(opened, run_id=run_id)
