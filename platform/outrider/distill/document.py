"""Hand-written templates and subjects that prompts are made of.

A folder of TOML files (YAML in `conf/` is settings) that are read as one:

- `[kinds.NAME]`: `share` of all prompts and `max_tokens` of their answers;
- `[[families]]`: `name`, `kind`, `share` within the kind (1) and `templates`. A template is the
  user's message, or the turns of a conversation, the user's and the assistant's by turns.
  `system` is a system message for all of the family's templates;
- `[lists]`: what stands for `{list}` in a template; an item with several texts is a table, and
  `{list.field}` is one of them. Every mention of a list in one template means the same item.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.core import UserError

Item = str | Mapping[str, str]
SLOT = re.compile(r"\{([a-z_]+)(?:\.([a-z_]+))?\}")


@dataclass(frozen=True, slots=True)
class Kind:
    """`share`: weight beside the other kinds. `max_tokens`: of one answer."""

    share: float
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Template:
    """`turns`: the user's, the assistant's, the user's, and so on; the last one is the user's."""

    turns: tuple[str, ...]
    system: str = ""

    def lists(self) -> list[str]:
        """The lists that it draws from, in the order of their first mention."""
        return list(dict.fromkeys(name for name, _ in self.slots()))

    def slots(self) -> Iterator[tuple[str, str]]:
        """(list, field) of each mention; the field is empty where the item is the text."""
        for text in (self.system, *self.turns):
            yield from SLOT.findall(text)


@dataclass(frozen=True, slots=True)
class Family:
    """Templates that ask for the same sort of thing. `share`: weight within the kind."""

    name: str
    kind: str
    templates: tuple[Template, ...]
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Document:
    """All that prompts are made of. Made by `parsed`, which refuses what does not fit together."""

    kinds: Mapping[str, Kind]
    families: tuple[Family, ...]
    lists: Mapping[str, tuple[Item, ...]]


def read_document(folder: Path) -> Document:
    """Every TOML file of the folder, in the order of their names. `UserError` names the file."""
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise UserError(f"{folder} has no .toml file with templates")
    whole: dict[str, Any] = {"kinds": {}, "families": [], "lists": {}}
    for path in paths:
        _merge(whole, _read(path), path)
    return parsed(whole)


def parsed(value: Mapping[str, Any]) -> Document:
    """`UserError` names a family that asks for what is not there."""
    try:
        kinds = {name: Kind(**fields) for name, fields in value["kinds"].items()}
        families = tuple(_family(fields) for fields in value["families"])
    except (KeyError, TypeError) as error:
        raise UserError(f"a kind or family has a key too many or too few: {error}") from error
    lists = {name: tuple(items) for name, items in value["lists"].items()}
    for family in families:
        _check(family, kinds, lists)
    return Document(kinds, families, lists)


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: {error}") from error


def _merge(whole: dict[str, Any], part: Mapping[str, Any], path: Path) -> None:
    for section, content in part.items():
        if section not in whole:
            raise UserError(f"{path}: {section} is not known: kinds, families and lists are")
        if section == "families":
            whole[section].extend(content)
            continue
        if twice := whole[section].keys() & content.keys():
            raise UserError(f"{path}: {section}.{min(twice)} stands in another file, too")
        whole[section].update(content)


def _family(fields: Mapping[str, Any]) -> Family:
    rest = dict(fields)
    system = rest.pop("system", "")
    templates = tuple(
        Template((turns,) if isinstance(turns, str) else tuple(turns), system)
        for turns in rest.pop("templates")
    )
    return Family(templates=templates, **rest)


def _check(
    family: Family, kinds: Mapping[str, Kind], lists: Mapping[str, tuple[Item, ...]]
) -> None:
    if family.kind not in kinds:
        raise UserError(f"family {family.name}: kind {family.kind} is none of {', '.join(kinds)}")
    for template in family.templates:
        if len(template.turns) % 2 == 0:
            raise UserError(f"family {family.name}: the last turn must be the user's")
        for name, field in template.slots():
            _check_slot(family, name, field, lists)


def _check_slot(
    family: Family, name: str, field: str, lists: Mapping[str, tuple[Item, ...]]
) -> None:
    slot = f"{name}.{field}" if field else name
    if not lists.get(name):
        raise UserError(f"family {family.name}: there is no list {name}")
    for item in lists[name]:
        if (field not in item) if isinstance(item, Mapping) else bool(field):
            raise UserError(f"family {family.name}: {{{slot}}} is no text of {str(item)[:60]!r}")
