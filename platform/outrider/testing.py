"""Public fakes, shipped beside the interfaces they stand in for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from outrider.config.schema import (
    BreakerSettings,
    DraftLengthSettings,
    EngineSettings,
    NgramSettings,
)
from outrider.core import (
    Clock,
    Completion,
    Constraint,
    Request,
    SystemClock,
    Tokenizer,
    UserError,
)
from outrider.engine.constraint import Allowed, ConstraintCompiler
from outrider.engine.cost import CostModel
from outrider.engine.draft_length import LengthDecision
from outrider.engine.drafters import Drafted, Drafter, DraftRow, Offer, Proposal
from outrider.engine.drafters.guarded import GuardedDrafter
from outrider.engine.drafters.ngram import NgramDrafter
from outrider.engine.drafters.none import NoDrafter
from outrider.engine.engine import Engine
from outrider.engine.language_model import ExactSizes, LanguageModel, ModelShape, RowSlice
from outrider.engine.round_record import TraceSink
from outrider.engine.runner import Runner
from outrider.engine.speculation import (
    UNLIMITED,
    Candidate,
    RoundCost,
    RowOutcome,
    SpeculationPolicy,
)
from outrider.tracking.fingerprint import flatten
from outrider.tracking.tracker import NO_TAGS, RunStatus


class ManualClock:
    """A clock that moves only when told (seconds)."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


class ScriptedModel(ExactSizes):
    """A toy target: logits are a function of the tokens before, read back from its KV blocks.

    The blocks store token ids, so that a wrong rollback, block table or prefix share changes
    what the script sees. `logits(prefix)` returns `vocab_size` floats; the prefix ends with the
    token just fed. Each forward may advance a `ManualClock` by `cost(rows, tokens)` seconds.
    """

    def __init__(
        self,
        logits: Callable[[tuple[int, ...]], Sequence[float]],
        *,
        vocab_size: int,
        context_length: int = 512,
        num_blocks: int = 256,
        block_size: int = 4,
        clock: ManualClock | None = None,
        cost: Callable[[int, int], float] = lambda rows, tokens: 0.01,
    ) -> None:
        self._logits = logits
        self._shape = ModelShape(
            vocab_size=vocab_size,
            context_length=context_length,
            num_blocks=num_blocks,
            block_size=block_size,
        )
        self._memory = [[-1] * block_size for _ in range(num_blocks)]
        self._clock = clock
        self._cost = cost
        self.num_forwards = 0
        self.num_tokens = 0

    @property
    def shape(self) -> ModelShape:
        return self._shape

    @property
    def identity(self) -> dict[str, str]:
        return {"runtime": "scripted", "dtype": "float64"}

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        """Return logits [sum of num_logits, vocab_size] in float64."""
        self.num_forwards += 1
        num_tokens = sum(len(row.tokens) for row in rows)
        self.num_tokens += num_tokens
        if self._clock is not None:
            self._clock.advance(self._cost(len(rows), num_tokens))
        out = [line for row in rows for line in self._score(row)]
        return torch.tensor(out, dtype=torch.float64).reshape(len(out), self._shape.vocab_size)

    def _score(self, row: RowSlice) -> list[Sequence[float]]:
        for offset, token in enumerate(row.tokens):
            block, slot = divmod(row.past_length + offset, self._shape.block_size)
            self._memory[row.blocks[block]][slot] = token
        length = row.past_length + len(row.tokens)
        if length > self._shape.context_length:
            raise ValueError(f"{length} tokens exceed the context of {self._shape.context_length}")
        prefix = self._read(row.blocks, length)
        first = length - row.num_logits
        return [self._logits(prefix[: end + 1]) for end in range(first, length)]

    def _read(self, blocks: Sequence[int], length: int) -> tuple[int, ...]:
        flat = [token for block in blocks for token in self._memory[block]]
        return tuple(flat[:length])


