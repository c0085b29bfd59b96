"""What a head is, whose it is, and where it came from: the `config.json` of its folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Protocol

from outrider.core import UserError

KIND = "outrider-draft-head"
VERSION = 1
_COUNTS = (
    "vocab_size",
    "draft_vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_heads",
    "num_kv_heads",
    "head_dim",
)


class Target(Protocol):
    """What tells one target from another (`outrider.models.ModelFiles` does)."""

    @property
    def weights_digest(self) -> str: ...

    @property
    def tokenizer_digest(self) -> str: ...


@dataclass(frozen=True, kw_only=True)
class HeadConfig:
    """Sizes are numbers of elements; digests are those of a `Target`."""

    target_weights: str  # digest
    target_tokenizer: str  # digest
    vocab_size: int  # of the target: ids of the vocabulary map are below it
    draft_vocab_size: int  # tokens that the head can say
    hidden_size: int  # the target's and the head's
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    feature_layers: tuple[int, ...]  # the target's decoder layers whose outputs it reads, from 0
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-5
    provenance: Mapping[str, str] = field(default_factory=dict)  # command, data, parents, figures

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if not _is_count(getattr(self, name)):
                raise _wrong(name, "a whole number above 0", getattr(self, name))
        if self.num_heads % self.num_kv_heads:
            raise _wrong("num_heads", f"a multiple of num_kv_heads ({self.num_kv_heads})", self)
        if self.head_dim % 2:
            raise _wrong("head_dim", "even", self.head_dim)
        layers = self.feature_layers
        if not layers or not all(isinstance(i, int) for i in layers) or layers[0] < 0:
            raise _wrong("feature_layers", "numbers of decoder layers from 0", list(layers))
        if list(layers) != sorted(set(layers)):
            raise _wrong("feature_layers", "growing", list(layers))
        if self.draft_vocab_size > self.vocab_size:
            raise _wrong("draft_vocab_size", f"at most vocab_size ({self.vocab_size})", self)
        for name in ("rope_theta", "norm_eps"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < math.inf:
                raise _wrong(name, "a number above 0", value)

    @property
    def feature_size(self) -> int:
        """Width of what it reads of the target at one token."""
        return len(self.feature_layers) * self.hidden_size

    def to_json(self) -> str:
        return json.dumps({"kind": KIND, "version": VERSION, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def of_json(cls, text: str) -> HeadConfig:
        """Raise UserError, one line, for anything that is not a head of this version."""
        told = _object(text)
        if told.pop("kind", None) != KIND:
            raise UserError(f"it is no draft head (kind is not {KIND})")
        version = told.pop("version", None)
        if version != VERSION:
            raise UserError(f"a head of version {version} is not read here, only {VERSION}")
        known = {entry.name for entry in fields(cls)}
        unknown = sorted(told.keys() - known)
        if unknown:
            raise UserError(f"no such key: {unknown[0]}")
        try:
            told["feature_layers"] = tuple(told["feature_layers"])
            return cls(**told)
        except (TypeError, KeyError) as error:
            raise UserError(f"incomplete: {' '.join(str(error).split())}") from error


def _object(text: str) -> dict[str, Any]:
    try:
        told = json.loads(text)
    except ValueError as error:
        raise UserError(f"not readable JSON ({error})") from error
    if not isinstance(told, dict):
        raise UserError("not a JSON object")
    return told


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _wrong(name: str, expected: str, found: object) -> UserError:
    value = getattr(found, name) if isinstance(found, HeadConfig) else found
    return UserError(f"{name} must be {expected}, got {value!r}")
