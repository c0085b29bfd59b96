"""The HTTP API: OpenAI's routes, health, metrics and /admin. Nothing of Ray is met here."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response, StreamingResponse

from outrider.config.schema import ServingSettings
from outrider.core import Mode, SamplingParams
from outrider.openai.answer import Head
from outrider.openai.body import read_call
from outrider.openai.call import Call, Endpoint
from outrider.openai.errors import INVALID
from outrider.openai.fields import FieldError
from outrider.serving import http_errors
from outrider.serving.account import Account
from outrider.serving.body import BodyError, read_body
from outrider.serving.desk import Desk, Trip
from outrider.serving.http_errors import JsonResponse, failed, refused
from outrider.serving.keys import Keys
from outrider.serving.messages import Control, Event, Events, Refusal, ReplicaStats
from outrider.serving.request_entry import RequestEntry
from outrider.serving.sse import (
    StreamWriter,
    as_json,
    begun_in,
    refusal_in,
    whole_answer,
)

SANE_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}\Z")
SSE_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What the routes work with."""

    desk: Desk
    settings: ServingSettings
    model: str  # name that /v1/models shows
    fingerprint: str
    defaults: SamplingParams  # where a request is silent
    created: int  # seconds since 1970
    keys: Keys = Keys()  # noqa: RUF009 - an empty set of keys has no state
    admin_keys: Keys = Keys()  # noqa: RUF009
    log: Callable[[RequestEntry], None] = lambda entry: None
    metrics: Callable[[list[ReplicaStats]], bytes] = lambda stats: b""

    @property
    def names(self) -> frozenset[str]:
        """What a request may call the model."""
        return frozenset({self.model, *self.desk.releases})


def create_api(service: Service) -> FastAPI:
    """The app; `service.desk` reaches the releases."""
    api = FastAPI(title="Outrider", docs_url=None, redoc_url=None, openapi_url=None)
    http_errors.install(api)
    _add_openai(api, service)
    _add_health(api, service)
    _add_admin(api, service)
    return api


def _add_openai(api: FastAPI, service: Service) -> None:
    @api.post("/v1/chat/completions")
    async def chat(request: Request) -> Response:
        return await _generate(service, request, Endpoint.CHAT)

    @api.post("/v1/completions")
    async def completions(request: Request) -> Response:
        return await _generate(service, request, Endpoint.TEXT)

    @api.get("/v1/models")
    async def models(request: Request) -> Response:
        if not _is_admitted(service.keys, request):
            return _unauthorized()
        data = [_model(service, name) for name in sorted(service.names)]
        return JsonResponse(as_json({"object": "list", "data": data}))

    @api.get("/v1/models/{name:path}")
    async def model(request: Request, name: str) -> Response:
        if not _is_admitted(service.keys, request):
            return _unauthorized()
        if name not in service.names:
            return _no_model(service, name)
        return JsonResponse(as_json(_model(service, name)))


def _add_health(api: FastAPI, service: Service) -> None:
    @api.get("/health")  # what load tools for vLLM's server look at first
    @api.get("/healthz")
    async def healthz() -> Response:
        return JsonResponse(b'{"status":"ok"}')

    @api.get("/readyz")
    async def readyz() -> Response:
        told = await asyncio.gather(*map(_stats, service.desk.releases.values()))
        if all(told):
            return JsonResponse(b'{"status":"ready"}')
        return failed(503, "a release has no replica that answers")

    @api.get("/metrics")
    async def metrics(request: Request) -> Response:
        if not _is_admitted(service.keys, request):
            return _unauthorized()
        told = await asyncio.gather(*map(_stats, service.desk.releases.values()))
        page = service.metrics([each for stats in told for each in stats])
        return Response(page, media_type="text/plain; version=0.0.4")


def _add_admin(api: FastAPI, service: Service) -> None:
    @api.get("/admin/status")
    async def status(request: Request) -> Response:
        if not _is_admitted(service.admin_keys, request):
            return _unauthorized()
        told = await asyncio.gather(*map(_stats, service.desk.releases.values()))
        return JsonResponse(as_json(_status(service, [each for stats in told for each in stats])))

    @api.put("/admin/control")
    async def control(request: Request) -> Response:
        if not _is_admitted(service.admin_keys, request):
            return _unauthorized()
        try:
            control = _control(await read_body(request, service.settings.max_request_bytes))
        except BodyError as error:
            return refused(error.refusal)
        except ValueError as error:
            return failed(400, str(error))
        for release in service.desk.releases.values():
            await release.control(control)
        return JsonResponse(
            as_json({"mode": control.mode, "max_draft_length": control.max_draft_length})
        )


# -- generation -------------------------------------------------------------------------------


