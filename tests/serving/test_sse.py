"""Bytes of a stream: one event a piece, and only a whole answer ends with [DONE]."""

from __future__ import annotations

import json
from typing import Any

from outrider.core import Counters, Mode, SamplingParams
from outrider.openai.answer import Head, TokenText
from outrider.openai.call import Call, Endpoint
from outrider.serving.messages import Begun, Ended, Event, Piece, Refusal
from outrider.serving.sse import DONE, StreamWriter, as_json, whole_answer

HEAD = Head(id="i", endpoint=Endpoint.CHAT, created=1, model="m", fingerprint="f")
BEGUN = Begun(replica="r", mode=Mode.PLAIN, num_prompt_tokens=3)
ENDED = Ended(num_prompt_tokens=3, num_completion_tokens=2, counters=Counters(), mode=Mode.PLAIN)


def call(**fields: Any) -> Call:
    return Call(
        call_id="c",
        endpoint=Endpoint.CHAT,
        messages=({"role": "user", "content": "x"},),
        stream=True,
        **{"params": SamplingParams(), **fields},
    )


def written(events: list[Event], **fields: Any) -> list[Any]:
    text = StreamWriter(call(**fields), HEAD).write(events)
    lines = text.removesuffix(DONE).split(b"\n\n")[:-1]
    return [json.loads(line.removeprefix(b"data: ")) for line in lines]


def test_a_refusal_in_the_middle_is_an_error_and_no_end() -> None:
    refusal = Refusal(status=503, message="gone", kind="server_error", code="replica_lost")
    text = StreamWriter(call(), HEAD).write([BEGUN, Piece(index=0, text="a"), refusal])
    assert DONE not in text
    last = json.loads(text.split(b"\n\n")[-2].removeprefix(b"data: "))
    assert last == {
        "error": {
            "message": "gone",
            "type": "server_error",
            "param": None,
            "code": "replica_lost",
        }
    }


def test_a_piece_whose_text_is_held_back_is_no_event_but_the_first_tells_the_role() -> None:
    held, said = Piece(index=0, token_ids=(1,)), Piece(index=0, text="ab", token_ids=(2,))
    end = Piece(index=0, finish_reason="stop")
    chunks = written([BEGUN, held, held, said, end, ENDED])
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas == [{"role": "assistant", "content": ""}, {"content": "ab"}, {}]


def test_text_that_breaks_lines_or_is_no_unicode_stays_one_event() -> None:
    odd = 'a\n\ndata: [DONE]\r "\u2028\ud800é'
    chunks = written([BEGUN, Piece(index=0, text=odd), ENDED])
    assert chunks[0]["choices"][0]["delta"]["content"] == odd
    assert as_json("é\ud800") == b'"\\u00e9\\ud800"'
    assert as_json("é") == '"é"'.encode()


def test_a_whole_answer_joins_the_pieces_of_each_choice() -> None:
    token = TokenText("a", b"a", -0.5)
    asked = call(n=2, params=SamplingParams(top_logprobs=0))
    answer = whole_answer(
        asked,
        HEAD,
        [
            BEGUN,
            Piece(index=1, text="x", logprobs=(token,)),
            Piece(index=0, text="y", logprobs=(token,), finish_reason="length"),
            Piece(index=1, text="z", logprobs=(token,), finish_reason="stop"),
            ENDED,
        ],
    )
    first, second = answer["choices"]
    assert (first["message"]["content"], first["finish_reason"]) == ("y", "length")
    assert (second["message"]["content"], second["finish_reason"]) == ("xz", "stop")
    assert [len(each["logprobs"]["content"]) for each in (first, second)] == [1, 2]
    assert answer["usage"]["total_tokens"] == 5