class LetterTokenizer:
    """One token for each character of an alphabet; the last id is EOS and decodes to nothing."""

    def __init__(self, alphabet: str = "ABCDEFG") -> None:
        self._alphabet = alphabet
        self.eos_id = len(alphabet)

    @property
    def eos_ids(self) -> frozenset[int]:
        return frozenset({self.eos_id})

    @property
    def vocabulary(self) -> Mapping[str, int]:
        letters = {letter: index for index, letter in enumerate(self._alphabet)}
        return {**letters, "<eos>": self.eos_id}

    def encode(self, text: str) -> list[int]:
        return [self._alphabet.index(letter) for letter in text]

    def decode(self, token_ids: list[int]) -> str:
        return "".join(self._alphabet[token] for token in token_ids if token != self.eos_id)


class ByteTokenizer:
    """Each byte is a token; the last id is EOS. Its chat template ends with the last message."""

    eos_ids = frozenset({256})
    vocabulary: Mapping[str, int] = {**{chr(byte): byte for byte in range(256)}, "<eos>": 256}

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, token_ids: list[int]) -> str:
        return bytes(token for token in token_ids if token < 256).decode(errors="replace")  # noqa: PLR2004

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        return self.encode("".join(f"<{m['role']}>{m['content']}" for m in messages))


@dataclass(frozen=True, kw_only=True)
class AlphabetEngine:
    """Opens a running engine that says the alphabet: each letter is followed by the next, z by
    EOS, anything else by a. It drafts from its own tokens. Picklable.
    """

    delay_s: float = 0.0  # seconds of one forward
    max_rows: int = 16
    num_blocks: int = 2048
    wedge: Path | None = None  # while this file exists, no forward ends

    def __call__(self) -> tuple[Runner, ByteTokenizer]:
        model = ScriptedModel(
            _next_letter, vocab_size=257, context_length=4096, num_blocks=self.num_blocks
        )
        engine = toy_engine(
            DelayedModel(model, self.delay_s, self.wedge),
            NgramDrafter(NgramSettings(), None),
            length=3,
            tokenizer=ByteTokenizer(),
            clock=SystemClock(),
            settings=EngineSettings(max_rows=self.max_rows),
        )
        return Runner(engine), ByteTokenizer()


def _next_letter(prefix: tuple[int, ...]) -> list[float]:
    scores = [0.0] * 257
    scores[ord("a")] = 1.0
    last = prefix[-1]
    if last == ord("z"):
        scores[256] = 2.0
    elif ord("a") <= last < ord("z"):
        scores[last + 1] = 2.0
    return scores


