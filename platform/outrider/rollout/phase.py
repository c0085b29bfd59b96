"""Where a rollout stands."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """In the order of a good rollout; the ends come last."""

    PENDING = "pending"
    DEPLOYING = "deploying"
    WARMING = "warming"
    SHADOW = "shadow"
    CANARY = "canary"
    CONFIRMING = "confirming"
    PROMOTING = "promoting"
    KEEPING = "keeping"
    PROMOTED = "promoted"
    ROLLED_BACK = "rolled_back"
    ABORTED = "aborted"
    FAILED = "failed"
    SUPERSEDED = "superseded"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]

    @property
    def is_over(self) -> bool:
        return self in ENDS

    @property
    def is_bad_end(self) -> bool:
        return self in ENDS - {Phase.PROMOTED}


ENDS = frozenset({Phase.PROMOTED, Phase.ROLLED_BACK, Phase.ABORTED, Phase.FAILED, Phase.SUPERSEDED})
_SENTENCES = {
    Phase.PENDING: "It is written down; nothing has been started.",
    Phase.DEPLOYING: "The candidate's replicas start beside stable's.",
    Phase.WARMING: "The candidate answers prompts of its own before it meets traffic.",
    Phase.SHADOW: "The candidate decodes a copy of stable's requests; nobody sees its answers.",
    Phase.CANARY: "The candidate answers its share of the keys.",
    Phase.CONFIRMING: "The candidate decodes the confirmation prompts, which it does once.",
    Phase.PROMOTING: "The candidate takes all traffic and becomes champion.",
    Phase.KEEPING: "The candidate is stable now; the old stable stays warm for a while.",
    Phase.PROMOTED: "The candidate is stable; the old stable is gone.",
    Phase.ROLLED_BACK: "It was taken back by itself: stable has all traffic.",
    Phase.ABORTED: "An operator took it back: stable has all traffic.",
    Phase.FAILED: "It could not be carried out: stable has all traffic.",
    Phase.SUPERSEDED: "A newer release took its place: stable has all traffic.",
}
