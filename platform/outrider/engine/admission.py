"""Which requests the engine can serve at all: refused clearly before they cost anything."""

from __future__ import annotations

from math import inf

from outrider.core import Request, SamplingParams, UserError
from outrider.engine.language_model import ModelShape

_MOST_LOGPROBS = 20
_MOST_PENALTY = 2.0
_MOST_BIAS = 100.0
_MOST_REPETITION = 1e6  # and its inverse the least: logits stay finite


def check_request(
    request: Request, shape: ModelShape, vocab_size: int, eos_ids: frozenset[int]
) -> None:
    """Raise UserError naming the field where the request can never be served."""
    num_prompt = len(request.prompt_ids)
    if num_prompt == 0:
        raise UserError("prompt: it holds no tokens; give at least one")
    if num_prompt >= shape.context_length:
        raise UserError(
            f"prompt: {num_prompt} tokens do not fit the context of {shape.context_length} tokens "
            "with at least one to generate; shorten it"
        )
    _check_ids("prompt", request.prompt_ids, vocab_size)
    if request.constraint is not None and request.params.ignore_eos:
        raise UserError("ignore_eos: a structured output ends where it is complete; leave it out")
    _check_params(request.params, vocab_size)
    _check_min_tokens(request.params, vocab_size, eos_ids)
    _check_blocks(most_tokens(request, shape), shape)


def most_tokens(request: Request, shape: ModelShape) -> int:
    """Prompt and longest possible output, in tokens."""
    return min(len(request.prompt_ids) + request.params.max_tokens, shape.context_length)


def _check_blocks(longest: int, shape: ModelShape) -> None:
    capacity = shape.num_blocks * shape.block_size
    if longest > capacity:
        raise UserError(
            f"max_tokens: prompt and output need up to {longest} tokens of KV cache, the pool "
            f"holds {capacity}; lower max_tokens or raise model.kv_blocks"
        )


def _check_min_tokens(params: SamplingParams, vocab_size: int, eos_ids: frozenset[int]) -> None:
    """min_tokens forbids the stop ids: something else must be left to say."""
    if params.min_tokens == 0:
        return
    stops = {*params.stop_token_ids, *(() if params.ignore_eos else eos_ids)}
    if sum(token < vocab_size for token in stops) == vocab_size:
        raise UserError(
            "min_tokens: stop_token_ids and EOS cover the whole vocabulary, so that nothing may be "
            "said before min_tokens; leave a token out or set min_tokens to 0"
        )


def _check_ids(field: str, ids: tuple[int, ...], vocab_size: int) -> None:
    wrong = next((token for token in ids if not 0 <= token < vocab_size), None)
    if wrong is not None:
        raise UserError(f"{field}: token id {wrong} is outside the vocabulary of {vocab_size}")


def _check_params(params: SamplingParams, vocab_size: int) -> None:
    allowed = {
        "temperature": (0.0 <= params.temperature < inf, "0 or more"),
        "top_p": (0.0 < params.top_p <= 1.0, "above 0 and at most 1"),
        "top_k": (params.top_k >= 0, "0 (off) or more"),
        "min_p": (0.0 <= params.min_p <= 1.0, "between 0 and 1"),
        "max_tokens": (params.max_tokens >= 1, "at least 1"),
        "min_tokens": (0 <= params.min_tokens <= params.max_tokens, "between 0 and max_tokens"),
        "presence_penalty": (abs(params.presence_penalty) <= _MOST_PENALTY, "between -2 and 2"),
        "frequency_penalty": (abs(params.frequency_penalty) <= _MOST_PENALTY, "between -2 and 2"),
        "repetition_penalty": (
            1 / _MOST_REPETITION <= params.repetition_penalty <= _MOST_REPETITION,
            "above 0 (from 1e-6 to 1e6)",
        ),
        "top_logprobs": (
            params.top_logprobs is None or 0 <= params.top_logprobs <= _MOST_LOGPROBS,
            f"between 0 and {_MOST_LOGPROBS}",
        ),
        "logit_bias": (
            all(abs(bias) <= _MOST_BIAS for bias in params.logit_bias.values()),
            "from token ids to numbers between -100 and 100",
        ),
        "stop": (all(params.stop), "strings of at least one character"),
    }
    for field, (is_right, text) in allowed.items():
        if not is_right:
            raise UserError(f"{field}: {getattr(params, field)!r} is not {text}")
    _check_ids("stop_token_ids", params.stop_token_ids, vocab_size)
    _check_ids("logit_bias", tuple(params.logit_bias), vocab_size)
