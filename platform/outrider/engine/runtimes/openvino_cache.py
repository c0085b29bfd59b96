"""Converted models on disk: made once per weights, versions and recipe, and tried before use."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openvino as ov
import transformers
from filelock import FileLock

from outrider.config.schema import Dtype
from outrider.core import Fault, UserError
from outrider.engine.runtimes.agreement import Reference, disagreement, reference_of
from outrider.engine.runtimes.layer_tap import features_named
from outrider.engine.runtimes.openvino_conversion import RECIPE, convert
from outrider.engine.runtimes.openvino_runtime import BLOCK_SIZE, OpenVinoModel
from outrider.engine.runtimes.refusal import refusal

_MODEL = "model.xml"
_TOLERANCE = 1e-3  # float32 differs by 1e-5 or less; a lost mask or position by far more


def converted(
    cache_dir: Path,
    digest: str,
    context_length: int,
    load: Callable[[], Any],
    feature_layers: tuple[int, ...] = (),
) -> Path:
    """Return the model file for these weights; `load` gives the float32 module where it is new.

    One that gives features has a file of its own.

    Several processes may ask at once: one converts, under a lock, and renames when complete.
    UserError where the model can't be converted, or gives other logits afterwards.
    """
    key = _key(digest, context_length, feature_layers)
    folder = cache_dir / f"openvino-{key}"
    if not folder.is_dir():
        cache_dir.mkdir(parents=True, exist_ok=True)
        with FileLock(cache_dir / f"openvino-{key}.lock"):
            if not folder.is_dir():
                _convert_into(folder, load(), context_length, feature_layers)
    return folder / _MODEL


def _convert_into(
    folder: Path, module: Any, context_length: int, feature_layers: tuple[int, ...]
) -> None:
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    config = module.config
    try:
        expected = reference_of(module, feature_layers)
        model = convert(module, context_length, feature_layers)
        # compress_to_fp16 is save_model's default, and loses bits that bfloat16 has
        ov.save_model(model, unfinished / _MODEL, compress_to_fp16=False)
        _require_agreement(unfinished / _MODEL, config, context_length, expected, feature_layers)
        unfinished.rename(folder)
    except (OSError, UserError, Fault):
        raise
    except Exception as error:  # whatever tracing meets in a model's own code
        first_line = (str(error).strip().splitlines() or [""])[0]
        raise refusal(config, f"OpenVINO can't convert it ({first_line})") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _require_agreement(
    file: Path,
    config: Any,
    context_length: int,
    expected: Reference,
    feature_layers: tuple[int, ...],
) -> None:
    model = OpenVinoModel(
        file,
        dtype=Dtype.FLOAT32,
        num_blocks=2,
        block_size=BLOCK_SIZE,
        context_length=context_length,
        num_threads=1,
        digest="",
        feature_layers=feature_layers,
    )
    difference = disagreement(model, expected)
    if not difference <= _TOLERANCE:  # NaN too
        raise refusal(config, f"OpenVINO's answers differ by {difference:.1e} of the largest")


def _key(digest: str, context_length: int, feature_layers: tuple[int, ...]) -> str:
    versions = (ov.__version__, transformers.__version__, RECIPE)
    features = features_named(feature_layers).values()
    text = "\n".join((digest, str(context_length), *versions, *features))
    return hashlib.sha256(text.encode()).hexdigest()[:20]
