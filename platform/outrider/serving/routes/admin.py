"""/admin: what the gateway and the replicas do now, and how all of them are to decode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from outrider.core import Mode
from outrider.serving.body import read_body
from outrider.serving.messages import Control, Release
from outrider.serving.replica_stats import stats_of
from outrider.serving.routes.guarded import guarded
from outrider.serving.service import Service

MODES = [mode.value for mode in Mode]


def add_admin(api: FastAPI, service: Service) -> None:
    @api.get("/admin/status")
    async def status(request: Request) -> Response:
        return await guarded(service, request, lambda: _status(service))

    @api.put("/admin/control")
    async def control(request: Request) -> Response:
        async def work() -> dict[str, Any]:
            body = await read_body(request, service.settings.max_request_bytes)
            name = body.pop("release", None)
            control = read_control(body)
            for release in _named(service, name):
                await service.watch.control(release, control)
            return asdict(control)

        return await guarded(service, request, work)


def read_control(body: Mapping[str, Any]) -> Control:
    """`ValueError` names what is wrong.

    `mode` must be said: who only caps the draft length may not switch speculation on unawares. A
    cap that is left out goes back to the release's own.
    """
    unknown = sorted(body.keys() - {"mode", "max_draft_length"})
    if unknown:
        raise ValueError(f"{unknown[0]} is not known; give mode, max_draft_length and release")
    mode, most = body.get("mode"), body.get("max_draft_length")
    if mode not in MODES:
        said = "mode is missing: give" if mode is None else "mode must be"
        raise ValueError(f"{said} one of {', '.join(MODES)}")
    if most is not None and (type(most) is not int or most < 0):
        raise ValueError("max_draft_length must be a whole number, at least 0, or null")
    return Control(mode=Mode(mode), max_draft_length=most)


def _named(service: Service, name: object) -> list[Release]:
    """Every release where none is named."""
    if name is None:
        return list(service.desk.releases.values())
    service.fleet.card(str(name))
    return [service.desk.releases[str(name)]]


async def _status(service: Service) -> dict[str, Any]:
    conditions = await service.fleet.conditions()
    told = await stats_of(service.fleet.running(conditions))
    guards = service.watch.told()
    return {
        "plan": asdict(service.desk.plan),
        "model": service.model,
        "fingerprint": service.fleet.fingerprint(service.desk.plan.stable),
        "num_calls": service.desk.num_calls,
        "guard": guards,
        "shadows_in_flight": service.fleet.shadows.num_in_flight,
        "releases": {
            name: {
                "fingerprint": service.fleet.fingerprint(name),
                "health": condition.health,
                "message": condition.message,
                "num_replicas": len(told.get(name, ())),
                "fallen": guards.get(name, {}).get("lasting", ""),
            }
            for name, condition in conditions.items()
        },
        "replicas": [asdict(each) for some in told.values() for each in some],
    }