async def _generate(service: Service, request: Request, endpoint: Endpoint) -> Response:
    if not _is_admitted(service.keys, request):
        return _unauthorized()
    request_id = _request_id(request)
    try:
        call = await _read_call(service, request, endpoint)
    except BodyError as error:
        return refused(error.refusal)
    except FieldError as error:
        return failed(400, str(error), param=error.param, code=error.code.value)
    if call.model is not None and call.model not in service.names:
        return _no_model(service, call.model)
    trip = service.desk.trip(call.user or request.headers.get("x-session-id") or request_id)
    account = Account(call, trip, request_id, with_text=service.settings.log_prompts)
    events = _accounted(service, call, trip, account)
    answer = (
        _stream(service, call, trip, events) if call.stream else _whole(service, call, trip, events)
    )
    return await _until_gone(request, answer, request_id)


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
    service: Service, call: Call, trip: Trip, account: Account
) -> AsyncGenerator[Events]:
    """The call's events; what became of it is written down, however it ends."""
    try:
        async with aclosing(service.desk.events(call, trip)) as events_:
            async for events in events_:
                account.see(events)
                yield events
    finally:
        service.log(account.entry())


async def _whole(
    service: Service, call: Call, trip: Trip, stream: AsyncGenerator[Events]
) -> Response:
    events: list[Event] = []
    async with aclosing(stream):
        async for some in stream:
            events.extend(some)
    headers = _headers(trip, events)
    refusal = refusal_in(events)
    if refusal is not None:
        return refused(refusal, headers)
    return JsonResponse(as_json(whole_answer(call, _head(service, call), events)), headers=headers)


async def _stream(
    service: Service, call: Call, trip: Trip, stream: AsyncGenerator[Events]
) -> Response:
    """The first events decide the status: until they come, nothing is sent."""
    try:
        first = await anext(stream)
    except BaseException:
        await stream.aclose()
        raise
    refusal = refusal_in(first)
    if refusal is not None and begun_in(first) is None:
        await stream.aclose()
        return refused(refusal, _headers(trip, first))
    writer = StreamWriter(call, _head(service, call))
    headers = {**SSE_HEADERS, **_headers(trip, first)}
    return StreamingResponse(
        _chunks(writer, first, stream), media_type="text/event-stream", headers=headers
    )


async def _chunks(
    writer: StreamWriter, first: Events, stream: AsyncGenerator[Events]
) -> AsyncGenerator[bytes]:
    async with aclosing(stream):
        yield writer.write(first)
        async for events in stream:
            chunk = writer.write(events)
            if chunk:
                yield chunk


async def _until_gone(
    request: Request, answer: Coroutine[Any, Any, Response], request_id: str
) -> Response:
    """The answer; its work is cancelled where the client leaves before it is there."""
    working = asyncio.ensure_future(answer)
    leaving = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            return Response(status_code=499)  # nobody reads it
        response = working.result()
        response.headers["x-request-id"] = request_id
        return response
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


# -- small answers ----------------------------------------------------------------------------


async def _stats(release: Any) -> list[ReplicaStats]:
    """Empty where no replica answers."""
    try:
        told: list[ReplicaStats] = await asyncio.wait_for(release.stats(), timeout=10.0)
        return told
    except Exception:  # noqa: BLE001 - whatever it is, the page says that nobody answered
        return []


def _status(service: Service, stats: list[ReplicaStats]) -> dict[str, Any]:
    return {
        "plan": asdict(service.desk.plan),
        "model": service.model,
        "fingerprint": service.fingerprint,
        "num_calls": service.desk.num_calls,
        "replicas": [asdict(each) for each in stats],
    }


def _control(body: dict[str, Any]) -> Control:
    """`ValueError` names what is wrong."""
    unknown = sorted(body.keys() - {"mode", "max_draft_length"})
    if unknown:
        raise ValueError(f"{unknown[0]} is not known; give mode and max_draft_length")
    modes = [mode.value for mode in Mode]
    if body.get("mode", Mode.SPECULATIVE.value) not in modes:
        raise ValueError(f"mode must be one of {', '.join(modes)}")
    most = body.get("max_draft_length")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 0):
        raise ValueError("max_draft_length must be a whole number, at least 0, or null")
    return Control(mode=Mode(body.get("mode", Mode.SPECULATIVE.value)), max_draft_length=most)


def _head(service: Service, call: Call) -> Head:
    return Head(
        id=call.call_id,
        endpoint=call.endpoint,
        created=int(time.time()),
        model=call.model or service.model,
        fingerprint=service.fingerprint,
    )


def _headers(trip: Trip, events: Events | list[Event]) -> dict[str, str]:
    begun = begun_in(events)
    headers = {
        "x-outrider-release": trip.choice.release,
        "x-outrider-arm": trip.choice.arm.value,
    }
    if begun is not None:
        headers |= {"x-outrider-mode": begun.mode.value, "x-outrider-replica": begun.replica}
    return headers


def _request_id(request: Request) -> str:
    given = request.headers.get("x-request-id", "")
    return given if SANE_ID.match(given) else secrets.token_hex(16)


def _is_admitted(keys: Keys, request: Request) -> bool:
    return keys.admit(request.headers.get("authorization"))


def _unauthorized() -> Response:
    response = failed(
        401, "give a key of this server: Authorization: Bearer <key>", code="invalid_api_key"
    )
    response.headers["www-authenticate"] = "Bearer"
    return response


def _no_model(service: Service, name: str) -> Response:
    message = f"no model {name[:100]!r} here; there is {', '.join(sorted(service.names))}"
    refusal = Refusal(
        status=404, message=message, kind=INVALID, param="model", code="model_not_found"
    )
    return refused(refusal)


def _model(service: Service, name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": service.created, "owned_by": "outrider"}
