"""`draft.head.source=auto`: the draft head that is shipped for the model, if there is one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from outrider.config.schema import DrafterKind, DraftSettings, HeadSettings, ModelSettings
from outrider.core import UserError
from outrider.models import AUTO_HEAD, default_cache_dir, resolve, shipped_head
from outrider.recipe import HEADS


def with_shipped_head(
    model: ModelSettings, draft: DraftSettings, store: str, shipped: Path = HEADS
) -> DraftSettings:
    """`draft` with the head named. Where none is shipped, composite is prompt lookup alone, and
    says so; drafter head is refused with a UserError. `store`: `stores.models_uri`."""
    if draft.head.source != AUTO_HEAD:
        return draft
    notices = Console(stderr=True)
    cache_dir = default_cache_dir(os.environ)
    target = resolve(model.source, cache_dir=cache_dir, notice=notices.print, store=store)
    source = shipped_head(target, shipped)
    if source:
        return replace(draft, head=HeadSettings(source=source))
    missing = f"no draft head is shipped for {model.source.split('#')[0]}"
    if draft.drafter is DrafterKind.HEAD:
        raise UserError(f"draft.head.source=auto: {missing}: jobs/distill.py learns one")
    if draft.drafter is DrafterKind.COMPOSITE:
        said = f"{missing}: drafts come from prompt lookup alone (jobs/distill.py learns a head)"
        notices.print(said, highlight=False, markup=False, soft_wrap=True)
        draft = replace(draft, drafter=DrafterKind.NGRAM)
    return replace(draft, head=HeadSettings())
