"""What runs a model. `open_model` picks; each runtime implements `LanguageModel`."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from outrider.config.schema import Dtype, ModelSettings, RuntimeKind
from outrider.core import UserError
from outrider.engine.head.stages import Compile, as_it_is
from outrider.engine.language_model import FeatureModel
from outrider.engine.runtimes.layer_tap import check_layers
from outrider.engine.runtimes.loading import (
    TORCH_DTYPES,
    context_length,
    load_config,
    load_module,
)
from outrider.engine.runtimes.refusal import refusal, refuse_inexact, refuse_unconvertible

__all__ = ["head_compiler", "open_model", "resolve_device"]

# Of the largest logit. What a lost mask or a wrong position does is far larger.
_TOLERANCES = {Dtype.FLOAT64: 1e-6, Dtype.FLOAT32: 1e-3, Dtype.BFLOAT16: 0.1}


def open_model(
    folder: Path,
    settings: ModelSettings,
    *,
    digest: str,
    cache_dir: Path,
    notice: Callable[[str], None],
    feature_layers: tuple[int, ...] = (),
) -> FeatureModel:
    """Load the Hugging Face model in `folder` as `settings` say.

    `digest` names the weights; `cache_dir` keeps converted models; `notice` hears of choices that
    the user may not expect; `feature_layers` are the decoder layers whose outputs are wanted, from
    0. UserError names the model type or the key that can't be had.
    """
    if not isinstance(settings.runtime, RuntimeKind):
        known = ", ".join(kind.value for kind in RuntimeKind)
        raise UserError(f"model.runtime {settings.runtime}: known are {known}")
    config = load_config(folder)
    length = context_length(config, settings.max_context_length)
    refuse_inexact(config, length)
    check_layers(feature_layers, config.num_hidden_layers)
    device = resolve_device(settings.device)
    num_threads = _num_threads(settings)
    torch.set_num_threads(num_threads)  # Ray sets OMP_NUM_THREADS to the actor's CPUs, often 1
    common = {
        "num_blocks": settings.kv_blocks,
        "block_size": settings.block_size,
        "context_length": length,
        "num_threads": num_threads,
        "digest": digest,
        "feature_layers": feature_layers,
    }
    if _prefers_openvino(settings, device):
        try:
            refuse_unconvertible(config)
            return _open_openvino(
                folder, settings.dtype, cache_dir, common, twin=settings.twin_graph
            )
        except UserError as error:
            if settings.runtime is RuntimeKind.OPENVINO:
                raise
            notice(f"openvino can't run this model, so torch does: {error}")
    return _open_torch(folder, settings.dtype, device, common)


def head_compiler(settings: ModelSettings) -> Compile:
    """How a draft head's stages are computed beside the model that `settings` open."""
    if not _prefers_openvino(settings, resolve_device(settings.device)):
        return as_it_is
    from outrider.engine.runtimes.packed_stage import PackedStage

    return partial(PackedStage, num_threads=_num_threads(settings))


def resolve_device(name: str) -> torch.device:
    """Return the device that `model.device` names. UserError where this machine has none such."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise UserError(f"model.device {name}: known are auto, cpu, cuda, cuda:<n>") from error
    if device.type not in ("cpu", "cuda"):
        raise UserError(f"model.device {name}: known are auto, cpu, cuda, cuda:<n>")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"model.device {name}: this machine has {torch.cuda.device_count()} of them"
        )
    return device


def _num_threads(settings: ModelSettings) -> int:
    return settings.num_threads or len(os.sched_getaffinity(0))


def _prefers_openvino(settings: ModelSettings, device: torch.device) -> bool:
    if settings.runtime is RuntimeKind.OPENVINO:
        if device.type != "cpu":
            raise UserError(f"model.device {settings.device}: runtime openvino runs on cpu only")
        return True
    on_cpu = device.type == "cpu" and settings.dtype is not Dtype.FLOAT64
    return settings.runtime is RuntimeKind.AUTO and on_cpu


def _open_openvino(
    folder: Path, dtype: Dtype, cache_dir: Path, common: dict[str, Any], *, twin: bool
) -> FeatureModel:
    # OpenVINO takes a second to import, and torch's users don't need it
    from outrider.engine.runtimes.openvino_cache import converted
    from outrider.engine.runtimes.openvino_runtime import OpenVinoModel, check_settings

    check_settings(dtype, common["block_size"])
    file = converted(
        cache_dir,
        common["digest"],
        common["context_length"],
        load=lambda: load_module(folder, torch.float32),
        feature_layers=common["feature_layers"],
    )
    return OpenVinoModel(file, dtype=dtype, twin=twin, **common)


def _open_torch(
    folder: Path, dtype: Dtype, device: torch.device, common: dict[str, Any]
) -> FeatureModel:
    from outrider.engine.runtimes.agreement import disagreement, reference_of
    from outrider.engine.runtimes.torch_runtime import TorchModel

    module: Any = load_module(folder, TORCH_DTYPES[dtype], str(device))
    expected = reference_of(module, common["feature_layers"])
    model = TorchModel(module, **common)
    difference = disagreement(model, expected)
    if not difference <= _TOLERANCES[dtype]:  # NaN too
        raise refusal(module.config, f"its answers differ by {difference:.1e} of the largest")
    return model
