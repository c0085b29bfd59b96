"""/admin as a rollout uses it: the plan, releases that come and go, evidence, and questions that
only one release answers.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from outrider.config.typed import typed
from outrider.core import UserError
from outrider.openai.body import read_call
from outrider.openai.call import Call, Endpoint
from outrider.serving.body import read_body
from outrider.serving.desk import attempt
from outrider.serving.fleet import Order
from outrider.serving.http_errors import JsonResponse, refused
from outrider.serving.leaving import until_gone
from outrider.serving.messages import BusyError, Event, ReplicaLostError
from outrider.serving.refusals import BUSY, LOST
from outrider.serving.routes.generation import head_of
from outrider.serving.routes.guarded import guarded
from outrider.serving.sample import Comparison, Cursor, Reading, Sample
from outrider.serving.service import Service
from outrider.serving.split import Plan
from outrider.serving.sse import as_json, refusal_in, whole_answer

SHARES = ("weight", "shadow_share")
COUNTS = ("shadow_in_flight", "most_per_minute", "revision", "near_tie")


def add_rollout(api: FastAPI, service: Service) -> None:
    _add_plan(api, service)
    _add_releases(api, service)
    _add_evidence(api, service)


def _add_plan(api: FastAPI, service: Service) -> None:
    @api.put("/admin/plan")
    async def put_plan(request: Request) -> Response:
        async def work() -> Mapping[str, Any]:
            return as_dict(await service.fleet.put_plan(read_plan(await _body(service, request))))

        return await guarded(service, request, work)


def _add_releases(api: FastAPI, service: Service) -> None:
    @api.put("/admin/releases/{name}")
    async def deploy(request: Request, name: str) -> Response:
        async def work() -> Mapping[str, Any]:
            await service.fleet.deploy(name, read_order(await _body(service, request)))
            return {"name": name, "fingerprint": service.fleet.fingerprint(name)}

        return await guarded(service, request, work, 202)

    @api.delete("/admin/releases/{name}")
    async def remove(request: Request, name: str) -> Response:
        async def work() -> Mapping[str, Any]:
            await service.fleet.remove(name)
            return {"name": name}

        return await guarded(service, request, work, 202)


def _add_evidence(api: FastAPI, service: Service) -> None:
    @api.get("/admin/samples")
    async def samples(request: Request, epoch: str = "", after: str = "0") -> Response:
        async def work() -> Mapping[str, Any]:
            if not after.isdecimal():
                raise UserError(f"after: a whole number, at least 0, got {after[:40]!r}")
            cursor = Cursor(epoch=epoch, number=int(after))
            return told_of(service.desk.book.read(cursor))

        return await guarded(service, request, work)

    @api.post("/admin/ask/{release}")
    async def ask(request: Request, release: str) -> Response:
        async def work() -> Response:
            call = await _call(service, request)
            service.fleet.card(release)
            return await until_gone(request, _answer(service, call, release))

        return await guarded(service, request, work)


def read_plan(body: Mapping[str, Any]) -> Plan:
    """UserError names the field that is wrong."""
    plan = typed(Plan, body)
    for name in SHARES:
        if not 0.0 <= getattr(plan, name) <= 1.0:
            raise UserError(f"{name}: from 0 to 1, got {getattr(plan, name):g}")
    for name in COUNTS:
        if getattr(plan, name) < 0:
            raise UserError(f"{name}: at least 0, got {getattr(plan, name):g}")
    if plan.shadow_deadline_s <= 0:
        raise UserError(f"shadow_deadline_s: above 0, got {plan.shadow_deadline_s:g}")
    if plan.candidate == plan.stable:
        raise UserError(f"candidate: another release than stable, got {plan.candidate!r} twice")
    return plan


def read_order(body: Mapping[str, Any]) -> Order:
    """UserError names the field that is wrong."""
    settings, cpus, fingerprint = (body.get(key) for key in ("settings", "cpus", "fingerprint"))
    unknown = sorted(body.keys() - {"settings", "cpus", "fingerprint"})
    if unknown:
        raise UserError(f"{unknown[0]}: no such field; give settings, cpus and fingerprint")
    if not isinstance(settings, dict):
        raise UserError("settings: an object as of jobs/serve.py --cfg job")
    if type(cpus) is not int or cpus < 1:
        raise UserError(f"cpus: a whole number, at least 1, got {str(cpus)[:40]!r}")
    if not isinstance(fingerprint, str) or not fingerprint:
        raise UserError("fingerprint: a text that is not empty")
    return Order(fingerprint=fingerprint, settings=settings, cpus=cpus)


def told_of(reading: Reading) -> dict[str, Any]:
    return {
        **as_dict(reading),
        "cursor": as_dict(reading.cursor),
        "samples": [as_dict(each) for each in reading.samples],
        "comparisons": [as_dict(each) for each in reading.comparisons],
    }


def as_dict(value: Plan | Reading | Cursor | Sample | Comparison) -> dict[str, Any]:
    """One level: `asdict` copies every value, and there are thousands."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


async def _body(service: Service, request: Request) -> dict[str, Any]:
    return await read_body(request, service.settings.max_request_bytes)


async def _call(service: Service, request: Request) -> Call:
    call = read_call(
        await _body(service, request),
        Endpoint.CHAT,
        call_id=f"ask-{secrets.token_hex(12)}",
        defaults=service.defaults,
        max_choices=service.settings.max_choices,
    )
    return replace(call, stream=False)


async def _answer(service: Service, call: Call, release: str) -> Response:
    """Nobody counts it: not the book, not /metrics, not the request log."""
    events: list[Event] = []
    try:
        async for some in attempt(service.desk.releases[release], call):
            events.extend(some)
    except BusyError:
        return refused(BUSY)
    except ReplicaLostError:
        return refused(LOST)
    refusal = refusal_in(events)
    if refusal is not None:
        return refused(refusal)
    return JsonResponse(as_json(whole_answer(call, head_of(service, call, release), events)))
