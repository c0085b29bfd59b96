"""Which replica should have a prompt: the one that has its beginning in the cache. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from outrider.openai.call import Call, Endpoint

CHARACTERS_PER_TOKEN = 4


def prefix_key(call: Call, num_tokens: int) -> str:
    """The beginning of the prompt, about `num_tokens` tokens of it."""
    if call.endpoint is Endpoint.CHAT:
        whole = "\0".join(f"{each['role']}\0{each['content']}" for each in call.messages)
    else:
        first = call.prompts[0]
        whole = first if isinstance(first, str) else " ".join(map(str, first[:num_tokens]))
    return whole[: num_tokens * CHARACTERS_PER_TOKEN]


def favourite(key: str, loads: Mapping[str, int], slack: int) -> str | None:
    """The replica of a key by rendezvous hashing: a replica that goes moves its own keys only.

    None where it has more than `slack` requests more than the least loaded one.
    """
    if not loads:
        return None
    chosen = max(loads, key=lambda replica: _weight(key, replica))
    return chosen if loads[chosen] - min(loads.values()) <= slack else None


def _weight(key: str, replica: str) -> bytes:
    name = f"{replica}\0{key}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(name, digest_size=8).digest()
