"""`python jobs/distill.py`: what it writes and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from outrider import wiring
from outrider.bulk.openai_batch import RowReader
from outrider.config.load import load
from outrider.config.schema import DistillJob, SamplingSettings


def test_prompts_are_a_batch_that_a_bulk_job_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["action=prompts", f"out={tmp_path}/new/prompts.jsonl", "num_prompts=60"]
    assert wiring.distill(load(DistillJob, "distill", words), words) == 0
    assert f"60 prompts in {tmp_path}/new/prompts.jsonl" in capsys.readouterr().out
    lines = (tmp_path / "new" / "prompts.jsonl").read_text(encoding="utf-8").splitlines()
    reader = RowReader(SamplingSettings(), seed=0)
    rows = [reader.row(json.loads(line), 1, "a") for line in lines]
    assert len(rows) == 60
    assert {row.kind for row in rows} == {"chat", "code", "edit"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["action=prompts"], "distill.out: action=prompts needs it"),
        (["head_dir=head"], "distill.input: action=train needs it"),
        (["input=a", "head_dir=b", "valid_share=1"], "distill.valid_share: must be below 1"),
        (["input=a", "head_dir=b", "num_steps=0"], "distill.num_steps: must be at least 1"),
        (["input=a", "head_dir=b", "feature_layers=[3,1]"], "distill.feature_layers: must grow"),
        (["input=a", "head_dir=b", "max_tokens=9000"], "distill.feature_tokens: must be at least"),
        (["input=a", "head_dir=b", "init=best"], "distill.init: unknown value 'best'"),
    ],
)
def test_what_can_not_be_meant_is_one_line(
    refused: Callable[..., str], words: list[str], said: str
) -> None:
    assert said in refused("distill", *words)
