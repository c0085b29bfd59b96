"""What decodes: its fingerprint, and what else the record of a run should hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import Any, Protocol

import yaml

from outrider.config.schema import (
    DraftSettings,
    EngineSettings,
    ModelSettings,
    SamplingSettings,
)
from outrider.config.typed import plain
from outrider.models import HeadFiles, ModelFiles
from outrider.models.source import anchored
from outrider.tracking.fingerprint import fingerprint
from outrider.tracking.lineage import lineage, of_data
from outrider.tracking.provenance import Provenance
from outrider.tracking.release_record import SECTIONS, ReleaseRecord

# How fast and where a release runs is not what it is: a job may go on with other resources.
RESOURCES = {
    "model": ("source", "num_threads", "kv_blocks", "block_size", "twin_graph"),
    "engine": ("max_rows", "max_round_tokens", "prefix_caching", "trace"),
}


class Decoding(Protocol):
    """What bulk jobs and live serving have in common."""

    @property
    def model(self) -> ModelSettings: ...
    @property
    def engine(self) -> EngineSettings: ...
    @property
    def draft(self) -> DraftSettings: ...
    @property
    def sampling(self) -> SamplingSettings: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What decodes: `settings` is what was fingerprinted, `model` the name that answers carry."""

    fingerprint: str
    settings: Mapping[str, Any]
    model: str
    conditions: Mapping[str, Any] = field(default_factory=dict)  # go into the report as they are
    params: Mapping[str, Any] = field(default_factory=dict)  # further parameters of the run
    tags: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)  # artifact name -> text
    config: Mapping[str, Any] = field(default_factory=dict)  # SECTIONS, whole: builds it again
    lock_sha256: str = ""
    revision: str = ""
    lineage: Mapping[str, str] = field(default_factory=dict)  # name -> digest

    @property
    def record(self) -> ReleaseRecord:
        """What the registry keeps."""
        return ReleaseRecord(
            fingerprint=self.fingerprint,
            settings=self.settings,
            config=self.config,
            lock_sha256=self.lock_sha256,
            revision=self.revision,
            lineage=self.lineage,
        )

    @property
    def run_tags(self) -> dict[str, str]:
        """`tags`, and the lineage."""
        return {**self.tags, **self.record.tags}

    def on_data(self, *, source_data: str = "", evaluation_set: str = "") -> Release:
        """The same release in a job on this data (digests)."""
        data = of_data(source_data=source_data, evaluation_set=evaluation_set)
        return replace(self, lineage={**self.lineage, **data})

    def tagged(self, tags: Mapping[str, str]) -> Release:
        return replace(self, tags={**self.tags, **tags})


def make_release(
    settings: Decoding,
    target: ModelFiles,
    draft: ModelFiles | HeadFiles | None,
    provenance: Provenance,
    words: Sequence[str] = (),
    resources: Mapping[str, Any] | None = None,
) -> Release:
    """What decodes. `words` are the user's overrides; `resources` go into the conditions."""
    what = release_settings(settings, target, draft)
    config = sections(settings)
    return Release(
        fingerprint=fingerprint(what),
        settings=what,
        model=settings.model.source,
        conditions={
            "model": settings.model.source,
            "dtype": settings.model.dtype.value,
            "runtime": settings.model.runtime.value,
            **(resources or {}),
            "hardware": provenance.hardware,
            "packages": provenance.packages,
        },
        params={"hardware": provenance.hardware, "overrides": " ".join(words)},
        tags=provenance.to_tags(),
        texts=_texts(settings, words, provenance.code.diff),
        config=config,
        lock_sha256=provenance.code.lock_sha256,
        revision=provenance.code.revision,
        lineage=lineage(what, config, target, draft, provenance),
    )


def sections(settings: Decoding) -> dict[str, Any]:
    """What decodes, as `--cfg` prints it; folders mean the same from everywhere."""
    config = {name: plain(getattr(settings, name)) for name in SECTIONS}
    for model in (config["model"], config["draft"]["model"], config["draft"]["head"]):
        if model is not None:
            model["source"] = anchored(model["source"])
    return config


def release_settings(
    settings: Decoding, target: ModelFiles, draft: ModelFiles | HeadFiles | None
) -> Mapping[str, Any]:
    """What makes two releases the same: weights, decoding, drafting, the engine that does so.

    Not the input, the folder, the threads.
    """
    drafting = plain(settings.draft)
    del drafting["head"]  # without one, a release is the same as before there were heads
    if isinstance(draft, HeadFiles):
        drafting["head"] = {"weights": draft.weights_digest}
    if isinstance(draft, ModelFiles) and settings.draft.model is not None:
        drafting["model"] = {**_lasting("model", settings.draft.model), **_digests(draft)}
    return {
        "model": {**_lasting("model", settings.model), **_digests(target)},
        "engine": {**_lasting("engine", settings.engine), "version": version("outrider")},
        "draft": drafting,
        "sampling": plain(settings.sampling),
    }


def _texts(settings: Decoding, words: Sequence[str], diff: str) -> dict[str, str]:
    texts = {
        "config.yaml": yaml.safe_dump(plain(settings), sort_keys=False, allow_unicode=True),
        "overrides.txt": "".join(f"{word}\n" for word in words),
    }
    return {**texts, "code.diff": diff} if diff else texts


def _lasting(section: str, settings: object) -> dict[str, Any]:
    values: dict[str, Any] = plain(settings)
    return {name: value for name, value in values.items() if name not in RESOURCES[section]}


def _digests(files: ModelFiles) -> dict[str, str | None]:
    return {
        "weights": files.weights_digest,
        "tokenizer": files.tokenizer_digest,
        "chat_template": files.chat_template_digest,
    }
