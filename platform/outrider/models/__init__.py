"""Where weights come from: a `model.source` in, a checked Hugging Face folder and its digests out.

Nothing heavy is imported here: torch and transformers are met inside the functions that need them.
"""

from outrider.models.cache import default_cache_dir
from outrider.models.files import ModelFiles, pinned, resolve
from outrider.models.head_source import (
    AUTO_HEAD,
    HeadFiles,
    pinned_head,
    resolve_head,
    shipped_head,
)
from outrider.models.source import parse_source
from outrider.models.tokenizer import HfTokenizer, same_vocabulary

__all__ = [
    "AUTO_HEAD",
    "HeadFiles",
    "HfTokenizer",
    "ModelFiles",
    "default_cache_dir",
    "parse_source",
    "pinned",
    "pinned_head",
    "resolve",
    "resolve_head",
    "same_vocabulary",
    "shipped_head",
]
