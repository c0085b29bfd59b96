"""MLflow's limits are met without losing a character or a name."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name, _validate_param

from outrider.tracking.names import MAX_KEY, MAX_PARAM, finite, fitting, valid_name


def test_ordinary_names_stay() -> None:
    for name in ("tokens_per_s", "speedup_ratio/chat", "model.dtype", "a b", "x:1-2"):
        assert valid_name(name) == name


@settings(deadline=None)
@given(st.text(min_size=1, max_size=400))
def test_mlflow_takes_every_name(name: str) -> None:
    _validate_metric_name(valid_name(name))
    _validate_param(valid_name(name), "")
    assert len(valid_name(name)) <= MAX_KEY


@settings(deadline=None)
@given(st.lists(st.text(max_size=8), unique=True, max_size=20))
def test_names_that_differ_stay_apart(names: list[str]) -> None:
    assert len({valid_name(name) for name in names}) == len(names)


def test_a_long_value_is_kept_whole_beside_a_note() -> None:
    values = {"a": "x" * MAX_PARAM, "b": "y" * (MAX_PARAM + 1)}
    short, texts = fitting(values, limit=MAX_PARAM, folder="params")
    assert short["a"] == values["a"]
    [(artifact, text)] = texts.items()
    assert text == values["b"]
    assert artifact in short["b"]
    assert len(short["b"]) < MAX_PARAM


def test_another_long_value_of_a_name_has_an_artifact_of_its_own() -> None:
    one, other = (fitting({"a": letter * 9}, limit=8, folder="params")[1].keys() for letter in "xy")
    assert one != other


def test_what_no_store_can_write_is_escaped() -> None:
    short, _ = fitting({"path": "a\udcffb\0c"}, limit=MAX_PARAM, folder="params")
    assert short == {"path": "a\\udcffb\\x00c"}


def test_figures_that_are_not_finite_are_left_out() -> None:
    assert finite({"a": 1.0, "b": math.nan, "c": math.inf, "d": -math.inf}) == {"a": 1.0}
