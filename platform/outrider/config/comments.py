"""The comments in `conf/`: what `--help` says of a key, and what a test demands of every key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

KEY = re.compile(r"^(?P<indent> *)(?P<key>\w+):(?P<rest>( .*)?)$")
PACKAGE = "# @package "


@dataclass(frozen=True)
class Entry:
    """One key of a file: its full name in the composed configuration and what is said of it."""

    key: str
    comment: str
    line: int
    is_section: bool  # has keys under it instead of a value


@dataclass(frozen=True)
class Document:
    """What a configuration file says of itself and of its keys."""

    title: str  # the first comment line: what choosing this file does
    entries: tuple[Entry, ...]


def document(path: Path, folder: Path) -> Document:
    """Read the comments of a file in `folder`; a group's keys get the group's name in front."""
    lines = path.read_text(encoding="utf-8").splitlines()
    group = ".".join(path.relative_to(folder).parent.parts)
    package = next((line[len(PACKAGE) :] for line in lines if line.startswith(PACKAGE)), group)
    titles = [line[2:] for line in lines if line.startswith("# ") and not line.startswith(PACKAGE)]
    prefix = "" if package == "_global_" else package
    return Document(titles[0] if titles else "", tuple(_entries(lines, prefix)))


def _entries(lines: list[str], prefix: str) -> list[Entry]:
    found: list[Entry] = []
    stack: list[tuple[int, str]] = []  # (indent, key) of the sections around a line
    for number, line in enumerate(lines, start=1):
        match = KEY.match(line)
        if match is None:
            continue
        indent = len(match["indent"])
        stack = [*(outer for outer in stack if outer[0] < indent), (indent, match["key"])]
        names = [name for _, name in stack]
        if names[0] == "defaults":
            continue
        key = ".".join([prefix, *names] if prefix else names)
        value, _, comment = match["rest"].partition(" #")
        found.append(Entry(key, comment.strip(), number, is_section=not value.strip()))
    return found
