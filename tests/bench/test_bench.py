"""The bench on a toy model and a clock turned by hand: ratios are what the script makes them."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.console import Console

from outrider.bench.arm import Timing
from outrider.bench.contrary import ContraryDrafter
from outrider.bench.experiments import EXPERIMENTS
from outrider.bench.figure import Figure
from outrider.bench.paired import Pairing, measure
from outrider.bench.run import chosen, run
from outrider.bench.transformers_arm import TransformersArm
from outrider.bench.workbench import Workbench
from outrider.bench.workload import Prompt, load_workload, repeated
from outrider.config.schema import BreakerSettings, DrafterKind, DraftSettings, EngineSettings
from outrider.core import UserError
from outrider.engine.drafters import DraftRow
from outrider.engine.drafters.factory import open_drafter
from outrider.testing import LetterTokenizer, ManualClock, MemoryTracker, ScriptedModel

PROMPTS = [
    Prompt(f"{kind}{i}", kind, tuple((i + j) % 4 for j in range(3 + i)))
    for kind in ("chat", "edit", "code")
    for i in range(2)
]


class FakeModule:
    """Enough of a transformers module for `generate`: token 1 for ever, at a cost in seconds."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock

    def generate(
        self, *, input_ids: torch.Tensor, max_new_tokens: int, **_: object
    ) -> torch.Tensor:
        self.clock.advance(0.3 * max_new_tokens)
        new = torch.ones(len(input_ids), max_new_tokens, dtype=torch.long)
        return torch.cat([input_ids, new], dim=1)


