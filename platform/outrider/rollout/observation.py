"""What is seen of a rollout and of the service at one look."""

from __future__ import annotations

from dataclasses import dataclass, field

from outrider.rollout.command import Command
from outrider.rollout.ports import Health
from outrider.rollout.verdict import Judgement


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look. Its evidence is of this phase and step alone: nothing is carried over a move, but
    for the last step of the canary, which goes on while the confirmation is decoded.

    `revision` is that of the status it was taken under. What was seen under another one decides
    nothing, so that one look never moves twice.
    """

    revision: int
    health: Health | None = None  # candidate's; STARTING: not there yet; None: service is away
    failure: str = ""  # what the service says of a FAILED one
    fallen: str = ""  # why the candidate fell back to plain decoding while stable did not
    begun_anew: str = ""  # what the service is now; empty: the one that the rollout began on
    has_warmed: bool = False  # it answered prompts of its own
    is_stable_there: bool = True  # the release that a rollback goes to could take all traffic
    judgement: Judgement = field(default_factory=Judgement)
    num_stable: int = 0  # samples of this step
    num_candidate: int = 0
    num_shadow: int = 0  # mirrored requests of this step that were heard of
    confirmation: Judgement | None = None  # None: its prompts are not all decoded yet
    commands: tuple[Command, ...] = ()  # not taken before, in the order they came
    pre_answered: bool = True  # the pre webhook said yes, or there is none
    is_settled: bool = True  # plan and alias are as the status wants them
