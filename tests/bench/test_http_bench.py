"""The experiments over HTTP, from the start of a server to the figures, on toys."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console
from toy_server import TITLE

from outrider.bench.http_bench import HttpBench
from outrider.bench.http_chaos import Fates, killed_replicas
from outrider.bench.http_experiments import HTTP_EXPERIMENTS
from outrider.bench.http_processes import cpu_s, descendants, replicas
from outrider.bench.http_server import Server, Serving, started
from outrider.bench.load import Answer, ErrorKind
from outrider.bench.run import run
from outrider.bench.workload import Prompt
from outrider.config.load import load
from outrider.config.schema import (
    BenchJob,
    DrafterKind,
    DraftSettings,
    EngineSettings,
    ModelSettings,
    ServeJob,
)
from outrider.core import Fault, SystemClock, UserError
from outrider.engine.runner import Runner
from outrider.testing import ScriptedModel, toy_engine

TOY = Path(__file__).with_name("toy_server.py")
PROMPTS = [
    Prompt(f"{kind}{i}", kind, (1, 2), ({"role": "user", "content": "hello"},))
    for kind in ("chat", "edit")
    for i in range(2)
]


def toy_runner() -> Runner:
    model = ScriptedModel(lambda prefix: [0.0, 1.0, 0.0, 0.0], vocab_size=4)
    return Runner(toy_engine(model, clock=SystemClock()))


@contextmanager
def toy_server(
    folder: Path, told: list[str], num_replicas: int, *, words: tuple[str, ...] = ()
) -> Iterator[Server]:
    command = [sys.executable, str(TOY), *words]
    with started(command, log=folder / "server.log", tell=told.append) as server:
        yield server


def bench(folder: Path, told: list[str], *words: str) -> HttpBench:
    return HttpBench(
        serve=partial(toy_server, folder, told, words=words),
        open_runner=toy_runner,
        prompts=PROMPTS,
        warmup=PROMPTS[:1],
        max_tokens=6,
        max_rows=4,
        num_repeats=1,
        num_streams=20,
        minutes=0.03,
        timeout_s=30.0,
        clock=SystemClock(),
        tell=told.append,
        conditions="toy server",
    )


def test_every_experiment_gives_its_figures_and_the_file_holds_them(tmp_path: Path) -> None:
    told: list[str] = []
    out, screen = tmp_path / "figures-http.json", io.StringIO()
    console = Console(file=screen, width=160)
    figures = run(bench(tmp_path, told), HTTP_EXPERIMENTS, (), out, console)
    by_name = {figure.name: figure for figure in figures}
    assert [row["name"] for row in json.loads(out.read_text())] == list(by_name) != []
    assert len(by_name) == 1 + 2 + 4 + 4 + 2 + 2 + 1
    for name in ("http_killed_lost", "http_cancelled_rows", "http_cancelled_blocks"):
        assert by_name[name].value == 0, name
    load = by_name["http_goodput_16"].details["plain"]
    assert load["num_requests"] == load["num_complete"] == 3 * 8 * len(PROMPTS)
    assert load["errors"] == {}
    assert load["first_token_s"]["p50"] > 0
    assert "bare" in by_name["http_added_first_token"].details
    assert any("killed at" in line for line in told)
    assert by_name["http_router_throughput"].details["routed"]["num_complete"] > 0
    assert "0 were not mirrored" in by_name["http_shadow_throughput"].conditions
    assert "added time to first token" in screen.getvalue()
    assert "http_goodput_16: plain" in screen.getvalue(), "latencies have a table of their own"


def test_a_request_that_vanishes_with_its_replica_is_counted_as_lost(tmp_path: Path) -> None:
    told: list[str] = []
    figures = {f.name: f for f in killed_replicas(bench(tmp_path, told, "loses"))}
    assert figures["http_killed_lost"].value > 0
    assert not figures["http_killed_lost"].is_reached
    assert any(line.endswith("cut (status 200, begun)") for line in told)


def end(error: ErrorKind | None, arrivals_s: tuple[float, ...], *, streamed: bool = True) -> Answer:
    return Answer(
        prompt=PROMPTS[0], streamed=streamed, total_s=1.0, arrivals_s=arrivals_s, error=error
    )


def test_an_error_is_fair_only_in_a_stream_that_had_begun() -> None:
    fates = Fates.of(
        [
            end(None, (0.1,)),
            end(ErrorKind.EVENT, (0.1,)),
            end(ErrorKind.EVENT, ()),
            end(ErrorKind.REFUSED, (), streamed=False),
            end(ErrorKind.CUT, (0.1,)),
            end(ErrorKind.TIMEOUT, ()),
        ]
    )
    assert fates == Fates(num_full=1, num_cut_clearly=1, num_failed_early=2, num_lost=2)


def test_a_server_that_was_not_started_here_is_never_killed(tmp_path: Path) -> None:
    ours = bench(tmp_path, [])

    @contextmanager
    def theirs(num_replicas: int) -> Iterator[Server]:
        with ours.serve(num_replicas) as server:
            yield Server(server.url)

    with pytest.raises(UserError, match=r"bench\.url: replicas are only killed"):
        killed_replicas(replace(ours, serve=theirs))


def test_the_replicas_of_a_server_are_found_and_gone_when_it_is_stopped(tmp_path: Path) -> None:
    with toy_server(tmp_path, [], 2) as server:
        family = descendants(server.pid)
        assert [process.title[: len(TITLE)] for process in family[1:]] == [TITLE, TITLE]
        pids = replicas(server.pid)
        assert pids == sorted(process.pid for process in family[1:])
        assert cpu_s(server.pid) > 0
        assert os.getpid() not in [process.pid for process in family]
    assert descendants(server.pid) == []


def test_a_server_that_ends_at_once_is_told_with_its_last_words(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit('port taken')"]
    with (
        pytest.raises(Fault, match="ended with status 1: port taken"),
        started(command, log=tmp_path / "server.log", tell=lambda line: None),
    ):
        pass


def test_a_url_without_a_server_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UserError, match=r"bench\.url: no server is ready at http://127"),
        serving(tmp_path, url="http://127.0.0.1:9")(1),
    ):
        pass


def serving(folder: Path, *, url: str = "", model: ModelSettings | None = None) -> Serving:
    return Serving(
        TOY,
        model or ModelSettings(source="wheel:a==1#b c.gguf", num_threads=2),
        DraftSettings(drafter=DrafterKind.NGRAM),
        EngineSettings(prefix_caching=False, max_rows=7),
        url=url,
        log_dir=folder,
        tell=lambda line: None,
    )


def test_the_server_gets_exactly_the_settings_of_the_bare_engine(tmp_path: Path) -> None:
    ours = serving(tmp_path)
    settings = load(ServeJob, "serve", ours.command(1)[2:])
    assert (settings.model, settings.draft, settings.engine) == (
        ours.model,
        ours.draft,
        ours.engine,
    )
    assert settings.serving.cpus_per_replica == 2
    two = load(ServeJob, "serve", ours.command(2)[2:])
    assert two.serving.num_replicas == 2
    assert two.model.num_threads == two.serving.cpus_per_replica == 1


def test_the_target_is_named_on_the_command_line() -> None:
    settings = load(BenchJob, "bench", ["target=http", "minutes=1", "only=[goodput]"])
    assert (settings.bench.target.value, settings.bench.minutes) == ("http", 1.0)
    with pytest.raises(UserError, match=r"bench\.minutes: must be above 0"):
        load(BenchJob, "bench", ["minutes=0"])
