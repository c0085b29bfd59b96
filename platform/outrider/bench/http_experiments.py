"""The comparisons behind the figures of live serving. Each takes a bench and returns figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outrider.bench.added import added_first_token
from outrider.bench.figure import Figure
from outrider.bench.http_arms import AnsweringArm, BareArm
from outrider.bench.http_bench import HttpBench
from outrider.bench.http_cancel import cancelled_streams
from outrider.bench.http_chaos import killed_replicas
from outrider.bench.http_client import Wish
from outrider.bench.http_rollout import router, router_first_token, shadow
from outrider.bench.ratio import ratio_figure
from outrider.bench.workload import Prompt, mixed, one_by_one, repeated

Experiment = Callable[[HttpBench], list[Figure]]

_ADDED_MS = 15.0
_THROUGHPUT = 0.90
_THROUGHPUT_IN_FLIGHT = 8
_GOODPUT = {1: 1.3, 4: 1.1, 16: 1.0, 64: 0.97}  # in flight -> speculative / plain, at least
_NUM_BACKLOGS = 3  # times that a backlog of all prompts is answered: pairs of such a comparison


def first_token(bench: HttpBench) -> list[Figure]:
    """Seconds to the first token through HTTP and from the bare engine, prompt by prompt."""
    with bench.connected() as http, bench.bare(http.server, 1) as bare:
        stream = http.arm("http", 1, Wish(max_tokens=bench.max_tokens))
        bench.compare("first token", [bare, stream], one_by_one(bench.prompts))
    return [
        added_first_token(
            stream.answers,
            bare.answers,
            name="http_added_first_token",
            what="HTTP / bare engine: added time to first token, 1 in flight, p50",
            most_ms=_ADDED_MS,
            conditions=bench.conditions,
            details=_details([bare, stream]),
        )
    ]


def throughput(bench: HttpBench) -> list[Figure]:
    """Tokens per second through HTTP against the bare engine, streamed and whole."""
    in_flight = _THROUGHPUT_IN_FLIGHT
    with bench.connected() as http, bench.bare(http.server, in_flight) as bare:
        arms: list[AnsweringArm] = [
            bare,
            http.arm("http streamed", in_flight, Wish(max_tokens=bench.max_tokens)),
            http.arm("http whole", in_flight, Wish(max_tokens=bench.max_tokens, stream=False)),
        ]
        pairing = bench.compare(
            f"throughput, {in_flight} in flight", arms, [mixed(bench.prompts)] * _NUM_BACKLOGS
        )
    return [
        ratio_figure(
            pairing,
            (arm.name, "bare"),
            conditions=bench.conditions,
            details=_details(arms),
            name=f"http_throughput_{arm.name.rpartition(' ')[2]}",
            what=f"{arm.name} / bare engine, tokens per second, {in_flight} in flight",
            bound=_THROUGHPUT,
            aim=_THROUGHPUT,
        )
        for arm in arms[1:]
    ]


def goodput(bench: HttpBench) -> list[Figure]:
    """One server; each request says whether it may be speculated on."""
    figures = []
    with bench.connected() as http:
        for in_flight, bound in _GOODPUT.items():
            arms: list[AnsweringArm] = [
                http.arm("plain", in_flight, Wish(max_tokens=bench.max_tokens, speculate=False)),
                http.arm("speculative", in_flight, Wish(max_tokens=bench.max_tokens)),
            ]
            batches = _batches(bench.prompts, in_flight)
            pairing = bench.compare(f"goodput, {in_flight} in flight", arms, batches)
            figures.append(
                ratio_figure(
                    pairing,
                    ("speculative", "plain"),
                    conditions=bench.conditions,
                    details=_details(arms),
                    name=f"http_goodput_{in_flight}",
                    what=f"speculative / plain through HTTP, {in_flight} in flight, all kinds",
                    bound=bound,
                    aim=bound,
                )
            )
    return figures


def _batches(prompts: Sequence[Prompt], in_flight: int) -> list[Sequence[Prompt]]:
    """Backlogs of at least twice as many requests as are in flight."""
    if in_flight == 1:
        return one_by_one(prompts)
    times = max(1, -(-2 * in_flight // len(prompts)))
    return [mixed(repeated(prompts, times))] * _NUM_BACKLOGS


def _details(arms: Sequence[AnsweringArm]) -> dict[str, object]:
    details: dict[str, object] = {arm.name: arm.summary.to_dict() for arm in arms}
    for arm in arms:
        if isinstance(arm, BareArm):
            details["server_cores_while_bare"] = arm.others_share
    return details


HTTP_EXPERIMENTS: dict[str, Experiment] = {
    "first_token": first_token,
    "throughput": throughput,
    "goodput": goodput,
    "cancelled_streams": cancelled_streams,
    "killed_replicas": killed_replicas,
    "router": router,
    "router_first_token": router_first_token,
    "shadow": shadow,
}
