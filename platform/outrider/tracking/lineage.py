"""Everything that a release and a run come from, each by one digest: equal digests, equal origin.

As tags `lineage.<name>` of runs and of registered versions. What there is none of is left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outrider.models import HeadFiles, ModelFiles
from outrider.tracking.fingerprint import fingerprint
from outrider.tracking.provenance import Provenance

RENDERERS = ("outrider", "transformers", "tokenizers")  # whose code turns rows into token ids


def lineage(
    settings: Mapping[str, Any],
    config: Mapping[str, Any],
    target: ModelFiles,
    draft: ModelFiles | HeadFiles | None,
    provenance: Provenance,
) -> dict[str, str]:
    """Name -> digest.

    `settings` is what the release's fingerprint is of, `config` the sections as they were composed.
    A job adds what only it knows: the digests of its input and of its prompts (`of_data`).
    """
    found = {
        "preprocessing": fingerprint(_preprocessing(target, provenance)),
        "tokenizer": target.tokenizer_digest,
        "weights": target.weights_digest,
        "draft_weights": draft.weights_digest if draft else "",
        "configuration": fingerprint(config),
        "prompt": target.chat_template_digest or "",  # its default system prompt included
        "policy": fingerprint(_policy(settings)),
        "hardware": fingerprint(provenance.hardware),
        "code": _code(provenance),
        "lock": provenance.code.lock_sha256,
    }
    return {name: digest for name, digest in found.items() if digest}


def of_data(*, source_data: str = "", evaluation_set: str = "") -> dict[str, str]:
    """The part of it that a job brings."""
    found = {"source_data": source_data, "evaluation_set": evaluation_set}
    return {name: digest for name, digest in found.items() if digest}


def _preprocessing(target: ModelFiles, provenance: Provenance) -> dict[str, Any]:
    """How rows become token ids."""
    return {
        "tokenizer": target.tokenizer_digest,
        "chat_template": target.chat_template_digest,
        "packages": {name: provenance.packages.get(name) for name in RENDERERS},
    }


def _policy(settings: Mapping[str, Any]) -> dict[str, Any]:
    """By what rule, how far ahead and how sampled tokens are chosen."""
    return {
        "rule": settings["engine"]["rule"],
        "draft": settings["draft"],
        "sampling": settings["sampling"],
    }


def _code(provenance: Provenance) -> str:
    """The revision, and the diff's digest where it was not all."""
    code = provenance.code
    return f"{code.revision}+{code.diff_sha256}" if code.is_dirty else code.revision
