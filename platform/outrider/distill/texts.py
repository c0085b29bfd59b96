"""What was asked and what was answered, out of a bulk job's folder or a JSONL."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outrider.bulk.corpus import read_line
from outrider.bulk.folder import JobFolder
from outrider.bulk.manifest import load_manifest
from outrider.core import UserError

STOP = "stop"  # finish reason of an answer that is whole: its end is a token, too
Lines = Callable[[Path], Generator[bytes, None, None]]
"""Each line of a file, in its order. Raises OSError where the file can't be read."""


def file_lines(path: Path) -> Generator[bytes, None, None]:
    with path.open("rb") as file:
        yield from file


@dataclass(frozen=True, slots=True)
class Text:
    """A prompt as the input has it, and what was answered."""

    name: str
    row: Mapping[str, Any]  # as `jobs/bulk.py` reads it
    answer: str
    is_whole: bool  # the model ended it
    num_tokens: int | None = None  # of the answer, where that is known


def bulk_texts(source: Path, lines: Lines) -> tuple[Iterator[Text], dict[str, str]]:
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
    return _joined(asked, folder.output, lines), parents


def _joined(asked: Path, answered: Path, lines: Lines) -> Iterator[Text]:
    """Both files are in the same order, and not every row was answered."""
    answers = _answers(answered, lines)
    answer = next(answers, None)
    for name, row in _objects(asked, lines):
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


def _answers(path: Path, lines: Lines) -> Iterator[Text]:
    for name, value in _objects(path, lines):
        body = value["response"]["body"]
        choice = body["choices"][0]
        said = choice["message"]["content"] if "message" in choice else choice["text"]
        num_tokens = body["usage"]["completion_tokens"]
        yield Text(name, {}, said or "", choice["finish_reason"] == STOP, num_tokens)


def line_texts(path: Path, lines: Lines) -> Iterator[Text]:
    for name, value in _objects(path, lines):
        row = dict(value)
        answer, ended = row.pop("completion", None), row.pop("finish_reason", STOP)
        if not isinstance(answer, str):
            raise UserError(f"distill.input: {path}: row {name} has no completion (a text)")
        yield Text(name, row, answer, ended == STOP)


def _objects(path: Path, lines: Lines) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(custom_id, object) of each line that is not blank. UserError names a line that is none."""
    try:
        with closing(lines(path)) as found:
            for number, raw in enumerate(found, start=1):
                if raw.strip():
                    yield _object(path, raw, number)
    except OSError as error:
        raise UserError(f"distill.input: cannot read {path}: {error.strerror}") from error


def _object(path: Path, raw: bytes, number: int) -> tuple[str, Mapping[str, Any]]:
    line = read_line(raw, number)
    if line.value is None or line.custom_id is None:
        raise UserError(f"distill.input: {path} line {number}: {line.problem}")
    return line.custom_id, line.value
