"""A converted model is made once, however many ask, and never half."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openvino_telemetry
import pytest

from outrider.core import UserError
from outrider.engine.runtimes.openvino_cache import converted


def test_one_converts_while_the_others_wait(tiny: Any, tmp_path: Path) -> None:
    loads: list[str] = []

    def load() -> Any:
        loads.append("once")
        return tiny.module(tiny.config("gpt2", num_hidden_layers=1))

    with ThreadPoolExecutor(3) as pool:
        files = list(pool.map(lambda _: converted(tmp_path, "w", 128, load), range(3)))
    assert loads == ["once"]
    assert len(set(files)) == 1
    assert files[0].is_file()


def test_a_conversion_that_fails_leaves_nothing_behind(tiny: Any, tmp_path: Path) -> None:
    module = tiny.module(tiny.config("llama-gqa"))
    module.lm_head.forward = lambda hidden: hidden.numpy()  # what tracing can't follow
    with pytest.raises(UserError, match="model type llama can't be run exactly: OpenVINO"):
        converted(tmp_path, "w", 128, lambda: module)
    assert [path.suffix for path in tmp_path.iterdir()] == [".lock"]


def test_a_conversion_that_gives_other_logits_is_refused(tiny: Any, tmp_path: Path) -> None:
    module = tiny.module(tiny.config("gpt2", num_hidden_layers=1))
    # Scaled by the length of the text, which the traced graph can't know
    module.transformer.wte.register_forward_hook(lambda _, ids, out: out * float(ids[0].shape[-1]))
    with pytest.raises(UserError, match="answers differ"):
        converted(tmp_path, "w", 128, lambda: module)


def test_other_weights_are_another_model(tiny: Any, tmp_path: Path) -> None:
    config = tiny.config("gpt2", num_hidden_layers=1)
    names = {
        converted(tmp_path, digest, 128, lambda: tiny.module(config)).parent.name for digest in "ab"
    }
    assert len(names) == 2


def test_nobody_is_told_of_a_conversion(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenVINO's makers would hear of it, from another process."""
    told: list[str] = []
    hear = lambda *_, **__: told.append("an event")  # noqa: E731
    monkeypatch.setattr(openvino_telemetry.Telemetry, "send_event", hear)
    config = tiny.config("gpt2", num_hidden_layers=1)
    converted(tmp_path, "w", 128, lambda: tiny.module(config))
    assert not told
