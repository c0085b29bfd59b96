"""A draft head for a model, learnt from what the model wrote."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from outrider.config.schema.model import Dtype, ModelSettings
from outrider.config.schema.tracking import TrackingSettings


class DistillAction(Enum):
    """What jobs/distill.py does."""

    TRAIN = "train"  # learn a head from texts
    PROMPTS = "prompts"  # write prompts for a bulk job whose answers are learnt from


class HeadInit(Enum):
    """What the head's layer begins as."""

    TARGET = "target"  # the target's last layer
    RANDOM = "random"


@dataclass(frozen=True, kw_only=True)
class DistillSettings:
    """A draft head for a model, learnt from what the model wrote (`outrider.distill`)."""

    action: DistillAction = DistillAction.TRAIN
    out: str = ""  # action=prompts: JSONL file, a batch for jobs/bulk.py
    num_prompts: int = 12_000  # action=prompts: how many
    seed: int = 0  # of prompts, of the order of rows, of random weights
    input: str = ""  # action=train: folder of a bulk job, or JSONL of prompts and completions
    head_dir: str = ""  # action=train: folder of the head; gone on with if it is there
    limit: int = 0  # rows read of the input; 0: all
    max_tokens: int = 512  # tokens of a row, prompt and answer; what is longer is cut
    valid_share: float = 0.05  # of the rows: never learnt from, judged by
    max_valid_rows: int = 400  # of those, how many a judgement looks at
    feature_layers: tuple[int, ...] = ()  # of the target, from 0; (): a low, middle, high one
    features_dir: str = ""  # where features are kept, gigabytes; empty: the cache of models
    feature_tokens: int = 512  # tokens of the target's forward
    vocab_size: int = 8192  # tokens that the head can say
    init: HeadInit = HeadInit.TARGET
    num_steps: int = 4  # steps that it learns to look ahead, the first included
    step_weight: float = 0.9  # of a step's loss beside that of the step before
    num_epochs: int = 8  # times that every row is learnt from
    batch_tokens: int = 4096  # tokens that one update is made of
    learning_rate: float = 5e-4  # the highest; it rises, then falls as a cosine
    warmup_share: float = 0.03  # of the updates, in which it rises
    weight_decay: float = 0.01
    max_norm: float = 1.0  # of the gradient; a longer one is shortened
    train_dtype: Dtype = Dtype.BFLOAT16  # of products in training; weights are float32
    eval_updates: int = 200  # updates between two judgements, each of which is a checkpoint
    patience: int = 6  # judgements without a better head after which it ends
    num_workers: int = 1  # processes that compute features and learn; above 1: of a cluster
    license: str = ""  # SPDX name, for the card of the head; empty: not told
    register: bool = True  # as a version of the model outrider-draft, where runs are recorded


@dataclass(frozen=True, kw_only=True)
class DistillJob:
    """Root of `conf/distill.yaml`."""

    model: ModelSettings
    tracking: TrackingSettings
    distill: DistillSettings
