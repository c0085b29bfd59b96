"""/v1/chat/completions and /v1/completions: a call from its body to its answer."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing

from fastapi import FastAPI, Request
from starlette.responses import Response

from outrider.openai.answer import Head
from outrider.openai.body import read_call
from outrider.openai.call import Call, Endpoint
from outrider.openai.fields import FieldError
from outrider.serving import headers
from outrider.serving.account import Account, turned_away
from outrider.serving.body import BodyError, read_body
from outrider.serving.book import sample_of
from outrider.serving.desk import Trip
from outrider.serving.event_stream import EventStream
from outrider.serving.http_errors import JsonResponse, failed, refused, unauthorized
from outrider.serving.leaving import until_gone
from outrider.serving.messages import Event, Events
from outrider.serving.routes.models import no_model
from outrider.serving.service import Service
from outrider.serving.split import Arm
from outrider.serving.sse import StreamWriter, as_json, begun_in, refusal_in, whole_answer


def add_generation(api: FastAPI, service: Service) -> None:
    @api.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        return await _answer(service, request, Endpoint.CHAT)

    @api.post("/v1/completions")
    async def completions(request: Request) -> Response:
        return await _answer(service, request, Endpoint.TEXT)


async def _answer(service: Service, request: Request, endpoint: Endpoint) -> Response:
    request_id = headers.request_id(request.headers, secrets.token_hex(16))
    response = await _generate(service, request, endpoint, request_id)
    response.headers[headers.REQUEST_ID] = request_id
    return response


async def _generate(
    service: Service, request: Request, endpoint: Endpoint, request_id: str
) -> Response:
    call = await _admitted(service, request, endpoint)
    if isinstance(call, Response):
        service.log(turned_away(request_id, endpoint, call.status_code))
        return call
    trip = service.desk.trip(
        call,
        session=request.headers.get(headers.SESSION_ID, ""),
        forced=headers.arm_of(request.headers) or _named(service, call),
    )
    call = service.fleet.shadows.prepared(call, trip)
    account = Account(call, trip, request_id, with_text=service.settings.log_prompts)
    events = _accounted(service, call, trip, account, request_id)
    answer = _stream if call.stream else _whole
    return await until_gone(request, answer(service, call, trip, events))


async def _admitted(service: Service, request: Request, endpoint: Endpoint) -> Call | Response:
    """The call, or what its sender is told: no release hears of it."""
    if not service.keys.admit(request.headers.get("authorization")):
        return unauthorized()
    try:
        headers.arm_of(request.headers)
        call = await _read_call(service, request, endpoint)
    except BodyError as error:
        return refused(error.refusal)
    except FieldError as error:
        return failed(400, str(error), param=error.param, code=error.code.value)
    if call.model is not None and call.model not in service.names:
        return no_model(service, call.model)
    return call


def _named(service: Service, call: Call) -> Arm | None:
    """Who names a release as the model gets that one, as far as there is a choice."""
    plan = service.desk.plan
    if plan.candidate is None or call.model not in (plan.stable, plan.candidate):
        return None
    return Arm.CANDIDATE if call.model == plan.candidate else Arm.STABLE


async def _read_call(service: Service, request: Request, endpoint: Endpoint) -> Call:
    prefix = "chatcmpl" if endpoint is Endpoint.CHAT else "cmpl"
    return read_call(
        await read_body(request, service.settings.max_request_bytes),
        endpoint,
        call_id=f"{prefix}-{secrets.token_hex(12)}",
        defaults=service.defaults,
        max_choices=service.settings.max_choices,
    )


async def _accounted(
    service: Service, call: Call, trip: Trip, account: Account, request_id: str
) -> AsyncGenerator[Events]:
    """The call's events; what became of it is written down, however it ends."""
    shadow = service.fleet.shadows.begin(call, trip, request_id)
    try:
        async with aclosing(service.desk.events(call, trip)) as events_:
            async for events in events_:
                account.see(events)
                shadow.see(events)
                yield events
    finally:
        shadow.end()
        entry = account.entry()
        service.log(entry)
        sample = sample_of(entry)
        if trip.epoch and sample is not None:
            service.desk.book.add(sample, trip.epoch)


async def _whole(
    service: Service, call: Call, trip: Trip, stream: AsyncGenerator[Events]
) -> Response:
    events: list[Event] = []
    async with aclosing(stream):
        async for some in stream:
            events.extend(some)
    where, refusal = headers.where_from(trip, events), refusal_in(events)
    if refusal is not None:
        return refused(refusal, where)
    answer = whole_answer(call, head_of(service, call, trip.choice.release), events)
    return JsonResponse(as_json(answer), headers=where)


async def _stream(
    service: Service, call: Call, trip: Trip, stream: AsyncGenerator[Events]
) -> Response:
    """The first events decide the status: until they come, nothing is sent."""
    try:
        first = await anext(stream)
    except BaseException:
        await stream.aclose()
        raise
    where, refusal = headers.where_from(trip, first), refusal_in(first)
    if refusal is not None and begun_in(first) is None:
        await stream.aclose()
        return refused(refusal, where)
    writer = StreamWriter(call, head_of(service, call, trip.choice.release))
    return EventStream(writer, first, stream, headers={**headers.SSE, **where})


def head_of(service: Service, call: Call, release: str) -> Head:
    """Of an answer of that release."""
    return Head(
        id=call.call_id,
        endpoint=call.endpoint,
        created=int(time.time()),
        model=call.model or service.model,
        fingerprint=service.fleet.fingerprint(release),
    )
