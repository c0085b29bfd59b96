"""/admin: what the gateway and the replicas do now, and how all of them are to decode."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from outrider.core import Fault, Mode
from outrider.serving.body import BodyError, read_body
from outrider.serving.http_errors import JsonResponse, failed, refused, unauthorized
from outrider.serving.messages import Control, ReplicaStats
from outrider.serving.replica_stats import stats_of
from outrider.serving.service import Service
from outrider.serving.sse import as_json

MODES = [mode.value for mode in Mode]


def add_admin(api: FastAPI, service: Service) -> None:
    @api.get("/admin/status")
    async def status(request: Request) -> Response:
        if not service.admin_keys.admit(request.headers.get("authorization")):
            return unauthorized("an admin key")
        told = await stats_of(service.desk.releases)
        stats = [each for some in told.values() for each in some]
        return JsonResponse(as_json(_status(service, stats)))

    @api.put("/admin/control")
    async def control(request: Request) -> Response:
        if not service.admin_keys.admit(request.headers.get("authorization")):
            return unauthorized("an admin key")
        try:
            control = read_control(await read_body(request, service.settings.max_request_bytes))
            for release in service.desk.releases.values():
                await release.control(control)
        except BodyError as error:
            return refused(error.refusal)
        except ValueError as error:
            return failed(400, str(error))
        except Fault as fault:
            return failed(503, str(fault))
        return JsonResponse(as_json(asdict(control)))


def read_control(body: Mapping[str, Any]) -> Control:
    """`ValueError` names what is wrong.

    `mode` must be said: who only caps the draft length may not switch speculation on unawares. A
    cap that is left out goes back to the release's own.
    """
    unknown = sorted(body.keys() - {"mode", "max_draft_length"})
    if unknown:
        raise ValueError(f"{unknown[0]} is not known; give mode and max_draft_length")
    mode, most = body.get("mode"), body.get("max_draft_length")
    if mode not in MODES:
        said = "mode is missing: give" if mode is None else "mode must be"
        raise ValueError(f"{said} one of {', '.join(MODES)}")
    if most is not None and (type(most) is not int or most < 0):
        raise ValueError("max_draft_length must be a whole number, at least 0, or null")
    return Control(mode=Mode(mode), max_draft_length=most)


def _status(service: Service, stats: list[ReplicaStats]) -> dict[str, Any]:
    return {
        "plan": asdict(service.desk.plan),
        "model": service.model,
        "fingerprint": service.fingerprint,
        "num_calls": service.desk.num_calls,
        "replicas": [asdict(each) for each in stats],
    }
