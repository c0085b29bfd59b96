"""What makes two searches the same, and what their runs are found by."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from outrider.config.schema import SweepJob
from outrider.config.typed import plain
from outrider.tracking.release import sections
from outrider.trial.book import Heading
from outrider.trial.contender import Contender
from outrider.trial.criteria import digest
from outrider.trial.evaluation import Evaluation

# What another search would have otherwise: not where it is kept, nor what it costs.
SWEEP = ("axes", "keep_ratio", "first_prompts", "in_flight")
TRIAL = ("confirmation_share", "num_passes", "answer_tokens", "timeout_s", "near_tie")
DIGESTS = ("weights", "draft_weights", "tokenizer", "prompt", "hardware")


def identity_of(
    settings: SweepJob,
    evaluation: Evaluation,
    warmup: Evaluation,
    contenders: Sequence[Contender],
    cores: int,
) -> dict[str, Any]:
    """Settings as they are named in `conf/`, and digests of what they name."""
    search, trial = plain(settings.sweep), plain(settings.trial)
    return {
        **sections(settings),
        "sweep": {name: search[name] for name in SWEEP},
        "trial": {
            **{name: trial[name] for name in TRIAL},
            "evaluation": evaluation.sha256,
            "warmup": warmup.sha256,
            "cores": cores,
        },
        "criteria": plain(settings.criteria),
        "sha256": {name: _digests(name, contenders) for name in DIGESTS},
    }


def heading_of(
    settings: SweepJob, evaluation: Evaluation, base: Contender, num_cases: int, cores: int
) -> Heading:
    """Of the search's run; the tags are its children's, too."""
    trial = {name: value for name, value in plain(settings.trial).items() if name in TRIAL}
    return Heading(
        name="; ".join(settings.sweep.axes),
        params={
            "sweep": plain(settings.sweep),
            "trial": trial,
            "criteria": plain(settings.criteria),
            "evaluation": {"sha256": evaluation.sha256, "num_cases": num_cases},
            "cores": cores,
        },
        tags={
            **base.release.tags,
            "part": "tuning",
            "evaluation.sha256": evaluation.sha256,
            "criteria.sha256": digest(settings.criteria),
        },
    )


def _digests(name: str, contenders: Sequence[Contender]) -> list[str]:
    found = {one.release.lineage.get(name, "") for one in contenders}
    return sorted(found - {""})
