"""One line of the input, read: either a row that can be decoded or the reason why it can't."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from outrider.core import SamplingParams, Speculation
from outrider.openai.call import Endpoint
from outrider.openai.fields import must_be


class ErrorCode(StrEnum):
    """Why a row failed. Those in `RETRYABLE` are tried again when the job is run again."""

    INVALID_JSON = "invalid_json"
    INVALID_ROW = "invalid_row"
    INVALID_FIELD = "invalid_field"
    UNSUPPORTED = "unsupported"
    UNKNOWN_URL = "unknown_url"
    REFUSED = "refused"  # the engine said that it can never fit
    ENGINE_ERROR = "engine_error"
    ABORTED = "aborted"


RETRYABLE = frozenset({ErrorCode.ENGINE_ERROR, ErrorCode.ABORTED})


class InvalidRowError(Exception):
    """A row can't be decoded: becomes one line of errors.jsonl."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def bad(
    name: str, must: str, value: object, *, code: ErrorCode = ErrorCode.INVALID_FIELD
) -> InvalidRowError:
    return InvalidRowError(code, must_be(name, must, value))


@dataclass(frozen=True, slots=True)
class RowError:
    """One line of errors.jsonl."""

    line: int  # 1-based line of a JSONL input, row of a Parquet input
    custom_id: str | None
    code: ErrorCode
    message: str

    @property
    def is_retryable(self) -> bool:
        return self.code in RETRYABLE

    def to_dict(self) -> dict[str, Any]:
        return {
            "custom_id": self.custom_id,
            "line": self.line,
            "code": str(self.code),
            "message": self.message,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One request of the input. Exactly one of `messages`, `text`, `token_ids` is set."""

    line: int
    custom_id: str
    endpoint: Endpoint
    params: SamplingParams
    speculation: Speculation
    kind: str = ""
    messages: tuple[Mapping[str, Any], ...] | None = None
    text: str | None = None
    token_ids: tuple[int, ...] | None = None


def derived_seed(base: int, custom_id: str) -> int:
    """Seed of a row that names none: 63 bits that depend on the job's seed and the id only.

    So a row's output does not depend on its place in the file, its shard or a resume.
    """
    name = f"{base}\0{custom_id}".encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(name, digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1
