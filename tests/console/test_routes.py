"""The console's routes over real HTTP: who gets what, and what a browser may do with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from http_site import Site
from stage import Played, empty, full, stage

from outrider.console.assets import read_assets
from outrider.console.order import Order
from outrider.rollout.command import Verb

KEY = "the-admin-key"
ABORT = {"verb": "abort", "rollout_id": "r-1"}
HEADERS = {"content-type": "application/json"}
WITH_KEY = {"authorization": f"Bearer {KEY}"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outer") / "console"
    (folder / "vendor").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><title>Console</title>")
    (folder / "vendor" / "chart.js").write_text("export const x = 1;")
    (folder / "README.md").write_text("for people who read the repository")
    (folder.parent / "secret.js").write_text("no")
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[Site]:
    with stage(full(), assets=read_assets(folder)) as site:
        yield site


@pytest.fixture(scope="module")
def locked(folder: Path) -> Iterator[Site]:
    with stage(full(), key=KEY, assets=read_assets(folder)) as site:
        yield site


def played(site: Site) -> Played:
    (addition,) = site.service_fields["additions"]  # type: ignore[misc]
    assert isinstance(addition, Played)
    return addition


def test_the_page_is_there_and_runs_nothing_of_others(site: Site) -> None:
    page = httpx.get(f"{site.url}/console")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["referrer-policy"] == "no-referrer"


def test_a_slash_too_many_leads_to_the_page(site: Site) -> None:
    page = httpx.get(f"{site.url}/console/", follow_redirects=True)
    assert (page.status_code, page.url.path) == (200, "/console")


def test_a_file_has_its_kind_and_is_sent_once(site: Site) -> None:
    url = f"{site.url}/console/vendor/chart.js"
    file = httpx.get(url)
    assert file.headers["content-type"] == "text/javascript; charset=utf-8"
    assert file.headers["cache-control"] == "no-cache"
    tag = file.headers["etag"]
    again = httpx.get(url, headers={"if-none-match": f'"other", W/{tag}'})
    assert (again.status_code, again.content) == (304, b"")
    assert httpx.get(url, headers={"if-none-match": '"other"'}).status_code == 200
    assert httpx.head(url).headers["etag"] == tag


@pytest.mark.parametrize(
    "path",
    ["nothing.js", "README.md", "../secret.js", "%2e%2e/secret.js", "..%2fsecret.js",
     "vendor/../../secret.js", "vendor", "/etc/passwd", "vendor//chart.js", "%00"],
)  # fmt: skip
def test_nothing_else_is_reached(site: Site, path: str) -> None:
    raw = httpx.URL(site.url).copy_with(raw_path=f"/console/{path}".encode())
    assert httpx.get(raw).status_code == 404


def test_without_the_folder_the_page_says_so(tmp_path: Path) -> None:
    with stage(empty(), assets=read_assets(tmp_path / "nowhere")) as site:
        page = httpx.get(f"{site.url}/console")
        assert page.status_code == 404
        assert "dashboards/console" in page.json()["error"]["message"]
        assert httpx.get(f"{site.url}/console/data").status_code == 200


def test_the_data_is_what_is_new(site: Site) -> None:
    whole = httpx.get(f"{site.url}/console/data")
    assert whole.headers["cache-control"] == "no-store"
    told = whole.json()
    assert told["service"]["name"] == "main"
    assert told["rollout"]["phase"] == "canary"
    assert told["rollout"]["findings"][0]["verdict"] == "pass"
    assert told["needs_key"] is False
    last = told["points"][-1]["at_s"]
    newer = httpx.get(f"{site.url}/console/data", params={"after": last - 3.0}).json()["points"]
    assert 0 < len(newer) < len(told["points"])
    assert all(point["at_s"] > last - 3.0 for point in newer)


@pytest.mark.parametrize("after", ["soon", "nan", "inf", ""])
def test_a_time_that_is_none_is_refused(site: Site, after: str) -> None:
    answer = httpx.get(f"{site.url}/console/data", params={"after": after})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith("after: seconds since 1970")


def test_data_and_orders_ask_for_the_admin_key_and_the_page_does_not(locked: Site) -> None:
    data, orders = f"{locked.url}/console/data", f"{locked.url}/console/orders"
    assert httpx.get(f"{locked.url}/console").status_code == 200
    for headers in ({}, {"authorization": "Bearer wrong"}):
        assert httpx.get(data, headers=headers).status_code == 401
        asked = httpx.post(orders, json=ABORT, headers=headers)
        assert asked.status_code == 401
    assert played(locked).orders == []
    assert httpx.get(data, headers=WITH_KEY).json()["needs_key"] is True
    assert httpx.post(orders, json=ABORT, headers=WITH_KEY).status_code == 200
    assert [order.verb for order in played(locked).orders] == [Verb.ABORT]


def test_an_order_is_answered_with_a_sentence(site: Site) -> None:
    body = {**ABORT, "verb": "pause", "reason": "lunch", "who": "ada"}
    answer = httpx.post(f"{site.url}/console/orders", json=body, headers={"origin": site.url})
    assert answer.json() == {"said": answer.json()["said"]}
    order = played(site).orders[-1]
    assert order == Order(verb=Verb.PAUSE, rollout_id="r-1", why="lunch", who="ada")


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({**HEADERS, "origin": "http://evil.example"}, json.dumps(ABORT), 403),
        ({**HEADERS, "sec-fetch-site": "cross-site"}, json.dumps(ABORT), 403),
        ({**HEADERS, "host": "evil.example"}, json.dumps(ABORT), 403),
        ({"content-type": "text/plain"}, json.dumps(ABORT), 400),
        ({"content-type": ""}, json.dumps(ABORT), 400),
        (HEADERS, '{"verb": "destroy", "rollout_id": "r-1"}', 400),
        (HEADERS, '{"verb": "abort"}', 400),
        (HEADERS, '["abort"]', 400),
    ],
)
def test_what_is_no_order_changes_nothing(
    site: Site, headers: dict[str, str], body: str, status: int
) -> None:
    before = list(played(site).orders)
    answer = httpx.post(f"{site.url}/console/orders", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]
    assert played(site).orders == before