class OverModel(ExactSizes):
    """Another model, but for what a subclass does around its forwards."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model

    @property
    def shape(self) -> ModelShape:
        return self._model.shape

    @property
    def identity(self) -> dict[str, str]:
        return self._model.identity

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        return self._model.forward(rows)


class DelayedModel(OverModel):
    """Any model, whose forwards last `delay_s` seconds longer, or while the file `wedge` exists."""

    def __init__(self, model: LanguageModel, delay_s: float, wedge: Path | None = None) -> None:
        super().__init__(model)
        self._delay_s = delay_s
        self._wedge = wedge

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        if self._delay_s:
            time.sleep(self._delay_s)
        while self._wedge is not None and self._wedge.exists():
            time.sleep(0.05)
        return super().forward(rows)


class ScriptedDrafter:
    """Proposes `script(tokens, length)`, cut to the length asked for; one-hot q unless given.

    `script` may return fewer tokens, raise, or return anything wrong a drafter might.
    """

    def __init__(
        self,
        script: Callable[[Sequence[int], int], list[int]],
        *,
        q: Callable[[Sequence[int]], torch.Tensor] | None = None,
        name: str = "scripted",
    ) -> None:
        self._script = script
        self._q = q
        self.name = name
        self.lengths: list[list[int]] = []  # asked for, round by round
        self.num_offers = 0

    def offer(self, rows: Sequence[DraftRow], limits: Sequence[int]) -> list[Offer]:
        self.num_offers += 1
        return [Offer(self.name, tuple(range(limit))) for limit in limits]

    def propose(self, rows: Sequence[DraftRow], lengths: Sequence[int]) -> Drafted:
        self.lengths.append(list(lengths))
        return Drafted([self._block(row, k) for row, k in zip(rows, lengths, strict=True)])

    def release(self, row_id: int, tokens: Sequence[int]) -> None:
        pass

    def _block(self, row: DraftRow, length: int) -> Proposal:
        tokens = self._script(tuple(row.tokens), length)
        return Proposal(tokens, None if self._q is None else self._q(tokens))


class WedgedModel(OverModel):
    """Any model, whose forwards stand still while `gate` is closed (`gate.clear()`)."""

    def __init__(self, model: LanguageModel) -> None:
        super().__init__(model)
        self.gate = threading.Event()
        self.gate.set()

    def forward(self, rows: Sequence[RowSlice]) -> torch.Tensor:
        self.gate.wait()
        return super().forward(rows)


@dataclass(frozen=True)
class Automaton:
    """Which token leads from which state to which; the first state is 0."""

    edges: Mapping[int, Mapping[int, int]]
    accepting: frozenset[int]


class AutomatonCompiler:
    """Constraints whose text names one of `automata`."""

    def __init__(self, automata: Mapping[str, Automaton], *, vocab_size: int, eos_id: int) -> None:
        self._automata = automata
        self._vocab_size = vocab_size
        self._eos_id = eos_id

    def check(self, constraint: Constraint) -> None:
        if constraint.text not in self._automata:
            raise UserError(f"grammar: there is no {constraint.text!r}")

    def open(self, constraint: Constraint) -> AutomatonMatcher:
        return AutomatonMatcher(self._automata[constraint.text], self._vocab_size, self._eos_id)


class AutomatonMatcher:
    """One row's state."""

    def __init__(self, automaton: Automaton, vocab_size: int, eos_id: int) -> None:
        self._automaton = automaton
        self._vocab_size = vocab_size
        self._eos_id = eos_id
        self.state: int | None = 0  # None: behind EOS

    def allowed(self, drafted: Sequence[int]) -> Allowed:
        state = self.state
        for token in drafted:
            state = None if token == self._eos_id or state is None else self._next(state)[token]
        mask = np.full(self._vocab_size, state is None)
        if state is not None:
            mask[list(self._next(state))] = True
            mask[self._eos_id] = state in self._automaton.accepting or not self._next(state)
        return mask

    def is_allowed(self, drafted: Sequence[int], token: int) -> bool:
        return bool(self.allowed(drafted)[token])

    def forced(self) -> list[int]:
        """The only way on, for as long as there is one (it may be a circle)."""
        run: list[int] = []
        while len(run) < self._vocab_size and self.state is not None:
            ways = np.flatnonzero(self.allowed(run))
            if ways.size != 1 or ways[0] == self._eos_id:
                break
            run.append(int(ways[0]))
        return run

    def num_allowed(self, drafted: Sequence[int]) -> int:
        for index, token in enumerate(drafted):
            if not self.allowed(drafted[:index])[token]:
                return index
        return len(drafted)

    def commit(self, token: int) -> None:
        if self.state is not None:
            self.state = None if token == self._eos_id else self._next(self.state)[token]

    def _next(self, state: int) -> Mapping[int, int]:
        return self._automaton.edges.get(state, {})


