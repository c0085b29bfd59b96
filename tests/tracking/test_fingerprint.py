"""Equal settings have one fingerprint, other settings another, and the difference has names."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from outrider.core import Fault
from outrider.tracking.fingerprint import canonical, differences, fingerprint, flatten


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Ngram:
    length: int = 4


@dataclass(frozen=True)
class Model:
    length: int = 4


@dataclass(frozen=True)
class Job:
    draft: Ngram | Model
    colour: Colour = Colour.RED
    stop: tuple[str, ...] = ()
    temperature: float = 0.0


SETTINGS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@limits(deadline=None, max_examples=50)
@given(st.dictionaries(st.text(), SETTINGS, max_size=5))
def test_order_of_keys_does_not_matter(settings: dict[str, object]) -> None:
    turned = dict(reversed(settings.items()))
    assert fingerprint(settings) == fingerprint(turned)
    assert differences(settings, turned) == []


def test_fingerprint_is_the_same_in_every_process() -> None:
    code = (
        "from outrider.tracking.fingerprint import fingerprint;"
        "print(fingerprint({'b': {'x', 'y', 'z'}, 'a': [1, 2.5, None, 'é']}))"
    )
    seen = {
        subprocess.check_output([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed})
        for seed in ("1", "2")
    }
    assert seen == {fingerprint({"a": [1, 2.5, None, "é"], "b": {"z", "y", "x"}}).encode() + b"\n"}


def test_variants_with_equal_fields_are_told_apart() -> None:
    assert fingerprint(Job(Ngram())) != fingerprint(Job(Model()))
    assert differences(Job(Ngram()), Job(Model())) == ["draft.kind"]


def test_enums_count_by_value_and_tuples_as_lists() -> None:
    job = Job(Ngram(), colour=Colour.BLUE, stop=("a",))
    assert canonical(job) == (
        '{"colour":"blue","draft":{"kind":"Ngram","length":4},"kind":"Job",'
        '"stop":["a"],"temperature":0.0}'
    )


def test_differences_name_the_keys_that_changed() -> None:
    """P06: a refused resume names temperature, k and the model."""
    before = {
        "sampling": {"temperature": 0.0, "top_k": 0},
        "draft": {"length": {"max": 15}},
        "model": {"source": "path:/a"},
    }
    after = {
        "sampling": {"temperature": 0.7, "top_k": 0},
        "draft": {"length": {"max": 8}},
        "model": {"source": "path:/b"},
    }
    assert differences(before, after) == [
        "draft.length.max",
        "model.source",
        "sampling.temperature",
    ]


def test_a_key_that_only_one_side_has_is_a_difference() -> None:
    assert differences({"a": 1}, {"a": 1, "b": None}) == ["b"]
    assert differences({"a": {}}, {"a": {"b": 1}}) == ["a", "a.b"]


def test_true_and_one_are_not_the_same() -> None:
    assert differences({"a": True}, {"a": 1}) == ["a"]


def test_flat_values_are_text() -> None:
    assert flatten(
        {"model": {"dtype": Colour.RED, "path": PurePosixPath("/m")}, "n": [1, None]}
    ) == {
        "model.dtype": "red",
        "model.path": "/m",
        "n": "[1,null]",
    }


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_a_number_has_no_fingerprint(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        fingerprint({"a": value})


def test_what_has_no_canonical_form_is_refused_by_type() -> None:
    with pytest.raises(Fault, match="bytes"):
        fingerprint({"a": b"x"})
