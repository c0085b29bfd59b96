"""A name that the user gave, among those that were recorded. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from outrider.core import UserError

MOST = 4  # names that an error lists
MOST_ALL = 12  # as many names are all listed


def known(name: str, names: Collection[str], what: str) -> str:
    """`name`, or the one that ends so (`length.max`). UserError, begun by `what`, else."""
    if name in names:
        return name
    ends = sorted(full for full in names if full.endswith(f".{name}"))
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise UserError(f"{what}: more than one name ends so: {', '.join(ends[:MOST])}")
    raise UserError(f"{what}: nothing recorded is called {name!r}{near(name, names)}")


def near(name: str, names: Collection[str]) -> str:
    """`; near it: a, b`, or all of them where they are few, or nothing."""
    listed = nearest(name, names)
    if listed:
        return f"; near it: {', '.join(listed)}"
    return f"; there are {', '.join(sorted(names))}" if 0 < len(names) <= MOST_ALL else ""


def nearest(name: str, names: Collection[str]) -> list[str]:
    """At most four names: alike in whole, alike in their last part, or that hold `name`."""
    by_end = {full.rpartition(".")[2]: full for full in sorted(names, reverse=True)}
    found = difflib.get_close_matches(name, names, n=3)
    found += [by_end[end] for end in difflib.get_close_matches(name, by_end, n=2)]
    found += sorted(full for full in names if name and name.lower() in full.lower())
    return list(dict.fromkeys(found))[:MOST]
