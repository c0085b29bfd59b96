"""The whole engine with a draft head over a real (tiny, random) target in float64.

Whatever happens to a row, it gets the tokens of plain decoding, and what the head remembers of it
is what a drafter would that was told of the row's tokens all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

import pytest
import torch
import transformers

from outrider.config.schema import (
    BreakerSettings,
    DraftLengthSettings,
    EngineSettings,
    LengthPolicy,
    RuleKind,
)
from outrider.core import (
    Completion,
    FinishReason,
    Mode,
    Request,
    SamplingParams,
    Speculation,
)
from outrider.engine.cost import CostModel
from outrider.engine.drafters import DraftRow, Read
from outrider.engine.drafters.guarded import GuardedDrafter
from outrider.engine.drafters.head import LOOK_STEPS, HeadDrafter
from outrider.engine.drafters.head_block import NUM_BUCKETS
from outrider.engine.engine import Engine
from outrider.engine.head import CompiledHead
from outrider.engine.language_model import RowSlice
from outrider.engine.row import Row
from outrider.engine.runtimes.torch_runtime import TorchModel
from outrider.engine.speculation import RowState, SpeculationPolicy
from outrider.testing import LetterTokenizer, ManualClock, ScriptedPolicy, toy_engine, toy_head

VOCAB, HIDDEN, BLOCK = 16, 16, 4
LAYERS = (0, 1)
HEAD = toy_head(vocab_size=VOCAB, hidden_size=HIDDEN, seed=5, scale=0.4)
EMBEDDING = torch.randn(VOCAB, HIDDEN, generator=torch.Generator().manual_seed(2)).double()


def target(num_blocks: int = 128) -> TorchModel:
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=VOCAB,
        hidden_size=HIDDEN,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=128,
        initializer_range=0.4,
    )
    return TorchModel(
        transformers.LlamaForCausalLM(config).double(),
        num_blocks=num_blocks,
        block_size=BLOCK,
        context_length=128,
        num_threads=1,
        digest="1",
        feature_layers=LAYERS,
    )


TARGET = target()
SCRATCH = list(range(128 // BLOCK))


def head_drafter(**more: Any) -> HeadDrafter:
    return HeadDrafter(CompiledHead(HEAD, EMBEDDING), vocab_size=VOCAB, **more)


def first_of(logits: torch.Tensor, drafted: object) -> tuple[int, None]:
    return int(logits.argmax()), None


class Watched:
    """An engine, and whether the head's memory is right after each of its steps."""

    def __init__(self, drafter: HeadDrafter | None = None, **engine: Any) -> None:
        self.drafter = drafter or head_drafter()
        engine.setdefault("length", 3)
        self.engine: Engine = toy_engine(
            engine.pop("model", None) or target(), self.drafter, **engine
        )
        self.done: dict[str, Completion] = {}
        self.num_checked = 0
        self.num_holes = 0

    def step(self) -> None:
        for update in self.engine.step():
            if update.completion is not None:
                self.done[update.request_id] = update.completion
        self.engine.check_integrity()
        self.drafter.check_integrity()
        for row in list(self.engine._rows.values()):
            self._check(row)

    def run(
        self, requests: Iterable[Request], meanwhile: Callable[[int], None] = lambda step: None
    ) -> dict[str, tuple[int, ...]]:
        for request in requests:
            self.engine.submit(request)
        step = 0
        while self.engine.has_work:
            meanwhile(step)
            self.step()
            step += 1
        assert self.drafter.num_rows == 0
        return {name: done.token_ids for name, done in sorted(self.done.items())}

    def total(self, name: str) -> int:
        return sum(getattr(done.counters, name) for done in self.done.values())

    def _check(self, row: Row) -> None:
        """The KV of what was read so far, against one computed afresh from the row's tokens."""
        memory = self.drafter.memory(row.row_id)
        if memory.num_confirmed == 0:
            return
        hole, seen = memory.num_seen - memory.num_confirmed, memory.num_seen
        tokens = row.tokens[: seen + 1]
        again = head_drafter()
        TARGET.forward([RowSlice(tokens[:-1], 0, SCRATCH, 0)])
        again.read([Read(0, hole, tokens[hole:-1], TARGET.features[hole:])])
        again.offer([DraftRow(0, row.request, tokens, first_of)], [1])
        fresh = again.memory(0)
        length = memory.num_confirmed
        assert fresh.num_confirmed == length
        assert torch.allclose(memory.kv.entries[:length], fresh.kv.entries, atol=1e-4)
        self.num_checked += 1
        self.num_holes += hole > 0


