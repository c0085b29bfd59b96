"""What a rollout does over HTTP: split, shadow, evidence, releases that come and go."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from http_site import Site

from outrider.serving.keys import Keys
from outrider.testing import AlphabetEngine

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]
ORDER = {"settings": {}, "cpus": 1, "fingerprint": "fp2"}
BESIDE = {"stable": "main", "candidate": "next"}


class Trial:
    """A site where `next`, which stops at y, and `twin`, which is as main, may be tried."""

    def __init__(self, **fields: Any) -> None:
        engines = {"next": AlphabetEngine(last="y"), "twin": AlphabetEngine()}
        self.site = Site(engines=engines, **fields)
        self._revision = 0

    def put(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return httpx.put(f"{self.site.url}/admin/{path}", json=body, timeout=30)

    def plan(self, **fields: Any) -> dict[str, Any]:
        self._revision += 1
        answer = self.put("plan", {**BESIDE, "revision": self._revision, **fields})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def deploy(self, *names: str) -> None:
        for name in names:
            assert self.put(f"releases/{name}", ORDER).status_code == 202

    def ask(self, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
        asked = {"messages": HELLO, **body}
        return httpx.post(self.site.url + CHAT, json=asked, headers=headers, timeout=30)

    def release(self, headers: dict[str, str] | None = None, **body: Any) -> str:
        return str(self.ask(headers, **body).headers["x-outrider-release"])

    def status(self) -> dict[str, Any]:
        return dict(httpx.get(self.site.url + "/admin/status", timeout=30).json())

    def samples(self, **query: Any) -> dict[str, Any]:
        return dict(httpx.get(self.site.url + "/admin/samples", params=query, timeout=30).json())

    def wait(self, what: str, num: int) -> list[dict[str, Any]]:
        until = time.monotonic() + 10
        while len(told := self.samples()[what]) < num:
            assert time.monotonic() < until, told
            time.sleep(0.01)
        return list(told)


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    made = Trial()
    made.deploy("next", "twin")
    with made.site:
        yield made


def test_a_key_stays_in_its_arm_while_the_weight_grows(trial: Trial) -> None:
    """P18"""
    sessions = [f"s{i}" for i in range(40)]
    in_candidate: set[str] = set()
    for weight in (0.05, 0.25, 0.5, 1.0):
        trial.plan(weight=weight, salt="grow")
        now = {s for s in sessions if trial.release({"x-session-id": s}) == "next"}
        assert in_candidate <= now
        in_candidate = now
    assert in_candidate == set(sessions)


def test_the_session_is_the_key_then_the_user_then_the_prompt(trial: Trial) -> None:
    trial.plan(weight=0.5, salt="keys")
    users = [f"u{i}" for i in range(20)]
    by_user = {user: trial.release(user=user) for user in users}
    assert set(by_user.values()) == {"main", "next"}
    assert all(trial.release({"x-session-id": user}) == by_user[user] for user in users)
    one = {trial.release({"x-session-id": "same"}, user=user) for user in users}
    assert len(one) == 1
    prompts = [[{"role": "user", "content": str(i)}] for i in range(20)]
    by_prompt = [trial.release(messages=prompt) for prompt in prompts]
    assert set(by_prompt) == {"main", "next"}
    assert [trial.release(messages=prompt) for prompt in prompts] == by_prompt


def test_an_answer_tells_the_release_it_came_from_in_headers_and_fingerprint(trial: Trial) -> None:
    trial.plan(weight=0.0, salt="told")
    forced = {"x-outrider-arm": "candidate"}
    for stream in (False, True):
        answer = trial.ask(forced, stream=stream)
        assert answer.headers["x-outrider-arm"] == "candidate"
        assert answer.headers["x-outrider-release"] == "next"
        assert '"system_fingerprint":"fp2"' in answer.text
    assert '"system_fingerprint":"fp"' in trial.ask().text


def test_the_arm_can_be_asked_for_by_header_and_by_the_releases_name(trial: Trial) -> None:
    trial.plan(weight=1.0, salt="forced")
    assert trial.release({"x-outrider-arm": "stable"}) == "main"
    assert trial.release(model="main") == "main"
    assert trial.release(model="next") == trial.release(model="alphabet") == "next"
    refused = trial.ask({"x-outrider-arm": "both"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "x-outrider-arm")
    models = httpx.get(trial.site.url + "/v1/models", timeout=30).json()["data"]
    assert [each["id"] for each in models] == ["alphabet", "main", "next", "twin"]
    samples = trial.wait("samples", 1)  # forced ones are none
    assert [sample["arm"] for sample in samples] == ["candidate"]


def test_beyond_its_limit_the_candidates_calls_are_answered_by_stable(trial: Trial) -> None:
    trial.plan(weight=1.0, salt="limit", most_per_minute=3)
    arms = Counter(trial.release() for _ in range(3))
    arms += Counter(trial.release({"x-outrider-arm": "candidate"}) for _ in range(2))
    assert arms == {"next": 3, "main": 2}
    told = trial.samples()
    assert told["num_over_limit"] == 2
    assert [sample["arm"] for sample in told["samples"]] == ["candidate"] * 3


def test_evidence_is_read_once_by_cursor_and_each_rollout_has_its_own(trial: Trial) -> None:
    trial.plan(weight=1.0, salt="first")
    trial.ask(kind="code", stream=True)
    trial.ask(messages="wrong")
    told = trial.samples()
    (sample,) = told["samples"]
    assert (sample["arm"], sample["kind"], sample["error"]) == ("candidate", "code", "")
    assert (sample["num_tokens"], sample["finish_reason"]) == (11, "stop")
    assert sample["num_rounds"] > 0
    assert 0 < sample["first_token_s"] <= sample["total_s"]
    cursor = told["cursor"]
    assert trial.samples(epoch=cursor["epoch"], after=cursor["number"])["samples"] == []
    trial.plan(weight=0.5, salt="first")
    assert trial.samples()["cursor"]["epoch"] == cursor["epoch"]
    trial.plan(weight=1.0, salt="second")
    again = trial.samples(epoch=cursor["epoch"], after=cursor["number"])
    assert again["cursor"]["epoch"] != cursor["epoch"]
    assert again["samples"] == []


def test_a_shadow_is_compared_and_no_user_sees_or_counts_it(trial: Trial) -> None:
    trial.plan(shadow_share=1.0, salt="shadow")
    before = len(trial.site.log)
    assert trial.ask().json()["choices"][0]["message"]["content"].endswith("xyz")
    assert trial.release(stream=True) == "main"
    comparisons = trial.wait("comparisons", 2)
    assert {each["likeness"] for each in comparisons} == {"mismatch"}
    assert {each["position"] for each in comparisons} == {10}  # z, or the end
    assert {round(each["margin"], 3) for each in comparisons} == {2.0}
    samples = trial.samples()["samples"]
    shadows = [each for each in samples if each["is_shadow"]]
    assert [each["arm"] for each in shadows] == ["candidate"] * 2
    assert len(samples) == 4
    assert [entry.release for entry in trial.site.log[before:]] == ["main", "main"]
    trial.plan(shadow_share=1.0, salt="near", near_tie=2.5)
    trial.ask()  # z is not among the likeliest five: it may be as near as that
    assert [each["likeness"] for each in trial.wait("comparisons", 1)] == ["uncompared"]


def test_a_shadow_of_a_drawn_call_has_its_seed_and_so_its_tokens(trial: Trial) -> None:
    trial.plan(candidate="twin", shadow_share=1.0, salt="drawn")
    for _ in range(5):
        trial.ask(temperature=1.5, max_tokens=12, ignore_eos=True)
    assert {each["likeness"] for each in trial.wait("comparisons", 5)} == {"same"}


def test_one_release_can_be_asked_outside_all_counting(trial: Trial) -> None:
    trial.plan(weight=0.0, salt="ask")
    before = len(trial.site.log)
    path = trial.site.url + "/admin/ask/"
    answer = httpx.post(path + "next", json={"messages": HELLO, "stream": True}, timeout=30)
    assert answer.json()["choices"][0]["message"]["content"].endswith("xy")
    assert answer.json()["system_fingerprint"] == "fp2"
    assert httpx.post(path + "nobody", json={"messages": HELLO}).status_code == 404
    assert httpx.post(path + "next", json={"messages": 1}).status_code == 400
    assert len(trial.site.log) == before
    assert trial.samples()["samples"] == []


def test_a_plan_that_comes_too_late_changes_nothing(trial: Trial) -> None:
    trial.plan(weight=0.25, salt="late")
    late = trial.put("plan", {**BESIDE, "weight": 0.9, "revision": 1})
    assert (late.status_code, late.json()["weight"]) == (200, 0.25)
    assert trial.status()["plan"]["weight"] == 0.25


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"weight": 1.5}, "weight"),
        ({"weight": "much"}, "weight"),
        ({"weigth": 0.1}, "weigth"),
        ({"shadow_in_flight": -1}, "shadow_in_flight"),
        ({"candidate": "nobody"}, "candidate"),
        ({"candidate": "main"}, "candidate"),
        ({"stable": "nobody"}, "stable"),
    ],
)
def test_a_wrong_plan_is_refused_by_the_fields_name(
    trial: Trial, wrong: dict[str, Any], named: str
) -> None:
    before = trial.status()["plan"]
    answer = trial.put("plan", {**BESIDE, "revision": 10**6, **wrong})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(named)
    assert trial.status()["plan"] == before


@pytest.mark.parametrize(
    ("name", "order", "status", "said"),
    [
        ("a b", ORDER, 400, "name"),
        ("new", {**ORDER, "cpus": 0}, 400, "cpus"),
        ("new", {**ORDER, "settings": 1}, 400, "settings"),
        ("new", {**ORDER, "fingerprint": ""}, 400, "fingerprint"),
        ("new", {**ORDER, "other": 1}, 400, "other"),
        ("main", ORDER, 409, "release main is here as fp"),
    ],
)
def test_a_wrong_order_is_refused(
    trial: Trial, name: str, order: dict[str, Any], status: int, said: str
) -> None:
    answer = trial.put(f"releases/{name}", order)
    assert answer.status_code == status
    assert answer.json()["error"]["message"].startswith(said)


def test_a_release_that_can_not_start_has_failed_and_nobody_else_feels_it(trial: Trial) -> None:
    trial.deploy("broken")
    told = trial.status()["releases"]["broken"]
    assert (told["health"], told["num_replicas"]) == ("failed", 0)
    assert told["message"] == "model.source: there is no engine for broken"
    assert httpx.get(trial.site.url + "/readyz", timeout=30).status_code == 200
    assert trial.ask().status_code == 200
    assert httpx.delete(trial.site.url + "/admin/releases/broken").status_code == 202
    assert httpx.delete(trial.site.url + "/admin/releases/broken").status_code == 404


def test_one_release_can_be_told_how_to_decode(trial: Trial) -> None:
    def modes() -> dict[str, str]:
        return {each["release"]: each["mode"] for each in trial.status()["replicas"]}

    assert trial.put("control", {"mode": "plain", "release": "twin"}).status_code == 200
    assert modes() == {"main": "speculative", "next": "speculative", "twin": "plain"}
    assert trial.put("control", {"mode": "plain", "release": "nobody"}).status_code == 404
    assert trial.put("control", {"mode": "speculative"}).status_code == 200
    assert set(modes().values()) == {"speculative"}


def test_a_release_ends_what_is_in_flight_and_goes() -> None:
    made = Trial(engine=AlphabetEngine(delay_s=0.01))
    made.site.engines["next"] = AlphabetEngine(delay_s=0.01)  # type: ignore[index]
    with made.site:
        made.deploy("next")
        made.plan(weight=1.0, salt="go")
        away = made.site.url + "/admin/releases/next"
        long = {"messages": HELLO, "stream": True, "ignore_eos": True, "max_tokens": 60}
        with httpx.stream("POST", made.site.url + CHAT, json=long, timeout=30) as answer:
            parts = answer.iter_bytes()
            next(parts)
            assert httpx.delete(away).status_code == 409
            made.plan(candidate=None)
            assert httpx.delete(away).status_code == 202
            assert made.release() == "main"
            assert b"".join(parts).endswith(b"data: [DONE]\n\n")
        assert list(made.status()["releases"]) == ["main"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "plan"),
        ("PUT", "releases/next"),
        ("DELETE", "releases/next"),
        ("GET", "samples"),
        ("POST", "ask/main"),
        ("GET", "status"),
        ("PUT", "control"),
    ],
)
def test_every_admin_route_wants_an_admin_key(tmp_path: Path, method: str, path: str) -> None:
    keys = tmp_path / "admin"
    keys.write_text("secret\n")
    with Site(service_fields={"admin_keys": Keys.read(str(keys), "k")}) as site:
        url = f"{site.url}/admin/{path}"
        assert httpx.request(method, url, json={}, timeout=30).status_code == 401
        wrong = {"authorization": "Bearer other"}
        assert httpx.request(method, url, json={}, headers=wrong, timeout=30).status_code == 401
