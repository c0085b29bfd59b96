"""The routes of the console: the page, its files, its data, and what an operator asks there."""

from __future__ import annotations

import asyncio
import math
from typing import Any, Protocol

from fastapi import FastAPI, Request
from starlette.responses import RedirectResponse, Response

from outrider.console.assets import INDEX, Asset, Assets
from outrider.console.order import Order, read_order, stranger
from outrider.console.plain import plain
from outrider.console.snapshot import Snapshot
from outrider.core import UserError
from outrider.serving.body import read_body
from outrider.serving.http_errors import JsonResponse, failed
from outrider.serving.routes.guarded import guarded
from outrider.serving.service import Service
from outrider.serving.sse import as_json

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
SAFE = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
READ = ["GET", "HEAD"]


class Told(Protocol):
    """What the page asks."""

    def snapshot(self, after_s: float) -> Snapshot:
        """At once; points that ended after that time only."""
        ...

    async def order(self, order: Order) -> str:
        """A sentence that says what became of it. UserError refuses, Fault where it can't be."""
        ...


def add_page(api: FastAPI, service: Service, told: Told, assets: Assets) -> None:
    """No key is asked for the page itself: it says nothing of the service."""
    _add_data(api, service, told)
    _add_orders(api, service, told)

    @api.api_route("/console", methods=READ)
    async def index(request: Request) -> Response:
        return _file(request, assets, INDEX)

    @api.api_route("/console/{path:path}", methods=READ)
    async def file(request: Request, path: str) -> Response:
        return _file(request, assets, path) if path else RedirectResponse("../console", 307)


def _add_data(api: FastAPI, service: Service, told: Told) -> None:
    @api.get("/console/data")
    async def data(request: Request, after: str = "0") -> Response:
        async def work() -> Response:
            snapshot = told.snapshot(_time(after))
            body = await asyncio.to_thread(_encoded, snapshot)  # of hundreds of points at first
            return JsonResponse(body, headers={"cache-control": "no-store", **SAFE})

        return await guarded(service, request, work)


def _add_orders(api: FastAPI, service: Service, told: Told) -> None:
    @api.post("/console/orders")
    async def orders(request: Request) -> Response:
        async def work() -> Any:
            why = stranger(request.headers, asks_no_key=service.admin_keys.is_open)
            if why:
                return failed(403, f"this does not come from the console's own page: {why}")
            if not _says_json(request):
                return failed(400, "content-type must be application/json")
            body = await read_body(request, service.settings.max_request_bytes)
            return {"said": await told.order(read_order(body))}

        return await guarded(service, request, work)


def _file(request: Request, assets: Assets, path: str) -> Response:
    """Whatever `path` says, it names one of the files that were read, or none."""
    if not assets:
        return failed(404, "the console's files are not here: dashboards/console beside conf")
    if path not in assets:
        return failed(404, f"{request.url.path[:200]}: no such file of the console")
    asset = assets[path]
    headers = {"etag": asset.tag, "cache-control": "no-cache", **SAFE}
    if _has(request, asset):
        return Response(status_code=304, headers=headers)
    return Response(asset.body, media_type=asset.kind, headers=headers)


def _has(request: Request, asset: Asset) -> bool:
    known = request.headers.get("if-none-match", "").split(",")
    return any(tag.strip().removeprefix("W/") in ("*", asset.tag) for tag in known)


def _says_json(request: Request) -> bool:
    """Silence won't do here."""
    kind = request.headers.get("content-type", "").partition(";")[0]
    return kind.strip().lower() == "application/json"


def _time(text: str) -> float:
    try:
        time = float(text)
    except ValueError:
        time = math.nan
    if not math.isfinite(time):
        raise UserError(f"after: seconds since 1970, got {text[:40]!r}")
    return time


def _encoded(snapshot: Snapshot) -> bytes:
    return as_json(plain(snapshot))
