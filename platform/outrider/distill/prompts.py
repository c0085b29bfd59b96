"""From templates and subjects to requests: varied, balanced, and the same on every machine.

Nothing is drawn from a generator with a state. Lists are put into an order by hashes of (seed,
name, place) and walked through; so a subject comes back only after all others had their turn.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeVar

from outrider.core import UserError
from outrider.distill.document import SLOT, Document, Family, Item, Template

Message = dict[str, str]
AnyT = TypeVar("AnyT")
SAMPLED_SHARE = 0.15  # of all rows; the rest is greedy, as most of the use of a draft is
TEMPERATURE = 0.8
SEED_BITS = 31
ROLES = ("user", "assistant")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request of a family."""

    kind: str
    family: str
    messages: tuple[Message, ...]

    @property
    def custom_id(self) -> str:
        """Kind, family and a digest of the messages: the same in every list that has it."""
        said = json.dumps(self.messages, ensure_ascii=False)
        return f"{self.kind}-{self.family}-{_digest(said):016x}"


def expand(document: Document, num: int, seed: int) -> Iterator[dict[str, Any]]:
    """`num` different rows of an OpenAI batch, kinds and families by their shares at every point.

    `UserError` where the document has fewer.
    """
    given = 0
    for prompt in islice(_different(_all_prompts(document, seed)), num):
        given += 1
        yield _row(prompt, document.kinds[prompt.kind].max_tokens, seed)
    if given < num:
        raise UserError(f"the templates make {given} different prompts, not {num}: write more")


def _row(prompt: Prompt, max_tokens: int, seed: int) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": "default",
        "messages": list(prompt.messages),
        "max_tokens": max_tokens,
        "temperature": 0,
    }
    name = prompt.custom_id
    if _digest(seed, "sampled", name) < SAMPLED_SHARE * 2**64:
        body["temperature"] = TEMPERATURE
        body["seed"] = _digest(seed, "seed", name) % 2**SEED_BITS
    return {
        "custom_id": name,
        "kind": prompt.kind,
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": body,
    }


def _different(prompts: Iterator[Prompt]) -> Iterator[Prompt]:
    known: set[tuple[str, ...]] = set()
    for prompt in prompts:
        texts = tuple(message["content"] for message in prompt.messages)
        if texts not in known:
            known.add(texts)
            yield prompt


def _all_prompts(document: Document, seed: int) -> Iterator[Prompt]:
    by_kind = []
    for name, kind in document.kinds.items():
        families = [family for family in document.families if family.kind == name]
        streams = [(family.share, _of_family(family, document, seed)) for family in families]
        by_kind.append((kind.share, _blended(streams)))
    return _blended(by_kind)


def _of_family(family: Family, document: Document, seed: int) -> Iterator[Prompt]:
    """One template after the other, each beginning at a place of its own in the lists."""
    order = _shuffled(family.templates, seed, family.name)
    streams = []
    for place, template in enumerate(order):
        lists = [_list(document, family, name, seed) for name in template.lists()]
        choices = _combined(lists, place / len(order))
        streams.append((1.0, _filled_all(template, family, choices)))
    return _blended(streams)


def _list(document: Document, family: Family, name: str, seed: int) -> list[tuple[str, Item]]:
    items = _shuffled(document.lists[name], seed, f"{family.name}.{name}")
    return [(name, item) for item in items]


def _filled_all(
    template: Template, family: Family, choices: Iterator[Mapping[str, Item]]
) -> Iterator[Prompt]:
    for items in choices:
        yield Prompt(family.kind, family.name, tuple(_messages(template, items)))


def _messages(template: Template, items: Mapping[str, Item]) -> Iterator[Message]:
    if template.system:
        yield {"role": "system", "content": _filled(template.system, items)}
    for number, turn in enumerate(template.turns):
        yield {"role": ROLES[number % 2], "content": _filled(turn, items)}


def _filled(text: str, items: Mapping[str, Item]) -> str:
    def value(name: str, field: str | None) -> str:
        item = items[name]
        return item if isinstance(item, str) else item[field or ""]

    return SLOT.sub(lambda slot: value(*slot.groups()), text)


def _combined(
    lists: Sequence[Sequence[tuple[str, Item]]], start: float
) -> Iterator[Mapping[str, Item]]:
    """Every combination of one item per list once, from `start` (a ratio) on and around.

    Every item of every list has its turn before one comes again.
    """
    num = math.prod(map(len, lists))
    first = int(start * num)
    for step in range(num):
        yield dict(_choice(lists, (first + step) % num))


def _choice(lists: Sequence[Sequence[tuple[str, Item]]], place: int) -> Iterator[tuple[str, Item]]:
    """The combination number `place`: all lists move on together.

    Two lists of lengths m and n meet in the same pairs after lcm(m, n) steps; then the second
    one skips an item, so that all m n pairs come. A third meets the pairs likewise.
    """
    length = 1
    for items in lists:
        step = place % (length * len(items))
        yield items[(step + step // math.lcm(length, len(items))) % len(items)]
        length *= len(items)


def _blended(streams: Sequence[tuple[float, Iterator[AnyT]]]) -> Iterator[AnyT]:
    """All items; at every point each stream has given its share, within one item."""
    due = [(1 / share, number) for number, (share, _) in enumerate(streams)]
    heapq.heapify(due)
    while due:
        at, number = heapq.heappop(due)
        share, stream = streams[number]
        for item in islice(stream, 1):
            yield item
            heapq.heappush(due, (at + 1 / share, number))


def _shuffled(items: Sequence[AnyT], seed: int, name: str) -> list[AnyT]:
    return [
        items[place] for place in sorted(range(len(items)), key=lambda at: _digest(seed, name, at))
    ]


def _digest(*parts: object) -> int:
    """64 bits."""
    text = "\0".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
