"""Subgroups that figures are told for: kind, language, temperature, length of the prompt. Pure."""

from __future__ import annotations

from outrider.trial.observation import Observation

ALL = ""
LENGTHS = {"short": 64, "medium": 192}  # tokens of the prompt below this; else long


def groups_of(seen: Observation) -> tuple[str, ...]:
    """`chat`, `language:de`, `temperature:0.8`, `prompt:short`; what was not said has no group."""
    return tuple(
        group
        for group, is_told in (
            (seen.kind, bool(seen.kind)),
            (f"language:{seen.language}", bool(seen.language)),
            (f"temperature:{seen.temperature:g}", True),
            (f"prompt:{_length(seen.num_prompt_tokens)}", seen.num_prompt_tokens > 0),
        )
        if is_told
    )


def _length(num_tokens: int) -> str:
    return next((name for name, bound in LENGTHS.items() if num_tokens < bound), "long")
