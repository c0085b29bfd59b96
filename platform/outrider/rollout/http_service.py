"""A service over HTTP: the gateway's /admin (`outrider.serving.routes.rollout`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from outrider.config.typed import typed
from outrider.core import Fault, UserError
from outrider.rollout.ports import Health, ReleaseState, ServiceState
from outrider.rollout.status import Candidate
from outrider.serving.sample import Comparison, Cursor, Likeness, Reading, Sample
from outrider.serving.split import Arm, Plan

WAIT_S = 20.0  # of one question
ANSWER_WAIT_S = 600.0  # of one that a release decodes
LONGEST_REASON = 300  # characters of a refusal that are told
UNAUTHORIZED, NOT_FOUND, TOO_MANY, FIRST_SERVER_STATUS = 401, 404, 429, 500


class HttpService:
    """One gateway. The admin key is read at each question, sent, and written nowhere."""

    def __init__(self, url: str, admin_key_file: str = "") -> None:
        """`url`: http://host:port, without a path. UserError where it or the key can't be read."""
        if not url.startswith(("http://", "https://")):
            raise UserError(f"rollout.url: http://host:port, got {url!r}")
        self._url = url.rstrip("/")
        self._key_file = admin_key_file
        self._key()

    def state(self) -> ServiceState:
        told = self._ask("GET", "/admin/status")
        return ServiceState(
            plan=typed(Plan, told["plan"]),
            model=told["model"],
            releases={
                name: ReleaseState(**{**each, "health": Health(each["health"])})
                for name, each in told["releases"].items()
            },
        )

    def deploy(self, candidate: Candidate) -> None:
        body = {
            "settings": candidate.settings,
            "cpus": candidate.cpus,
            "fingerprint": candidate.fingerprint,
        }
        self._ask("PUT", f"/admin/releases/{quote(candidate.name, safe='')}", body)

    def remove(self, name: str) -> None:
        try:
            self._ask("DELETE", f"/admin/releases/{quote(name, safe='')}")
        except _MissingError:  # it has gone already
            return

    def put_plan(self, plan: Plan) -> None:
        self._ask("PUT", "/admin/plan", asdict(plan))

    def read(self, cursor: Cursor) -> Reading:
        asked = urlencode({"epoch": cursor.epoch, "after": cursor.number})
        told = self._ask("GET", f"/admin/samples?{asked}")
        return Reading(
            **{
                **told,
                "cursor": Cursor(**told["cursor"]),
                "samples": tuple(_sample(each) for each in told["samples"]),
                "comparisons": tuple(_comparison(each) for each in told["comparisons"]),
            }
        )

    def ask(self, release: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        path = f"/admin/ask/{quote(release, safe='')}"
        return self._ask("POST", path, body, wait_s=ANSWER_WAIT_S)

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        wait_s: float = WAIT_S,
    ) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = Request(
            self._url + path, data, {"content-type": "application/json"}, method=method
        )
        if self._key_file:
            request.add_header("authorization", f"Bearer {self._key()}")
        try:
            with urlopen(request, timeout=wait_s) as answer:
                told: dict[str, Any] = json.load(answer)
        except HTTPError as error:
            with error:
                raise self._refused(error) from error
        except (URLError, HTTPException, OSError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            raise Fault(f"no answer from the service at {self._url}: {reason}") from error
        except ValueError as error:
            raise Fault(f"what answers at {self._url} is no gateway of Outrider") from error
        return told

    def _refused(self, error: HTTPError) -> UserError | Fault:
        """A full queue is no refusal: the next time may find a place."""
        said = _reason(error)
        if said is None:
            answer = f"{error.code} {error.reason}"
            return Fault(f"what answers at {self._url} is no gateway of Outrider: {answer}")
        if error.code == UNAUTHORIZED:
            return UserError(f"rollout.admin_key_file: {self._url} wants an admin key: {said}")
        if error.code == NOT_FOUND:
            return _MissingError(said)
        if error.code == TOO_MANY or error.code >= FIRST_SERVER_STATUS:
            return Fault(f"the service at {self._url} failed: {said}")
        return UserError(said)

    def _key(self) -> str:
        """The file's first line that is neither empty nor a comment."""
        if not self._key_file:
            return ""
        try:
            lines = Path(self._key_file).read_text().splitlines()
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or "it is not text"
            raise UserError(
                f"rollout.admin_key_file: can't read {self._key_file}: {why}"
            ) from error
        keys = [key for line in lines if (key := line.strip()) and key[0] != "#"]
        if not keys or not (keys[0].isascii() and keys[0].isprintable()):
            raise UserError(f"rollout.admin_key_file: no key in {self._key_file}; write one a line")
        return keys[0]


class _MissingError(UserError):
    """There is no release of that name."""


def _reason(error: HTTPError) -> str | None:
    """The message of an OpenAI error. None: somebody else's answer, a proxy's say."""
    try:
        said = str(json.loads(error.read(64_000))["error"]["message"])
    except (ValueError, KeyError, TypeError, HTTPException, OSError):
        return None
    return " ".join(said.split())[:LONGEST_REASON]


def _sample(told: Mapping[str, Any]) -> Sample:
    return Sample(**{**told, "arm": Arm(told["arm"])})


def _comparison(told: Mapping[str, Any]) -> Comparison:
    return Comparison(**{**told, "likeness": Likeness(told["likeness"])})