def request(name: str, prompt: Iterable[int], **params: Any) -> Request:
    speculation = params.pop("speculation", Speculation())
    shaped = {"max_tokens": 20, "ignore_eos": True, **params}
    return Request(
        request_id=name,
        prompt_ids=tuple(prompt),
        params=SamplingParams(**shaped),
        speculation=speculation,
    )


PROMPTS = [(1, 2, 3, 4) * 3, (7,), tuple(range(1, 12)), (5, 5, 5, 5, 5)]


def asks(**params: Any) -> list[Request]:
    return [request(f"r{i}", prompt, seed=i, **params) for i, prompt in enumerate(PROMPTS)]


def plain(requests: Iterable[Request]) -> dict[str, tuple[int, ...]]:
    """Each alone and without a draft."""
    out = {}
    for each in requests:
        engine = toy_engine(target())
        engine.submit(each)
        while engine.has_work:
            for update in engine.step():
                if update.completion is not None:
                    out[update.request_id] = update.completion.token_ids
    return dict(sorted(out.items()))


SHAPES = {
    "greedy": {},
    "sampled": {"temperature": 1.0, "top_p": 0.9},
    "penalised": {"temperature": 0.7, "frequency_penalty": 0.5, "min_tokens": 4},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_of_all_lengths_get_their_own_tokens(shape: str) -> None:
    watched = Watched(length=lambda round_, row_id: (round_ + row_id) % 5)
    requests = asks(**SHAPES[shape])
    assert watched.run(requests) == plain(requests)
    assert watched.num_checked > 20
    assert watched.total("accepted") > 0


@pytest.mark.parametrize("shape", SHAPES)
def test_preemption_leaves_what_was_read(shape: str) -> None:
    """Law 10. A pool that is too small; prefix sharing off, so that everything comes again."""
    requests = asks(**{**SHAPES[shape], "max_tokens": 32})
    settings = EngineSettings(prefix_caching=False, max_round_tokens=9)
    watched = Watched(model=target(num_blocks=22), settings=settings)
    assert watched.run(requests) == plain(requests)
    assert watched.total("num_preemptions") > 0
    assert watched.num_holes == 0


def test_rows_that_share_a_beginning_have_a_hole_there() -> None:
    prompt = (1, 2, 3, 4) * 6
    requests = [request(f"r{i}", (*prompt, i), seed=i, temperature=0.8) for i in range(4)]
    watched = Watched()
    first, *others = requests
    watched.run([first])
    assert watched.num_holes == 0
    assert watched.run(others) == plain(requests)
    assert watched.total("num_cached_tokens") == 3 * 24
    assert watched.num_holes > 10


class Blinking(ScriptedPolicy):
    """Lets nobody look in rounds `shut`; drafts two tokens in rounds `drafting`."""

    def __init__(self, shut: Container[int], drafting: Container[int]) -> None:
        super().__init__(lambda round_, row_id: 2 if round_ in drafting else 0)
        self._shut = shut

    def may_look(self, row: RowState) -> bool:
        return len(self.costs) not in self._shut


def blinking(watched: Watched, shut: Container[int], drafting: Container[int]) -> Blinking:
    policy = Blinking(shut, drafting)
    watched.engine._policy = watched.engine._drafting._policy = policy
    return policy


def test_rounds_without_a_look_are_read_late_and_counted() -> None:
    watched, requests = Watched(), asks(max_tokens=60)
    blinking(watched, range(3, 33), (1, 2, *range(33, 99)))
    assert watched.run(requests) == plain(requests)
    assert watched.total("num_caught_up") >= len(PROMPTS) * 28


def test_a_look_is_paid_for_in_its_round_whether_it_led_to_a_draft_or_not() -> None:
    watched = Watched()
    policy = blinking(watched, range(5, 10), (1, 7))
    watched.run([request("r", (1, 2, 3), max_tokens=14)])
    steps = [cost.draft_steps for cost in policy.costs]
    look, draft = LOOK_STEPS, LOOK_STEPS + 1
    # The prompt has no offer; a draft; looks in vain; blind ones, of which one is a draft; looks.
    assert steps[:11] == [0, draft, look, look, look, 0, 0, draft, 0, 0, look]


def test_a_release_that_falls_back_and_comes_back_goes_on() -> None:
    watched = Watched()
    requests = asks(max_tokens=30)

    def control(step: int) -> None:
        modes = {3: Mode.PLAIN, 9: Mode.SPECULATIVE}
        if step in modes:
            watched.engine.set_control(modes[step])

    assert watched.run(requests, control) == plain(requests)
    assert watched.total("num_caught_up") > 0


def test_who_is_cancelled_is_forgotten_and_no_other() -> None:
    watched = Watched()
    requests = asks(max_tokens=24)

    def cancel(step: int) -> None:
        if step == 4:
            assert watched.drafter.num_rows == len(PROMPTS)
            watched.engine.cancel("r1")
            assert watched.drafter.num_rows == len(PROMPTS) - 1

    got, wanted = watched.run(requests, cancel), plain(requests)
    assert watched.done["r1"].finish_reason is FinishReason.ABORT
    assert got.pop("r1") == wanted.pop("r1")[: len(watched.done["r1"].token_ids)]
    assert got == wanted


def test_who_asked_for_no_drafts_is_not_remembered() -> None:
    watched = Watched()
    watched.run([request("r", (1, 2, 3), speculation=Speculation(enabled=False))])
    assert watched.num_checked == 0


def test_under_the_ratio_rule_greedy_rows_are_exact_too() -> None:
    watched = Watched(settings=EngineSettings(rule=RuleKind.RATIO))
    requests = asks()
    assert watched.run(requests) == plain(requests)


def test_under_the_ratio_rule_the_words_that_the_head_lacks_still_come() -> None:
    """q is 0 there, so they come out of the residual; the same seed gives the same again."""
    requests = [request(f"r{i}", (i, 2), seed=i, temperature=1.5) for i in range(8)]
    runs = [Watched(settings=EngineSettings(rule=RuleKind.RATIO)).run(requests) for _ in range(2)]
    assert runs[0] == runs[1]
    said = {token for ids in runs[0].values() for token in ids}
    assert said - set(HEAD.d2t.tolist())


def test_acceptance_is_learnt_by_the_head_s_own_confidence() -> None:
    """Law 4: the class is known before anything is drawn."""
    clock = ManualClock()
    lengths = DraftLengthSettings(policy=LengthPolicy.FIXED, max=3)
    policy = SpeculationPolicy(lengths, BreakerSettings(enabled=False), CostModel({}))
    drafter = GuardedDrafter(head_drafter(), vocab_size=VOCAB, clock=clock)
    engine = Engine(
        target(),
        LetterTokenizer("ABCDEFGHIJKLMNO"),
        drafter,
        policy,
        EngineSettings(max_rows=16),
        clock=clock,
    )
    for i in range(12):
        engine.submit(request(f"r{i}", (i, 3, 1), seed=i, temperature=1.0, max_tokens=40))
    while engine.has_work:
        clock.advance(0.01)
        engine.step()
    tested = {
        level: record
        for (name, level), record in policy.acceptance.classes.items()
        if name == "head" and record.last_round >= 0
    }
    assert len({level % NUM_BUCKETS for level in tested}) > 2
    assert len({level // NUM_BUCKETS for level in tested}) > 1
