"""Before full promotion: prompts that nobody tuned on, decoded once by both releases.

Greedily, so that speculation or another draft changes no token, and with the two likeliest
tokens of each position, so that a near tie is told from a mismatch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.config.schema import GateSettings, Part
from outrider.core import UserError
from outrider.rollout.likeness import FAILED, likeness
from outrider.rollout.ports import Service
from outrider.rollout.status import Status
from outrider.rollout.store import Rollout, Store
from outrider.rollout.stored import parsed
from outrider.rollout.verdict import Finding, Judgement, Verdict
from outrider.serving.sample import Likeness
from outrider.telemetry import meters
from outrider.tracking.registry import Registry, uri_of
from outrider.trial.case import Case
from outrider.trial.confirmation import Confirmation
from outrider.trial.evaluation import Evaluation, read_evaluation
from outrider.trial.split import cases_of

QUESTION = "rollout.confirmation"  # another than a trial's, which is about speed
KEY = "rollout.evaluation"
NUM_AT_ONCE = 4  # prompts of one look, each decoded by both: users' requests come beside them


def confirmation_prompts(path: Path, *, share: float, answer_tokens: int) -> Evaluation:
    """The part of an evaluation set that confirms. UserError names file and line."""
    whole = read_evaluation(path, answer_tokens=answer_tokens, key=KEY)
    kept = cases_of(Part.CONFIRMATION, whole.cases, share)
    return Evaluation(name=whole.name, sha256=whole.sha256, cases=kept)


@dataclass(frozen=True, slots=True)
class Confirming:
    """Decodes a few prompts at each look, and goes on where a crash left it."""

    prompts: Evaluation
    service: Service
    store: Store
    registry: Registry

    def step(self, rollout: Rollout) -> Judgement | None:
        """Decode some more. None while some are left. Raises Fault as service and registry."""
        name = f"confirmation.{self.prompts.sha256[:12]}"
        noted = self.store.note(rollout.status.rollout_id, name)
        progress = parsed(noted) if noted else self._spent(rollout.status, name)
        answers: dict[str, str] = progress["answers"]
        left = [case for case in self.prompts.cases if case.name not in answers]
        if left:
            answers |= self._decoded(rollout, left[:NUM_AT_ONCE])
            self.store.keep(rollout.status.rollout_id, name, json.dumps(progress))
        if len(left) > NUM_AT_ONCE:
            return None
        return judged(answers, rollout.gates, use=int(progress["use"]))

    def _spent(self, status: Status, name: str) -> dict[str, Any]:
        """Record the use before the first prompt; one that was cut short is not a second one."""
        by = status.rollout_id
        uses = 1 + self.store.num_noted(status.candidate.fingerprint, name, but=by)
        if status.candidate.version:
            version = self.registry.find(uri_of(status.candidate.version))
            tag = Confirmation(
                registry=self.registry,
                evaluation_sha256=self.prompts.sha256,
                question=QUESTION,
            )
            uses = tag.spend(version, by)
        progress = {"use": uses, "answers": {}}
        self.store.keep(by, name, json.dumps(progress))
        return progress

    def _decoded(self, rollout: Rollout, cases: Sequence[Case]) -> dict[str, str]:
        status = rollout.status
        with ThreadPoolExecutor(2 * NUM_AT_ONCE) as pool:
            ours = [pool.submit(self._ask, status.stable, case) for case in cases]
            theirs = [pool.submit(self._ask, status.candidate.name, case) for case in cases]
        pairs = [(one.result(), two.result()) for one, two in zip(ours, theirs, strict=True)]
        return {
            case.name: likeness(one, two, near_tie=rollout.gates.near_tie)
            for case, (one, two) in zip(cases, pairs, strict=True)
        }

    def _ask(self, release: str, case: Case) -> Mapping[str, Any] | None:
        """None where the release refuses the prompt."""
        body = {
            "messages": [dict(message) for message in case.messages],
            "temperature": 0,
            "max_tokens": case.params.max_tokens,
            "logprobs": True,
            "top_logprobs": 2,
        }
        try:
            return self.service.ask(release, body)
        except UserError:
            return None


def judged(answers: Mapping[str, str], gates: GateSettings, *, use: int) -> Judgement:
    """`answers`: what came of each prompt. A second use of them can fail, but never pass."""
    told = Counter(answers.values())
    num_bad = told[Likeness.MISMATCH] + told[FAILED]
    num_compared = num_bad + told[Likeness.SAME] + told[Likeness.NEAR_TIE]
    reason = (
        f"{num_compared} confirmation prompts: {told[Likeness.SAME]} the same,"
        f" {told[Likeness.NEAR_TIE]} near ties, {told[Likeness.MISMATCH]} that differ,"
        f" {told[FAILED]} that only the candidate failed; at most {gates.max_mismatches}"
    )
    verdict = Verdict.FAIL if num_bad > gates.max_mismatches else Verdict.PASS
    if verdict is Verdict.PASS and use > 1:
        verdict = Verdict.INCONCLUSIVE
        reason += f"; these prompts were used {use - 1} times before, and confirm only once"
    if not num_compared:
        verdict, reason = Verdict.INCONCLUSIVE, "no confirmation prompt could be compared"
    found = Finding(
        figure=meters.NUM_CONFIRMATION_MISMATCHES.name,
        verdict=verdict,
        bound=float(gates.max_mismatches),
        reason=reason,
        estimate=float(num_bad),
        num_stable=num_compared,
        num_candidate=num_compared,
    )
    return Judgement(findings=(found,))
