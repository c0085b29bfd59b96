"""From a Call to the engine's requests: one for each choice."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from outrider.core import Mode, Request, UserError
from outrider.openai.call import Call, Endpoint
from outrider.serving.messages import Control
from outrider.serving.ports import ChatTokenizer

SEED_BITS = 63


def encode(call: Call, tokenizer: ChatTokenizer) -> list[tuple[int, ...]]:
    """Token ids of each prompt. `UserError` where the text or the template refuses."""
    try:
        if call.endpoint is Endpoint.CHAT:
            return [tuple(tokenizer.encode_chat(call.messages))]
        return [
            tuple(tokenizer.encode(prompt)) if isinstance(prompt, str) else prompt
            for prompt in call.prompts
        ]
    except (UnicodeError, TypeError) as error:  # a lone surrogate in the text
        raise UserError(f"prompt: it can't be tokenised: {error}") from error


def num_characters(call: Call) -> int:
    """Characters that `encode` has to read."""
    texts = [prompt for prompt in call.prompts if isinstance(prompt, str)]
    return sum(len(text) for text in [*texts, *(m["content"] for m in call.messages)])


def make_requests(call: Call, prompts: list[tuple[int, ...]], drawn_seed: int) -> list[Request]:
    """`drawn_seed` stands in where the call has none."""
    seed = drawn_seed if call.seed is None else call.seed
    return [
        Request(
            request_id=f"{call.call_id}-{index}",
            prompt_ids=prompts[index // call.n],
            params=replace(call.params, seed=choice_seed(seed, index)),
            speculation=call.speculation,
            kind=call.kind,
            stream=call.stream,
            constraint=call.constraint,
        )
        for index in range(call.num_choices)
    ]


def choice_seed(seed: int, index: int) -> int:
    """The first choice has the call's own seed; the others differ from it and from each other."""
    if index == 0:
        return seed
    digest = hashlib.blake2b(f"{seed}\0{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> (64 - SEED_BITS)


def mode_of(call: Call, control: Control) -> Mode:
    """How the call is decoded as things stand."""
    asked, allowed = call.speculation, control.max_draft_length
    if control.mode is Mode.PLAIN or not asked.enabled:
        return Mode.PLAIN
    return Mode.PLAIN if 0 in (asked.max_draft_length, allowed) else Mode.SPECULATIVE
