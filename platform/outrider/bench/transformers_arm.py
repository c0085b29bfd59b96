"""The reference that a user has without us: `generate` of transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from outrider.bench.arm import Timing
from outrider.bench.workload import Prompt
from outrider.core import Clock


class TransformersArm:
    """Greedy `generate` with its default cache, in lockstep groups of `in_flight` prompts."""

    name = "transformers"

    def __init__(
        self, module: Any, *, in_flight: int, max_tokens: int, eos_id: int, clock: Clock
    ) -> None:
        self._module = module
        self._in_flight = in_flight
        self._max_tokens = max_tokens
        self._eos_id = eos_id
        self._clock = clock

    def decode(self, prompts: Sequence[Prompt]) -> Timing:
        started = self._clock.monotonic()
        outputs: list[tuple[int, ...]] = []
        for begin in range(0, len(prompts), self._in_flight):
            outputs += self._generate(prompts[begin : begin + self._in_flight])
        seconds = self._clock.monotonic() - started
        return Timing(sum(map(len, outputs)), seconds, outputs=tuple(outputs))

    def _generate(self, prompts: Sequence[Prompt]) -> list[tuple[int, ...]]:
        longest = max(len(prompt.ids) for prompt in prompts)
        padding = [longest - len(prompt.ids) for prompt in prompts]  # on the left
        ids = [
            [self._eos_id] * pad + list(prompt.ids)
            for pad, prompt in zip(padding, prompts, strict=True)
        ]
        mask = [[0] * pad + [1] * (longest - pad) for pad in padding]
        with torch.inference_mode():
            out = self._module.generate(
                input_ids=torch.tensor(ids),
                attention_mask=torch.tensor(mask),
                max_new_tokens=self._max_tokens,
                do_sample=False,
                eos_token_id=self._eos_id,
                pad_token_id=self._eos_id,
            )
        return [self._useful(row) for row in out[:, longest:].tolist()]

    def _useful(self, row: list[int]) -> tuple[int, ...]:
        """The tokens up to EOS: padding behind it is nobody's output."""
        end = row.index(self._eos_id) + 1 if self._eos_id in row else len(row)
        return tuple(row[:end])
