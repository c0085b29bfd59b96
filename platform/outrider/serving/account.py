"""Keeps the account of one request while its events pass by."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from outrider.openai.call import Call, Endpoint
from outrider.serving.desk import Trip
from outrider.serving.leaving import LEFT
from outrider.serving.messages import Begun, Ended, Event, Piece, Refusal
from outrider.serving.request_entry import RequestEntry


class Account:
    """Opened when the request comes, closed once by `entry`."""

    def __init__(self, call: Call, trip: Trip, request_id: str, *, with_text: bool) -> None:
        self._call = call
        self._trip = trip
        self._request_id = request_id
        self._with_text = with_text
        self._at_s, self._begun_s = time.time(), time.perf_counter()
        self._first_s: float | None = None
        self._begun: Begun | None = None
        self._ended: Ended | None = None
        self._refusal: Refusal | None = None
        self._reasons: dict[int, str] = {}
        self._texts: dict[int, list[str]] = {}

    def see(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, Piece):
                self._see_piece(event)
            elif isinstance(event, Begun):
                self._begun = event
            elif isinstance(event, Ended):
                self._ended = event
            else:
                self._refusal = event

    def entry(self) -> RequestEntry:
        ended, begun, refusal = self._ended, self._begun, self._refusal
        return RequestEntry(
            at_s=self._at_s,
            request_id=self._request_id,
            endpoint=self._call.endpoint.value,
            release=self._trip.choice.release,
            arm=self._trip.choice.arm.value,
            mode=begun.mode.value if begun else "",
            replica=begun.replica if begun else "",
            status=self._status(),
            error=(refusal.code or refusal.kind) if refusal else "",
            finish_reasons=",".join(self._reasons[index] for index in sorted(self._reasons)),
            stream=self._call.stream,
            kind=self._call.kind,
            num_retries=self._trip.num_retries,
            num_prompt_tokens=ended.num_prompt_tokens if ended else 0,
            num_completion_tokens=ended.num_completion_tokens if ended else 0,
            num_rounds=ended.counters.num_rounds if ended else 0,
            drafted=ended.counters.drafted if ended else 0,
            accepted=ended.counters.accepted if ended else 0,
            queue_s=ended.queue_s if ended else None,
            first_token_s=self._first_s,
            total_s=time.perf_counter() - self._begun_s,
            prompt=self._prompt() if self._with_text else "",
            answer=self._answer() if self._with_text else "",
        )

    def _see_piece(self, piece: Piece) -> None:
        if self._first_s is None:
            self._first_s = time.perf_counter() - self._begun_s
        if piece.finish_reason is not None:
            self._reasons[piece.index] = piece.finish_reason
        if self._with_text:
            self._texts.setdefault(piece.index, []).append(piece.text)

    def _status(self) -> int:
        if self._refusal is not None:
            return self._refusal.status
        return LEFT if self._ended is None else 200

    def _prompt(self) -> str:
        return json.dumps(self._call.messages or self._call.prompts, ensure_ascii=False)

    def _answer(self) -> str:
        whole = ["".join(self._texts[index]) for index in sorted(self._texts)]
        return json.dumps(whole, ensure_ascii=False)


def turned_away(request_id: str, endpoint: Endpoint, status: int) -> RequestEntry:
    """Of a request that no release heard of: a wrong key, body, field or model."""
    return RequestEntry(
        at_s=time.time(),
        request_id=request_id,
        endpoint=endpoint.value,
        release="",
        arm="",
        status=status,
        error="turned_away",
    )
