"""What a target that is easy to guess wrote: `taught_folder` knows one text by heart."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from outrider.bulk.manifest import Identity, Manifest
from outrider.bulk.openai_batch import RowReader
from outrider.bulk.rendering import Renderer
from outrider.bulk.rows import Row
from outrider.config.schema import SamplingSettings
from outrider.core import Completion, FinishReason
from outrider.models import HfTokenizer

sys.path.append(str(Path(__file__).parent))  # for `toy_target`, as workers find it

EOS = 2
NUM_ROWS, ASKED, ANSWERED = 48, 8, 40  # rows; tokens of each


def asked(number: int) -> dict[str, Any]:
    body = {"messages": [{"role": "user", "content": f"Question {number}?"}], "max_tokens": 64}
    url = "/v1/chat/completions"
    return {
        "custom_id": f"q{number}",
        "kind": "chat",
        "method": "POST",
        "url": url,
        "body": body,
    }


def completion(row: Row, ids: Sequence[int], text: str, reason: FinishReason) -> Completion:
    return Completion(
        request_id=row.custom_id, token_ids=tuple(ids), text=text, finish_reason=reason
    )


def bulk_folder(
    folder: Path, tokenizer: HfTokenizer, texts: Sequence[str], skipped: Sequence[int] = ()
) -> Path:
    """As a job leaves it: 40 rows, answered by the texts in turn; row 5 was cut."""
    rows = [asked(number) for number in range(40)]
    asks = folder / "asked.jsonl"
    asks.write_text("".join(json.dumps(row) + "\n" for row in rows))
    job = folder / "job"
    job.mkdir()
    identity = Identity(
        fingerprint="f" * 64,
        settings={"model": {"weights": "w" * 64}},
        input_path=str(asks),
        input_digest="d" * 64,
        num_rows=40,
        num_shards=1,
    )
    Manifest(job / "manifest.json", identity, configurations={"f" * 64: 1.0}).save()
    renderer = Renderer("f" * 64, "default", tokenizer)
    reader = RowReader(SamplingSettings(), seed=0)
    with (job / "output.jsonl").open("wb") as out:
        for number, value in enumerate(rows):
            if number in skipped:
                continue
            row, text = reader.row(value, 1, value["custom_id"]), texts[number % len(texts)]
            ids, reason = [*tokenizer.encode(text), EOS], FinishReason.STOP
            if number == 5:
                ids, reason = tokenizer.encode(text), FinishReason.LENGTH
            out.write(renderer.answer(row, completion(row, ids, text, reason)))
    return job


@pytest.fixture
def write_job() -> Callable[..., Path]:
    """`write_job(folder, tokenizer, texts, skipped)`: the folder of a bulk job."""
    return bulk_folder


@pytest.fixture(scope="session")
def answers(
    taught_folder: Path, text_by_heart: str, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """JSONL of prompts and what the target says behind them."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    module: Any = AutoModelForCausalLM.from_pretrained(taught_folder)
    tokenizer = AutoTokenizer.from_pretrained(taught_folder)
    ids = tokenizer.encode(text_by_heart)
    asked = torch.tensor([ids[start : start + ASKED] for start in range(NUM_ROWS)])
    with torch.inference_mode():
        whole = module.generate(
            asked,
            attention_mask=torch.ones_like(asked),
            max_new_tokens=ANSWERED,
            do_sample=False,
            pad_token_id=0,
        )
    path = tmp_path_factory.mktemp("answers") / "answers.jsonl"
    with path.open("w", encoding="utf-8") as out:
        for number, row in enumerate(whole.tolist()):
            said = tokenizer.decode(row[ASKED:], clean_up_tokenization_spaces=False)
            told = {"id": f"r{number}", "prompt": row[:ASKED], "completion": said}
            out.write(json.dumps({**told, "finish_reason": "length"}) + "\n")
    return path
