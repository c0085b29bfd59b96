"""What is learnt from: prompts and the model's own answers, as the token ids that the engine saw.

A bulk job's folder keeps texts, not ids. An answer counts only if its text becomes as many tokens
again as were generated: what was cut inside a letter does not.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from outrider.bulk.decode import prompt_ids
from outrider.bulk.openai_batch import RowReader
from outrider.bulk.ports import ChatTokenizer
from outrider.bulk.rows import InvalidRowError
from outrider.config.schema import SamplingSettings
from outrider.core import UserError
from outrider.distill.texts import Lines, Text, bulk_texts, file_lines, line_texts

MIN_ANSWER = 2  # tokens: a head tells the second token of an answer at the earliest
READER = RowReader(SamplingSettings(), seed=0)


class AnswerTokenizer(ChatTokenizer, Protocol):
    """A tokenizer that knows how an answer goes on behind a prompt."""

    def encode_more(self, text: str) -> list[int]:
        """Ids of text that does not begin a text: no BOS."""
        ...


@dataclass(frozen=True, slots=True)
class Example:
    """One row: `tokens` are the prompt's and then the answer's."""

    name: str
    kind: str
    tokens: array[int]
    num_prompt: int

    @property
    def num_answer(self) -> int:
        return len(self.tokens) - self.num_prompt


@dataclass(frozen=True, slots=True)
class Corpus:
    """Rows in the order of the input, in two parts that share no row."""

    train: tuple[Example, ...]
    valid: tuple[Example, ...]
    digest: str  # of all tokens, names and parts
    dropped: Mapping[str, int] = field(default_factory=dict)  # why -> rows
    parents: Mapping[str, str] = field(default_factory=dict)  # what is known of who wrote them

    @property
    def num_answer_tokens(self) -> int:
        return sum(example.num_answer for example in (*self.train, *self.valid))


def read_corpus(
    source: Path,
    tokenizer: AnswerTokenizer,
    *,
    max_tokens: int,
    valid_share: float,
    limit: int = 0,
    lines: Lines = file_lines,
) -> Corpus:
    """Read the folder of a bulk job, or a JSONL of prompts and completions.

    A line of that has what a line of a bulk input has, and `completion` (text) beside it;
    `finish_reason` is "stop" where there is none. Raises UserError for an input without rows that
    can be used, naming the first problem.
    """
    texts, parents = _texts(source, lines)
    examples: list[Example] = []
    dropped: Counter[str] = Counter()
    for text in texts:
        found = _example(text, tokenizer, max_tokens)
        if isinstance(found, Example):
            examples.append(found)
        else:
            dropped[found] += 1
        if limit and len(examples) == limit:
            break
    if not examples:
        why = f": {dropped.most_common(1)[0][0]}" if dropped else ""
        raise UserError(f"distill.input: {source} has no answer to learn from{why}")
    return _corpus(examples, valid_share, dropped, parents, source)


def _texts(source: Path, lines: Lines) -> tuple[Iterator[Text], Mapping[str, str]]:
    """And what is known of who wrote them."""
    return bulk_texts(source, lines) if source.is_dir() else (line_texts(source, lines), {})


def _corpus(
    examples: Sequence[Example],
    valid_share: float,
    dropped: Mapping[str, int],
    parents: Mapping[str, str],
    source: Path,
) -> Corpus:
    train = tuple(each for each in examples if not _is_valid(each, valid_share))
    valid = tuple(each for each in examples if _is_valid(each, valid_share))
    if not train or not valid:
        raise UserError(
            f"distill.input: {source} has {len(examples)} answers, too few for two parts at"
            f" valid_share={valid_share:g}: give more, or another share"
        )
    return Corpus(train, valid, digest_of((*train, *valid)), dict(dropped), dict(parents))


def _is_valid(example: Example, share: float) -> bool:
    """By the prompt alone, so that the same prompt is never in both parts."""
    prompt = example.tokens[: example.num_prompt].tobytes()
    number = int.from_bytes(hashlib.blake2b(prompt, digest_size=8).digest())
    return number < share * 2**64


def digest_of(examples: Iterable[Example]) -> str:
    """sha256, hex, of names and tokens in order."""
    hashing = hashlib.sha256()
    for example in examples:
        name = example.name.encode("utf-8", "surrogatepass")
        sizes = f"{len(name)} {example.num_prompt} {len(example.tokens)}\n"
        hashing.update(sizes.encode() + name + example.tokens.tobytes())
    return hashing.hexdigest()


def _example(text: Text, tokenizer: AnswerTokenizer, max_tokens: int) -> Example | str:
    """The row, or why it can't be used."""
    try:
        row = READER.row(text.row, 0, text.name)
        prompt = prompt_ids(row, tokenizer)
    except (InvalidRowError, UserError) as error:
        return str(error)
    if not prompt:
        return "its prompt has no tokens"
    answer = tokenizer.encode_more(text.answer)
    if text.is_whole:
        answer.append(min(tokenizer.eos_ids))
    if text.num_tokens not in (None, len(answer)):
        return "the answer's text becomes other tokens than were generated"
    tokens = array("i", [*prompt, *answer][:max_tokens])
    if len(tokens) - len(prompt) < MIN_ANSWER:
        return f"fewer than {MIN_ANSWER} tokens of an answer within max_tokens={max_tokens}"
    return Example(text.name, row.kind, tokens, len(prompt))


def written(rows: Iterable[Mapping[str, Any]], path: Path) -> int:
    """Write rows as JSONL, whole or not at all; returns how many."""
    from outrider.bulk.durable import replacing

    num = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as out:
        for row in rows:
            out.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            num += 1
    return num
