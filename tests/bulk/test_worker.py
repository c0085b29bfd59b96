"""A shard becomes a part: bad rows are lines, both arms are run fairly, bytes never differ."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from scripted_engine import ScriptedEngine
from workshop import Workshop, decoder_of, read_lines, request

from outrider.bulk.figures import Arm
from outrider.bulk.parts import part_path, read_footer
from outrider.bulk.worker import MAX_STARTS
from outrider.core import Fault, UserError

MIXED: list[object] = [
    request("good"),
    request("long", "x" * 5000),
    {**request("url"), "url": "/v1/edits"},
    "this is not JSON",
    request("stream", stream=True),
    {"method": "POST", "url": "/v1/completions", "body": {"prompt": "no id"}},
    {"custom_id": "column", "prompt": "a column row"},
]


def test_each_bad_row_is_one_line_and_the_rest_complete(tmp_path: Path) -> None:
    """P01."""
    shop = Workshop(tmp_path, MIXED)
    _, made = shop.run()
    errors = read_lines(shop.folder.errors)
    assert [(e["custom_id"], e["line"], e["code"]) for e in errors] == [
        ("long", 2, "refused"),
        ("url", 3, "unknown_url"),
        (None, 4, "invalid_json"),
        ("stream", 5, "unsupported"),
        (None, 6, "invalid_field"),
    ]
    assert all(e["message"] and "\n" not in e["message"] for e in errors)
    assert [row["custom_id"] for row in read_lines(shop.folder.output)] == ["good", "column"]
    assert made is not None
    assert made.num_done + made.num_failed == len(MIXED)


def test_an_answer_has_the_form_of_openai_batch_output(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "hi"}]
    chat = {
        "custom_id": "c",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"messages": messages, "max_tokens": 3, "logprobs": True, "top_logprobs": 2},
    }
    shop = Workshop(tmp_path, [chat, request("t", logprobs=1, max_tokens=2)])
    shop.run()
    first, second = read_lines(shop.folder.output)
    assert first["error"] is None
    assert first["response"]["status_code"] == 200
    body = first["response"]["body"]
    assert (body["object"], body["created"], body["model"]) == ("chat.completion", 0, "scripted")
    assert body["usage"]["completion_tokens"] == 3
    assert len(body["choices"][0]["message"]["content"]) == 3
    content = body["choices"][0]["logprobs"]["content"]
    assert [entry["logprob"] for entry in content] == [-0.123457] * 3
    assert len(content[0]["top_logprobs"]) == 2
    logprobs = second["response"]["body"]["choices"][0]["logprobs"]
    assert logprobs["text_offset"] == [0, 1]


def test_ids_are_those_of_the_row_and_the_release(tmp_path: Path) -> None:
    def ids(name: str, fingerprint: str) -> list[str]:
        root = tmp_path / name
        root.mkdir()
        shop = Workshop(root, [request("a"), request("b")], fingerprint=fingerprint)
        shop.run()
        return [row["id"] for row in read_lines(shop.folder.output)]

    first = ids("one", "f1")
    assert first == ids("two", "f1")
    assert not set(first) & set(ids("three", "f2"))


def test_the_baseline_alternates_and_starts_from_a_cold_cache(tmp_path: Path) -> None:
    decoder, factory = decoder_of(ScriptedEngine())
    rows = [request("a", "first"), request("b", "second")]
    shop = Workshop(tmp_path, rows, bulk={"shard_rows": 1, "baseline": "all"})
    shop.but(engine=factory).run()
    assert decoder.prompts == [
        ("first", True),
        ("first", False),
        ("second", False),
        ("second", True),
    ]
    assert decoder.num_resets == 4


def test_the_baseline_changes_no_byte_of_the_output(tmp_path: Path) -> None:
    outputs = []
    for baseline in ("none", "all"):
        root = tmp_path / baseline
        root.mkdir()
        shop = Workshop(root, [request("a"), request("wrong")], bulk={"baseline": baseline})
        shop.run()
        outputs.append(shop.output())
    assert outputs[0] == outputs[1]


def test_parity_tells_near_ties_from_mismatches(tmp_path: Path) -> None:
    rows = [request("a"), request("b", "tie"), request("c", "wrong")]
    rows.append(request("d", "tie", temperature=0.5))  # sampled: a raw margin says nothing
    rows.append(request("e", "tie", presence_penalty=1))  # nor does it under a penalty
    shop = Workshop(tmp_path, rows, bulk={"baseline": "all", "shard_rows": 8})
    _, made = shop.run()
    assert made is not None
    parity = made.figures.parity
    assert (parity.compared, parity.mismatches, parity.near_ties) == (5, 3, 1)


def test_figures_are_kept_by_arm_and_kind_and_survive_the_part(tmp_path: Path) -> None:
    rows = [{**request("a"), "kind": "code"}, request("b"), {**request("c"), "kind": "code"}]
    shop = Workshop(tmp_path, rows, bulk={"baseline": "all"})
    shop.run()
    found = read_footer(part_path(shop.folder.parts, 0, 1))
    assert found is not None
    figures = found[1]
    assert figures.kinds == ["", "code"]
    assert figures.arms[Arm.SPECULATIVE, "code"].num_rows == 2
    assert figures.arms[Arm.PLAIN, "code"].counters.drafted == 0
    assert figures.total(Arm.SPECULATIVE).counters.emitted == 24


def test_a_seed_makes_sampled_rows_independent_of_their_place(tmp_path: Path) -> None:
    def answers(name: str, order: str) -> dict[str, str]:
        root = tmp_path / name
        root.mkdir()
        rows = [request(i, "the same", temperature=1.0) for i in order]
        shop = Workshop(root, rows, bulk={"shard_rows": 2})
        shop.run()
        return {
            row["custom_id"]: row["response"]["body"]["choices"][0]["text"]
            for row in read_lines(shop.folder.output)
        }

    assert answers("one", "abc") == answers("two", "cab")
    assert len(set(answers("three", "abc").values())) == 3


def test_rows_that_end_their_worker_again_and_again_stop_the_job(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [request("a"), request("b")])
    index, _, tasks = shop.begin()
    begun = shop.folder.live / "begun-0.1"
    begun.write_bytes(b"." * MAX_STARTS)
    with pytest.raises(Fault, match="lines 1 to 2 ended their worker 3 times"):
        shop.worker(index).work(tasks[0])


def test_a_refused_model_is_told_by_the_first_record(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [request("a")], engine=ScriptedEngine(refusal="model.source: none"))
    index, _, tasks = shop.begin()
    task = json.dumps({"shard": 0, "attempt": tasks[0].attempt, "keep": None})
    (record,) = shop.worker(index)({"task": [task]})["record"]
    assert json.loads(record) == {"user_error": "model.source: none"}


def test_a_full_disk_is_one_line_and_the_job_goes_on_later(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, [request("a"), request("b")])
    index, _, tasks = shop.begin()
    full = shop.folder.parts / f"part-00000.1.{os.getpid()}.tmp"
    full.symlink_to("/dev/full")
    with pytest.raises(Fault, match=r"cannot write .*No space left on device"):
        shop.worker(index).work(tasks[0])
    assert list(shop.folder.parts.iterdir()) == []
    shop.run()
    assert len(read_lines(shop.folder.output)) == 2


@pytest.mark.parametrize("name", ["manifest.json", "output.jsonl", "errors.jsonl"])
def test_a_disk_that_fills_up_at_the_end_loses_nothing(tmp_path: Path, name: str) -> None:
    shop = Workshop(tmp_path, [request("a"), "broken"])
    manifest = shop.begin()[1]
    if name != "manifest.json":
        manifest.save()
    full = shop.folder.root / f"{name}.tmp"
    full.symlink_to("/dev/full")
    with pytest.raises(Fault, match=f"{name}: No space left"):
        shop.run()
    assert not (shop.folder.root / name).exists()
    shop.run()
    assert len(read_lines(shop.folder.output)) == 1


def test_a_prompt_that_no_tokenizer_takes_is_that_rows_error(tmp_path: Path) -> None:
    shop = Workshop(tmp_path, ['{"id": "a", "prompt": "\\ud800"}', '{"id": "b\\ud800"}'])
    shop.run()
    assert [e["code"] for e in read_lines(shop.folder.errors)] == ["refused", "invalid_row"]


def test_a_template_that_refuses_is_that_rows_error(tmp_path: Path) -> None:
    class NoTemplate:
        def __call__(self) -> tuple[object, object]:
            decoder, tokenizer = ScriptedEngine()()
            tokenizer.encode_chat = self._refuse  # type: ignore[method-assign]
            return decoder, tokenizer

        def _refuse(self, messages: object) -> list[int]:
            raise UserError("this model has no chat template")

    rows = [{"id": "a", "messages": [{"role": "user", "content": "x"}]}]
    shop = Workshop(tmp_path, rows, engine=NoTemplate())  # type: ignore[arg-type]
    shop.run()
    assert read_lines(shop.folder.errors)[0]["message"] == "this model has no chat template"