def workbench(told: list[str], drafter: DrafterKind = DrafterKind.NGRAM) -> Workbench:
    clock = ManualClock()
    model = ScriptedModel(
        lambda prefix: [float(token == 1 + (len(prefix) // 3) % 4) for token in range(6)],
        vocab_size=6,
        num_blocks=2048,
        clock=clock,
        cost=lambda rows, tokens: 0.1 + 0.002 * tokens,
    )
    return Workbench(
        model=model,
        drafted=model,
        tokenizer=LetterTokenizer("ABCDE"),
        open_module=lambda: FakeModule(clock),
        open_drafter=lambda draft: open_drafter(
            draft.drafter, vocab_size=6, clock=clock, ngram=draft.ngram, model=model
        ),
        engine=EngineSettings(),
        draft=DraftSettings(drafter=drafter, breaker=BreakerSettings()),
        prompts=PROMPTS,
        warmup=[Prompt("w0", "chat", (1, 2)), Prompt("w1", "edit", (2, 1))],
        max_tokens=60,
        num_repeats=1,
        clock=clock,
        tell=told.append,
        conditions="toy model",
    )


def test_every_experiment_gives_its_figures_and_the_file_holds_them(tmp_path: Path) -> None:
    told: list[str] = []
    screen = io.StringIO()
    out = tmp_path / "runs" / "figures.json"
    record = MemoryTracker().start_run("figures", "figures", {})
    screened = Console(file=screen, width=120)
    figures = run(workbench(told), EXPERIMENTS, (), out, screened, record)
    by_name = {figure.name: figure for figure in figures}
    assert len(by_name) == len(figures) == 14
    written = json.loads(out.read_text())
    assert [row["name"] for row in written] == list(by_name)
    assert all({"value", "bound", "conditions"} <= row.keys() for row in written)
    for figure in figures:
        assert figure.what.split(",")[0][:20] in screen.getvalue()
    assert by_name["held_at_zero"].value == pytest.approx(1.0, abs=0.01)
    assert by_name["speculative_1_edit"].value > 1.5, "the text repeats: n-grams must pay"
    assert by_name["plain_against_transformers_1"].value == pytest.approx(0.3 / 0.103, rel=0.05)
    assert by_name["wrong_drafter_rounds"].value < 0.05
    assert told
    assert record.final == {f"figure.{figure.name}": figure.value for figure in figures}
    assert json.loads(record.artifacts["figures.json"]) == written


def test_a_drafter_that_can_do_more_is_held_against_prompt_lookup_alone() -> None:
    bench = workbench([], DrafterKind.COMPOSITE)
    by_name = {figure.name: figure for figure in EXPERIMENTS["one_in_flight"](bench)}
    assert len(by_name) == 7
    beside = by_name["adaptive_against_ngram_edit"]
    assert by_name["speculative_1_chat"].bound == 1.3
    assert beside.what == "composite / n-gram alone, 1 in flight, edit"
    # the draft model costs as much as the target; where lookups match well, it is not asked
    assert 0.8 < beside.value < 1.02


def test_experiments_can_be_chosen_and_a_wrong_name_lists_them() -> None:
    assert chosen(["held_at_zero"], EXPERIMENTS) == ["held_at_zero"]
    assert chosen([], EXPERIMENTS) == list(EXPERIMENTS)
    with pytest.raises(UserError, match=r"bench.only: 'speed' is not one of .*held_at_zero"):
        chosen(["speed"], EXPERIMENTS)


def test_a_ratio_is_of_sums_and_its_interval_holds_it() -> None:
    pairing = Pairing(
        batches=[[PROMPTS[0]], [PROMPTS[2]]],
        timings={
            "a": [Timing(10, 1.0), Timing(30, 1.0)],
            "b": [Timing(10, 2.0), Timing(30, 2.0)],
        },
    )
    assert pairing.ratio("a", "b") == pytest.approx(2.0)
    assert pairing.ratio("a", "b", "chat") == pytest.approx(2.0)
    assert pairing.interval("a", "b") == pytest.approx((2.0, 2.0))


class Recorder:
    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    def decode(self, prompts: object) -> Timing:
        self.log.append(self.name)
        return Timing(1, 1.0)


def test_the_arms_take_turns_and_turns_at_going_first() -> None:
    log: list[str] = []
    arms = [Recorder("a", log), Recorder("b", log)]
    measure(arms, [[PROMPTS[0]], [PROMPTS[1]]], num_repeats=1, progress=lambda at: None)
    assert log == ["a", "b", "b", "a"]


def test_a_missed_bound_is_told() -> None:
    figure = Figure(name="x", what="x", value=0.9, bound=1.0, aim=1.1)
    assert not figure.is_reached
    assert replace(figure, is_ceiling=True).is_reached


def test_the_contrary_drafter_offers_what_it_may_and_is_wrong() -> None:
    drafter = ContraryDrafter(never=3)
    row = DraftRow(
        1, PROMPTS[0].request(4, speculation=_any()), (1, 2), lambda logits, ids: (0, None)
    )
    assert [len(offer.levels) for offer in drafter.offer([row, row], [4, 0])] == [4, 0]
    assert drafter.propose([row], [2]).proposals[0].tokens == [3, 3]


def _any():  # type: ignore[no-untyped-def]
    from outrider.core import Speculation

    return Speculation()


def test_padding_behind_eos_is_not_counted_as_output() -> None:
    class Ends(FakeModule):
        def generate(self, *, input_ids: torch.Tensor, **_: object) -> torch.Tensor:
            new = torch.tensor([[1, 1, 5, 5], [1, 5, 5, 5]])
            return torch.cat([input_ids, new], dim=1)

    arm = TransformersArm(
        Ends(ManualClock()), in_flight=2, max_tokens=4, eos_id=5, clock=ManualClock()
    )
    timing = arm.decode(PROMPTS[:2])
    assert timing.outputs == ((1, 1, 5), (1, 5))
    assert timing.tokens == 5


def test_a_broken_workload_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "w.jsonl"
    path.write_text('{"id": "a", "kind": "chat", "messages": []}\nnot json\n')
    with pytest.raises(UserError, match=r"w\.jsonl:2: not a line"):
        load_workload(path, lambda messages: [1])
    with pytest.raises(UserError, match=r"bench.workload: .*missing.jsonl: No such file"):
        load_workload(tmp_path / "missing.jsonl", lambda messages: [1])


def test_repeated_prompts_have_names_of_their_own() -> None:
    names = [prompt.name for prompt in repeated(PROMPTS, 2)]
    assert len(set(names)) == 12
