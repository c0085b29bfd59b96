"""Strict typing of plain mappings."""

from dataclasses import dataclass, field
from enum import Enum

import pytest

from outrider.config.typed import keys, plain, typed
from outrider.core import UserError


class Colour(Enum):
    RED = "red"
    DARK_BLUE = "dark-blue"


@dataclass(frozen=True, kw_only=True)
class Wheel:
    size: int
    spokes: tuple[int, ...] = (3,)


@dataclass(frozen=True, kw_only=True)
class Cart:
    name: str
    load: float = 1.0
    is_covered: bool = False
    colour: Colour = Colour.RED
    wheel: Wheel = field(default_factory=lambda: Wheel(size=1))
    spare: Wheel | None = None


def refusal(data: object) -> str:
    with pytest.raises(UserError) as caught:
        typed(Cart, data)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_given_is_taken_and_the_rest_is_default() -> None:
    cart = typed(Cart, {"name": "a", "wheel": {"size": 2, "spokes": [4, 5]}, "spare": None})
    assert cart == Cart(name="a", wheel=Wheel(size=2, spokes=(4, 5)))


def test_a_whole_number_is_a_number_but_not_the_other_way_round() -> None:
    assert typed(Cart, {"name": "a", "load": 2}).load == 2.0
    assert refusal({"name": "a", "wheel": {"size": 2.0}}).startswith("wheel.size: expected a whole")


@pytest.mark.parametrize("spelling", ["dark-blue", "DARK_BLUE", "Dark-Blue", "dark_blue"])
def test_a_choice_is_known_by_value_or_name_in_any_case(spelling: str) -> None:
    assert typed(Cart, {"name": "a", "colour": spelling}).colour is Colour.DARK_BLUE


@pytest.mark.parametrize(
    ("data", "beginning"),
    [
        ({"name": "a", "lod": 2}, "lod: no such key; did you mean load?"),
        ({"name": "a", "wheel": {"size": 1, "spoke": []}}, "wheel.spoke: no such key"),
        ({}, "name is missing: give name=..."),
        ({"name": "???"}, "name is missing"),
        ({"name": "a", "load": "???"}, "load is missing"),
        ({"name": "a", "spare": {}}, "spare.size is missing"),
        ({"name": "a", "load": "heavy"}, "load: expected a number, got 'heavy'"),
        ({"name": "a", "load": True}, "load: expected a number, got True"),
        ({"name": "a", "load": float("nan")}, "load: expected a number"),
        ({"name": "a", "load": None}, "load: expected a number, got null"),
        ({"name": "a", "is_covered": 1}, "is_covered: expected true or false, got 1"),
        ({"name": "a", "colour": "rde"}, "colour: unknown value 'rde'; did you mean red? choose"),
        ({"name": "a", "wheel": 3}, "wheel: expected keys under it, got 3"),
        ({"name": "a", "wheel": {"size": 1, "spokes": "123"}}, "wheel.spokes: expected a list"),
        ({"name": "a", "wheel": {"size": 1, "spokes": [1, "x"]}}, "wheel.spokes[1]: expected a"),
        ({"name": True}, "name: expected text, got True"),
        (7, "the configuration: expected keys"),
    ],
)
def test_what_cannot_be_meant_is_refused_by_its_full_key(data: object, beginning: str) -> None:
    assert refusal(data).startswith(beginning)


def test_a_file_name_that_looks_like_a_number_is_text() -> None:
    assert typed(Cart, {"name": 2024}).name == "2024"


def test_plain_and_typed_undo_each_other() -> None:
    cart = Cart(name="a", colour=Colour.DARK_BLUE, spare=Wheel(size=4, spokes=(1, 2)))
    assert typed(Cart, plain(cart)) == cart


def test_keys_go_through_optional_sections() -> None:
    names = [key for key, _ in keys(Cart)]
    assert names[:2] == ["name", "load"]
    assert "spare.size" in names
