"""A draft head: one decoder layer that drafts from what the target's own layers made of the tokens.

EAGLE-3 (Li et al. 2025, arXiv 2503.01840), with a trimmed vocabulary (FR-Spec, arXiv 2502.14856).
"""

from outrider.engine.head.compiled import CompiledHead, Told
from outrider.engine.head.config import HeadConfig, Target
from outrider.engine.head.embedding import load_embedding
from outrider.engine.head.files import load_head, save_head
from outrider.engine.head.kv import HeadKV
from outrider.engine.head.module import DraftHead

__all__ = [
    "CompiledHead",
    "DraftHead",
    "HeadConfig",
    "HeadKV",
    "Target",
    "Told",
    "load_embedding",
    "load_head",
    "save_head",
]
