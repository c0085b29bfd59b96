"""A small OpenAI server, started as jobs/serve.py is: `python toy_server.py [loses] port=...`.

What a prompt's text says decides how its request ends. Its two replicas are idle processes under
the titles that Ray gives; one that dies is replaced. With `loses` every death cuts a connection.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

NUM_TOKENS = 5
TITLE = "ray::ServeReplica:release-main:Replica"
OPENAI_ERROR = {"error": {"message": "no", "type": "server_error", "param": None, "code": None}}


class Toy:
    """Counts what it holds, as an engine does."""

    def __init__(self, *, loses: bool = False) -> None:
        self.loses = loses
        self.num_rows = self.num_rounds = self.num_deaths = 0
        self.seen: list[Mapping[str, object]] = []  # bodies
        self.plans: list[Mapping[str, object]] = []
        self.releases: dict[str, Mapping[str, str]] = {}

    def app(self, lifespan: object = None) -> Starlette:
        routes = [
            Route("/v1/models", _models),
            Route("/readyz", lambda request: PlainTextResponse("ready")),
            Route("/admin/status", self.status),
            Route("/admin/plan", self.plan, methods=["PUT"]),
            Route("/admin/releases/{name}", self.deploy, methods=["PUT"]),
            Route("/admin/samples", lambda request: JSONResponse({"num_shadows_dropped": 3})),
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
        ]
        return Starlette(routes=routes, lifespan=lifespan)  # type: ignore[arg-type]

    async def status(self, request: Request) -> Response:
        rows = [self.num_rows, 0]
        names = [f"r{self.num_deaths}", f"r{self.num_deaths + 1}"]
        replicas = [
            {
                "replica": name,
                "num_running": num_rows,
                "num_waiting": 0,
                "num_blocks": 100,
                "num_free_blocks": 100 - num_rows,
                "num_rounds": self.num_rounds,
            }
            for name, num_rows in zip(names, rows, strict=True)
        ]
        told = {
            "model": "toy",
            "replicas": replicas,
            "plan": {"stable": "main", "revision": len(self.plans)},
            "releases": self.releases,
        }
        return JSONResponse(told)

    async def plan(self, request: Request) -> Response:
        plan = await request.json()
        if plan["revision"] <= len(self.plans):
            return JSONResponse(OPENAI_ERROR, 400)
        self.plans.append(plan)
        return JSONResponse(plan)

    async def deploy(self, request: Request) -> Response:
        self.releases[request.path_params["name"]] = {"health": "ready", "message": ""}
        return JSONResponse({}, 202)

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        self.seen.append(body)
        said = body["messages"][0]["content"]
        if said == "refuse":
            return JSONResponse(OPENAI_ERROR, 429)
        if said == "unclear":
            return PlainTextResponse("Internal Server Error", 500)
        if body.get("stream"):
            return StreamingResponse(self._words(body, said), media_type="text/event-stream")
        await asyncio.sleep(0.01)
        choice = {"message": {"content": "word"}, "finish_reason": "stop"}
        return JSONResponse({"choices": [choice], "usage": {"completion_tokens": NUM_TOKENS}})

    async def _words(self, body: Mapping[str, object], said: str) -> AsyncIterator[str]:
        self.num_rows += 1
        deaths = self.num_deaths
        length = 10_000 if body.get("ignore_eos") else NUM_TOKENS
        try:
            yield _event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
            for _ in range(length):
                self.num_rounds += 1
                yield _event({"choices": [{"delta": {"content": "word "}, "finish_reason": None}]})
                await asyncio.sleep(0.01)
                if said == "cut" or (self.loses and deaths < self.num_deaths):
                    return
                if said == "event":
                    yield _event(OPENAI_ERROR)
                    return
            yield _event({"choices": [{"delta": {}, "finish_reason": "stop"}]})
            yield _event({"choices": [], "usage": {"completion_tokens": NUM_TOKENS}})
            yield "data: [DONE]\n\n"
        finally:
            self.num_rows -= 1


async def _models(request: Request) -> Response:
    return JSONResponse({"data": [{"id": "toy"}]})


def _event(part: object) -> str:
    return f"data: {json.dumps(part)}\n\n"


def _replica() -> subprocess.Popen[bytes]:
    idle = ["-c", "import time; time.sleep(120)"]
    return subprocess.Popen([TITLE, *idle], executable=sys.executable)


async def _replace_dead(toy: Toy, replicas: list[subprocess.Popen[bytes]]) -> None:
    while True:
        for index, replica in enumerate(replicas):
            if replica.poll() is not None:
                toy.num_deaths += 1
                replicas[index] = _replica()
        await asyncio.sleep(0.02)


def main(words: list[str]) -> None:
    toy = Toy(loses="loses" in words)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        replicas = [_replica(), _replica()]
        watch = asyncio.create_task(_replace_dead(toy, replicas))
        yield
        watch.cancel()
        for replica in replicas:
            replica.kill()
            replica.wait()

    port = next(int(word.rpartition("=")[2]) for word in words if word.startswith("serving.port="))
    uvicorn.run(toy.app(lifespan), host="127.0.0.1", port=port, log_level="warning")


if __name__ == "__main__":
    main(sys.argv[1:])
