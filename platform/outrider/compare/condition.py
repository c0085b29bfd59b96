"""One condition that a recorded run meets or not: `in_flight=8`, `speedup_ratio>1`. Pure."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from outrider.compare.name import known
from outrider.compare.value import number
from outrider.core import UserError

Facts = Mapping[str, str | float]
"""What a run says of itself by name: figures, params, tags, and name, kind, status, version."""

FORMS = (
    "name=text, name!=text, name~part, name>1, name>=1, name<1 or name<=1, "
    "where name is a figure, param or tag, or name, kind, status, version, alias, run_id, trial"
)
ORDER: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_FORM = re.compile(r"\s*(?P<name>[^<>=!~]+?)\s*(?P<sign>>=|<=|!=|==|=|>|<|~)\s*(?P<value>.+?)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """A run that does not say `name` never meets it."""

    name: str
    sign: str
    value: str

    @staticmethod
    def parse(text: str) -> Condition:
        """UserError, which says the forms, for anything else."""
        found = _FORM.fullmatch(text)
        if found is None:
            raise UserError(f"compare.where: {text!r} is no condition; give {FORMS}")
        sign = "=" if found["sign"] == "==" else found["sign"]
        if sign in ORDER and number(found["value"]) is None:
            raise UserError(
                f"compare.where: {text!r} needs a number behind {sign}, got {found['value']!r}"
            )
        return Condition(found["name"], sign, found["value"])

    def over(self, names: list[str]) -> Condition:
        """With the name in full. UserError where no run says it."""
        text = f"compare.where: {self.name}{self.sign}{self.value}"
        return Condition(known(self.name, names, text), self.sign, self.value)

    def holds(self, facts: Facts) -> bool:
        said = facts.get(self.name)
        if said is None:
            return False
        if self.sign in ORDER:
            value = number(str(said))
            return value is not None and ORDER[self.sign](value, float(self.value))
        if self.sign == "~":
            return self.value.lower() in str(said).lower()
        return _is_same(str(said), self.value) == (self.sign == "=")


def _is_same(said: str, value: str) -> bool:
    """Numbers as numbers (8 is 8.0), texts in any case."""
    left, right = number(said), number(value)
    if left is not None and right is not None:
        return left == right
    return said.lower() == value.lower()