class MemoryRun:
    """A run that stays in memory, for tests to read."""

    def __init__(
        self,
        run_id: str,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str],
    ) -> None:
        self.run_id = run_id
        self.name = name
        self.kind = kind
        self.params = flatten(params)
        self.tags = dict(tags)
        self.windows: list[tuple[int, float, dict[str, float]]] = []  # step, at_s, metrics
        self.final: dict[str, float] = {}
        self.artifacts: dict[str, bytes] = {}  # by name, folder included
        self.status: RunStatus | None = None  # None: running

    def log_window(self, metrics: Mapping[str, float], step: int, at_s: float) -> None:
        self.windows.append((step, at_s, dict(metrics)))

    def log_final(self, metrics: Mapping[str, float]) -> None:
        self.final |= metrics

    def log_artifact(self, path: Path, folder: str = "") -> None:
        self.artifacts[f"{folder}/{path.name}" if folder else path.name] = path.read_bytes()

    def log_text(self, text: str, name: str) -> None:
        self.artifacts[name] = text.encode()

    def set_tags(self, tags: Mapping[str, str]) -> None:
        self.tags |= tags

    def close(self, status: RunStatus) -> None:
        self.status = self.status or status


class MemoryTracker:
    """Keeps its runs in `runs`, oldest first."""

    open_command = ""

    def __init__(self) -> None:
        self.runs: list[MemoryRun] = []

    def start_run(
        self,
        name: str,
        kind: str,
        params: Mapping[str, object],
        tags: Mapping[str, str] = NO_TAGS,
    ) -> MemoryRun:
        self.runs.append(MemoryRun(f"run-{len(self.runs)}", name, kind, params, tags))
        return self.runs[-1]

    def close(self) -> None:
        pass


class ScriptedPolicy(SpeculationPolicy):
    """Draft lengths by script: `length(round, row_id)`, cut to each row's limit and offer."""

    def __init__(self, length: Callable[[int, int], int], max_length: int = 64) -> None:
        super().__init__(DraftLengthSettings(max=max_length), BreakerSettings(), CostModel({}))
        self._script = length
        self._round = 0
        self.outcomes: list[list[RowOutcome]] = []  # observed, round by round
        self.costs: list[RoundCost] = []

    def decide(
        self,
        candidates: Sequence[Candidate],
        *,
        base_rows: int,
        base_tokens: int,
        budget: int = UNLIMITED,
    ) -> LengthDecision:
        lengths = []
        for candidate in candidates:
            wanted = self._script(self._round, candidate.row.row_id)
            lengths.append(min(wanted, candidate.limit, len(candidate.offer.levels), budget))
            budget -= lengths[-1]
        return LengthDecision(tuple(lengths), 0.0, 0.0, 0.0, 0.0)

    def observe(self, outcomes: Sequence[RowOutcome], cost: RoundCost) -> None:
        self._round += 1
        self.outcomes.append(list(outcomes))
        self.costs.append(cost)


def toy_engine(
    model: LanguageModel,
    drafter: Drafter | None = None,
    *,
    length: int | Callable[[int, int], int] = 0,
    tokenizer: Tokenizer | None = None,
    clock: Clock | None = None,
    trace: TraceSink | None = None,
    settings: EngineSettings | None = None,
    constraints: ConstraintCompiler | None = None,
) -> Engine:
    """An engine with scripted draft lengths over any model; its tokenizer fits the vocabulary."""
    vocab_size, clock = model.shape.vocab_size, clock or ManualClock()
    script = length if callable(length) else lambda round_, row_id: length
    return Engine(
        model,
        tokenizer or LetterTokenizer("ABCDEFGHIJKLMNOPQRSTUVWXYZ"[: vocab_size - 1]),
        GuardedDrafter(drafter or NoDrafter(), vocab_size=vocab_size, clock=clock),
        ScriptedPolicy(script),
        settings or EngineSettings(),
        clock=clock,
        trace=trace,
        constraints=constraints,
    )


def finish(engine: Engine, *requests: Request) -> dict[str, Completion]:
    """Submit, step until idle, check integrity each round; return completions by request id."""
    for request in requests:
        engine.submit(request)
    done: dict[str, Completion] = {}
    while engine.has_work:
        for update in engine.step():
            if update.completion is not None:
                done[update.request_id] = update.completion
        engine.check_integrity()
    return done
