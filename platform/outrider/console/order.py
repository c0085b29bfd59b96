"""What a page asks for, and whether it may come from where it says that it does. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from outrider.core import UserError
from outrider.rollout.command import Verb

LONGEST_REASON, LONGEST_NAME = 1000, 100  # characters
VERBS = ", ".join(Verb)
OWN = ("same-origin", "none")  # Sec-Fetch-Site of our page, and of no page at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What an operator asks of the active rollout, who and why."""

    verb: Verb
    rollout_id: str  # the one that was looked at: another one gets nothing
    who: str = ""
    why: str = ""


def read_order(body: Mapping[str, Any]) -> Order:
    """UserError names the field that is wrong."""
    unknown = sorted(body.keys() - {"verb", "rollout_id", "who", "reason"})
    if unknown:
        raise UserError(f"{unknown[0][:40]}: no such field; give verb, rollout_id, reason and who")
    verb = body.get("verb")
    if verb not in list(Verb):
        raise UserError(f"verb: one of {VERBS}, got {str(verb)[:40]!r}")
    rollout_id = _text(body, "rollout_id", LONGEST_NAME)
    if not rollout_id:
        raise UserError("rollout_id: of the rollout that is meant, as /console/data tells it")
    return Order(
        verb=Verb(verb),
        rollout_id=rollout_id,
        who=_text(body, "who", LONGEST_NAME),
        why=_text(body, "reason", LONGEST_REASON),
    )


def _text(body: Mapping[str, Any], key: str, longest: int) -> str:
    text = body.get(key, "")
    if not isinstance(text, str) or len(text) > longest:
        raise UserError(f"{key}: a text of at most {longest} characters")
    return text


def stranger(headers: Mapping[str, str], *, asks_no_key: bool) -> str:
    """Why a browser sent this for a page of another site; empty where it did not.

    A key that only our page knows keeps others out. Where none is asked for, the name in the
    address counts too: a stranger's name may lead to this machine (DNS rebinding).
    """
    site, origin, host = (headers.get(name) for name in ("sec-fetch-site", "origin", "host"))
    if site is not None and site not in OWN:
        return f"sec-fetch-site: {site[:40]}"
    if site is None and origin and urlsplit(origin).netloc.lower() != (host or "").lower():
        return f"origin: {origin[:100]}"
    if asks_no_key and not _is_loopback(host or ""):
        return f"host: {(host or '')[:100]}; open it by a loopback address, or with admin keys"
    return ""


def _is_loopback(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
