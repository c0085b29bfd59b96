"""A decoder whose tokens are a function of the prompt and the seed, and a tokenizer of bytes.

Prompts may ask for trouble: "flaky" fails unless mended, "tie" and "wrong" differ between the
arms at a small and at a large margin, "deadly" kills the process.
"""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.core import (
    Completion,
    Counters,
    FinishReason,
    Request,
    TokenLogprob,
    Update,
    UserError,
)

LETTERS = b"abcdefghijklmnopqrstuvwxyz "


class ByteTokenizer:
    """Each byte is a token."""

    eos_ids = frozenset({0})
    vocabulary: Mapping[str, int] = {}

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, token_ids: list[int]) -> str:
        return bytes(token_ids).decode(errors="replace")

    def encode_chat(self, messages: Sequence[Mapping[str, Any]]) -> list[int]:
        return self.encode("".join(f"<{m['role']}>{m['content']}" for m in messages))


class ScriptedDecoder:
    """Answers each request from a thread of its own, after `delay_s`."""

    def __init__(self, *, delay_s: float, context_length: int, mended: bool) -> None:
        self._delay_s = delay_s
        self._context_length = context_length
        self._mended = mended
        self.num_resets = 0
        self.prompts: list[tuple[str, bool]] = []  # (prompt, speculative) in order of submission

    def submit(
        self, request: Request, on_update: Callable[[Update], None] | None = None
    ) -> Future[Completion]:
        if len(request.prompt_ids) + request.params.max_tokens > self._context_length:
            raise UserError(
                f"the prompt of {len(request.prompt_ids)} tokens and max_tokens do not fit the"
                f" context of {self._context_length}"
            )
        self.prompts.append((bytes(request.prompt_ids).decode(), request.speculation.enabled))
        future: Future[Completion] = Future()
        thread = threading.Thread(
            target=self._decode, args=(request, future, on_update), daemon=True
        )
        thread.start()
        return future

    def cancel(self, request_id: str) -> None: ...

    def stats(self) -> dict[str, object]:
        return {}

    def reset_prefix_cache(self) -> None:
        self.num_resets += 1

    def close(self) -> None: ...

    def _decode(
        self,
        request: Request,
        future: Future[Completion],
        on_update: Callable[[Update], None] | None,
    ) -> None:
        try:
            future.set_result(self._answer(request, on_update))
        except Exception as error:  # noqa: BLE001  (as a dead engine would)
            future.set_exception(error)

    def _answer(self, request: Request, on_update: Callable[[Update], None] | None) -> Completion:
        time.sleep(self._delay_s)
        prompt = bytes(request.prompt_ids).decode()
        if "deadly" in prompt:
            os.kill(os.getpid(), signal.SIGKILL)
        completion = self._complete(request, prompt)
        if on_update is not None:
            on_update(
                Update(
                    request_id=request.request_id,
                    token_ids=completion.token_ids,
                    completion=completion,
                )
            )
        return completion

    def _complete(self, request: Request, prompt: str) -> Completion:
        if "flaky" in prompt and not self._mended:
            return Completion(
                request_id=request.request_id,
                token_ids=(),
                text="",
                finish_reason=FinishReason.ERROR,
                error="NaN in the target's logits",
            )
        tokens = self._tokens(request, prompt)
        count = len(tokens)
        drafts = request.speculation.enabled
        return Completion(
            request_id=request.request_id,
            token_ids=tokens,
            text=bytes(tokens).decode(),
            finish_reason=FinishReason.LENGTH,
            logprobs=self._logprobs(request, prompt, tokens),
            num_prompt_tokens=len(request.prompt_ids),
            counters=Counters(
                drafted=count if drafts else 0,
                evaluated=count // 2 if drafts else 0,
                accepted=count // 4 if drafts else 0,
                emitted=count,
                num_rounds=count - (count // 4 if drafts else 0),
                num_draft_rounds=count // 2 if drafts else 0,
                active_s=count * (0.01 if drafts else 0.02),
            ),
        )

    def _tokens(self, request: Request, prompt: str) -> tuple[int, ...]:
        tokens: list[int] = []
        params = request.params
        seed = 0 if params.is_greedy else params.seed
        for position in range(params.max_tokens):
            name = f"{prompt}|{seed}|{params.temperature}|{position}"
            draw = hashlib.blake2b(name.encode(), digest_size=2).digest()
            tokens.append(LETTERS[int.from_bytes(draw, "big") % len(LETTERS)])
        if request.speculation.enabled and ("tie" in prompt or "wrong" in prompt):
            tokens[-1] = ord("!")
        return tuple(tokens)

    def _logprobs(
        self, request: Request, prompt: str, tokens: tuple[int, ...]
    ) -> tuple[TokenLogprob, ...] | None:
        if request.params.top_logprobs is None:
            return None
        gap = 0.01 if "tie" in prompt else 3.0
        return tuple(
            TokenLogprob(token, -0.123456789, ((token, -0.5), (ord("!"), -0.5 - gap)))
            for token in tokens
        )


@dataclass(frozen=True)
class ScriptedEngine:
    """An EngineFactory. Each worker leaves its process number in `pids`, if that is given."""

    delay_s: float = 0.0
    context_length: int = 4096
    mended: bool = False
    refusal: str = ""
    pids: str = ""

    def __call__(self) -> tuple[ScriptedDecoder, ByteTokenizer]:
        if self.refusal:
            raise UserError(self.refusal)
        if self.pids:
            Path(self.pids).mkdir(parents=True, exist_ok=True)
            (Path(self.pids) / str(os.getpid())).touch()
        decoder = ScriptedDecoder(
            delay_s=self.delay_s, context_length=self.context_length, mended=self.mended
        )
        return decoder, ByteTokenizer()
