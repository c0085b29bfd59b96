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

from outrider.bulk.corpus import read_line
from outrider.bulk.decode import prompt_ids
from outrider.bulk.folder import JobFolder
from outrider.bulk.manifest import load_manifest
from outrider.bulk.openai_batch import RowReader
from outrider.bulk.ports import ChatTokenizer
from outrider.bulk.rows import InvalidRowError
from outrider.config.schema import SamplingSettings
from outrider.core import UserError

MIN_ANSWER = 2  # tokens: a head tells the second token of an answer at the earliest
STOP = "stop"  # finish reason of an answer that is whole: its end is a token, too
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


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt as the input has it, and what was answered."""

    name: str
    row: Mapping[str, Any]  # as `jobs/bulk.py` reads it
    answer: str
    is_whole: bool  # the model ended it
    num_tokens: int | None = None  # of the answer, where that is known


def read_corpus(
    source: Path,
    tokenizer: AnswerTokenizer,
    *,
    max_tokens: int,
    valid_share: float,
    limit: int = 0,
) -> Corpus:
    """Read the folder of a bulk job, or a JSONL of prompts and completions.

    A line of that has what a line of a bulk input has, and `completion` (text) beside it;
    `finish_reason` is "stop" where there is none. Raises UserError for an input without rows that
    can be used, naming the first problem.
    """
    texts, parents = _bulk_texts(source) if source.is_dir() else (_lines(source), {})
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


def _bulk_texts(source: Path) -> tuple[Iterator[Text], dict[str, str]]:
    """What a job's rows asked and what was answered, and who answered."""
    folder = JobFolder(source.absolute())
    manifest = load_manifest(folder.manifest)
    if manifest is None:
        raise UserError(f"distill.input: {source} is no bulk job's folder: it has no manifest.json")
    if not folder.output.exists():
        raise UserError(f"distill.input: {source} has no output.jsonl: let the bulk job end first")
    asked = Path(manifest.identity.input_path)
    if asked.suffix == ".parquet":
        asked = folder.scratch / "rows.jsonl"
    runs = [session.run_id for session in manifest.sessions if session.run_id]
    parents = {
        "weights": manifest.identity.settings.get("model", {}).get("weights", ""),
        "corpus_input": manifest.identity.input_digest,
        "releases": ",".join(manifest.used_fingerprints),
        "run": runs[-1] if runs else "",
    }
    return _joined(asked, folder.output), parents


def _joined(asked: Path, answered: Path) -> Iterator[Text]:
    """Both files are in the same order, and not every row was answered."""
    answers = _answers(answered)
    answer = next(answers, None)
    for name, row in _objects(asked):
        if answer is None:
            return
        if answer.name != name:
            continue
        yield Text(name, row, answer.answer, answer.is_whole, answer.num_tokens)
        answer = next(answers, None)
    if answer is not None:
        raise UserError(
            f"distill.input: {answered} answers {answer.name!r}, which {asked} does not ask"
        )


def _answers(path: Path) -> Iterator[Text]:
    for name, value in _objects(path):
        body = value["response"]["body"]
        choice = body["choices"][0]
        said = choice["message"]["content"] if "message" in choice else choice["text"]
        num_tokens = body["usage"]["completion_tokens"]
        yield Text(name, {}, said or "", choice["finish_reason"] == STOP, num_tokens)


def _lines(path: Path) -> Iterator[Text]:
    for name, value in _objects(path):
        row = dict(value)
        answer, ended = row.pop("completion", None), row.pop("finish_reason", STOP)
        if not isinstance(answer, str):
            raise UserError(f"distill.input: {path}: row {name} has no completion (a text)")
        yield Text(name, row, answer, ended == STOP)


def _objects(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(custom_id, object) of each line that is not blank. UserError names a line that is none."""
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if raw.strip():
                    yield _object(path, raw, number)
    except OSError as error:
        raise UserError(f"distill.input: cannot read {path}: {error.strerror}") from error


def _object(path: Path, raw: bytes, number: int) -> tuple[str, Mapping[str, Any]]:
    line = read_line(raw, number)
    if line.value is None or line.custom_id is None:
        raise UserError(f"distill.input: {path} line {number}: {line.problem}")
    return line.custom_id, line.value


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
