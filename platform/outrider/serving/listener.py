"""The API on a socket of the gateway's own process: one hop less than through Serve's proxy."""

from __future__ import annotations

import asyncio
import errno
import socket

import uvicorn
from starlette.types import ASGIApp

from outrider.config.schema import ServingSettings
from outrider.core import Fault, UserError


def bound(settings: ServingSettings) -> socket.socket:
    """A socket that is bound but does not listen yet. UserError where that can't be."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((settings.host, settings.port))
    except OSError as error:
        listener.close()
        raise UserError(_why(settings, error)) from error
    return listener


def _why(settings: ServingSettings, error: OSError) -> str:
    host, port = settings.host, settings.port
    if error.errno == errno.EADDRINUSE:
        return f"serving.port: {port} on {host} is taken: give another serving.port=..."
    return f"serving.host: can't listen on {host} port {port}: {error.strerror or error}"


class Listener:
    """Answers from the moment it is made, on the asyncio loop that makes it."""

    def __init__(self, app: ASGIApp, settings: ServingSettings) -> None:
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, ws="none"
        )
        self._server = uvicorn.Server(config)
        self._task = asyncio.get_running_loop().create_task(
            self._server.serve(sockets=[bound(settings)])
        )

    def check(self) -> None:
        """Raise `Fault` where it answers no more."""
        if self._task.done():
            raise Fault("the gateway listens no more")

    async def close(self) -> None:
        """Take no more connections; return when the requests under way have ended."""
        self._server.should_exit = True
        await self._task
