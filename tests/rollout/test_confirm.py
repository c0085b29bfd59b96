"""The confirmation: decoded once, a few prompts at a look, compared token by token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rollout_stand import CANDIDATE, PLAN, PROMPTS, Stand, sqlite_stand

from outrider.config.schema import GateSettings
from outrider.core import Fault, UserError
from outrider.rollout.confirm import NUM_AT_ONCE, Confirming, confirmation_prompts, judged
from outrider.rollout.likeness import FAILED, likeness
from outrider.rollout.phase import Phase
from outrider.rollout.store import Rollout
from outrider.rollout.verdict import Verdict
from outrider.serving.sample import Likeness
from outrider.testing import Effect
from outrider.trial.evaluation import read_evaluation

TAG = "rollout.confirmation.0123456789ab"


def ready(folder: Path, effects: Mapping[str, Effect] | None = None) -> tuple[Stand, Rollout]:
    """Both releases answer, nothing is decoded yet."""
    stand = sqlite_stand(folder, effects)
    rollout = stand.begin()
    stand.service.deploy(CANDIDATE)
    return stand, rollout


def confirming(stand: Stand) -> Confirming:
    return Confirming(PROMPTS, stand.service, stand.store, stand.registry)


def test_a_few_prompts_a_look_until_all_are_decoded(tmp_path: Path) -> None:
    stand, rollout = ready(tmp_path)
    assert len(PROMPTS.cases) > NUM_AT_ONCE
    assert confirming(stand).step(rollout) is None
    found = confirming(stand).step(rollout)  # another process goes on
    assert found is not None
    assert found.verdict is Verdict.PASS
    assert found.findings[0].num_candidate == len(PROMPTS.cases)
    assert stand.registry.versions()[1].tags[TAG] == rollout.status.rollout_id


def test_an_answer_that_differs_fails(tmp_path: Path) -> None:
    stand, rollout = ready(tmp_path, {"candidate": Effect(mismatch_share=1.0)})
    confirming(stand).step(rollout)
    found = confirming(stand).step(rollout)
    assert found is not None
    assert found.verdict is Verdict.FAIL


def test_the_use_is_recorded_before_the_first_prompt(tmp_path: Path) -> None:
    stand, rollout = ready(tmp_path)
    stand.service.is_away = True
    with pytest.raises(Fault):
        confirming(stand).step(rollout)
    assert stand.registry.versions()[1].tags[TAG] == rollout.status.rollout_id


@pytest.mark.parametrize("version", [2, 0])
def test_a_second_rollout_of_the_release_cannot_be_confirmed(tmp_path: Path, version: int) -> None:
    stand, rollout = ready(tmp_path)
    candidate = replace(CANDIDATE, version=version)
    rollout = replace(rollout, status=replace(rollout.status, candidate=candidate))
    confirming(stand).step(rollout)
    stand.store.commit(replace(rollout, status=replace(rollout.status, phase=Phase.SUPERSEDED)))
    second = stand.begin(candidate)
    confirming(stand).step(second)
    found = confirming(stand).step(second)
    assert found is not None
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "used 1 times before" in found.reason


def test_a_trial_s_use_of_the_prompts_is_another_question(tmp_path: Path) -> None:
    stand, rollout = ready(tmp_path)
    stand.registry.set_tags(2, {"confirmation.0123456789ab": "a-trial"})
    confirming(stand).step(rollout)
    found = confirming(stand).step(rollout)
    assert found is not None
    assert found.verdict is Verdict.PASS


def test_a_used_set_still_fails_and_nothing_compared_decides_nothing() -> None:
    gates = GateSettings()
    assert judged({"a": Likeness.MISMATCH}, gates, use=2).verdict is Verdict.FAIL
    assert judged({"a": FAILED}, gates, use=1).verdict is Verdict.FAIL
    assert judged({"a": Likeness.UNCOMPARED}, gates, use=1).verdict is Verdict.INCONCLUSIVE
    assert judged({}, gates, use=1).verdict is Verdict.INCONCLUSIVE
    allowed = replace(gates, max_mismatches=1)
    assert judged({"a": Likeness.MISMATCH}, allowed, use=1).verdict is Verdict.PASS


def answer(text: str, margin: float = 5.0, finish: str = "stop") -> dict[str, Any]:
    tokens = [
        {
            "token": letter,
            "bytes": list(letter.encode()),
            "logprob": -0.1,
            "top_logprobs": [{"token": letter, "logprob": -0.1}, {"logprob": -0.1 - margin}],
        }
        for letter in text
    ]
    choice = {
        "message": {"content": text},
        "logprobs": {"content": tokens},
        "finish_reason": finish,
    }
    return {"choices": [choice]}


def test_answers_are_compared_with_the_margin_where_they_part() -> None:
    def against(candidate: dict[str, Any] | None, margin: float = 5.0) -> str:
        return likeness(answer("abc", margin), candidate, near_tie=0.5)

    assert against(answer("abc")) == Likeness.SAME
    assert against(answer("abd")) == Likeness.MISMATCH
    assert against(answer("abd"), margin=0.4) == Likeness.NEAR_TIE
    assert against(answer("ab"), margin=0.4) == Likeness.MISMATCH
    assert against(answer("abc", finish="length")) == Likeness.MISMATCH
    assert against(None) == FAILED
    assert likeness(None, answer("abc"), near_tie=0.5) == Likeness.UNCOMPARED


def test_the_confirmation_part_is_the_trial_s_and_its_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "evaluation.jsonl"
    line = '{"id": "%s", "kind": "chat", "messages": [{"role": "user", "content": "Hi"}]}\n'
    path.write_text("".join(line % number for number in range(8)))
    kept = confirmation_prompts(path, share=0.5, answer_tokens=8)
    assert len(kept.cases) == 4
    assert kept.sha256 == read_evaluation(path, answer_tokens=8).sha256
    with pytest.raises(UserError, match=r"^rollout\.evaluation: "):
        confirmation_prompts(tmp_path / "none.jsonl", share=0.5, answer_tokens=8)


def test_without_the_prompts_there_is_no_promotion(tmp_path: Path) -> None:
    """A second rollout of a release stalls, and an operator decides."""
    stand = sqlite_stand(tmp_path, plan=replace(PLAN, weights=(0.5,), max_s=20.0))
    stand.registry.set_tags(2, {TAG: "another-rollout"})
    stand.begin()
    controller = stand.controller()
    stand.until(controller, "confirming")
    for _ in range(15):
        stand.clock.advance(2.0)
        assert controller.tick().phase is Phase.CONFIRMING
    assert stand.store.get(stand.rollout_id).status.has_stalled
