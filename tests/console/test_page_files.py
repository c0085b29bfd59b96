"""What the page is made of: shipped whole, as it was named, and small."""

from __future__ import annotations

import hashlib
import re

from outrider.console.assets import FOLDER

MOST_BYTES = 600_000
NAMESPACE = "http://www.w3.org/"  # of SVG: a name, never asked for


def test_libraries_are_those_that_are_named() -> None:
    told = (FOLDER / "vendor" / "README.md").read_text()
    named = dict(re.findall(r"^\| `([^`]+\.js)` \|.*`([0-9a-f]{64})` \|$", told, re.MULTILINE))
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (FOLDER / "vendor").glob("*.js")
    }
    assert named == found


def test_nothing_of_ours_names_another_server() -> None:
    for path in FOLDER.glob("*.*"):
        addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+", path.read_text())
        assert [each for each in addresses if not each.startswith(NAMESPACE[:-1])] == [], path


def test_every_module_is_asked_for_at_once() -> None:
    """Else each one waits for the one that imports it."""
    page = (FOLDER / "index.html").read_text()
    told = re.findall(r'<link rel="modulepreload" href="console/([^"]+)">', page)
    ours = [path.name for path in FOLDER.glob("*.js")]
    assert sorted(told) == sorted([*ours, "vendor/preact-htm.js"])


def test_the_page_is_small() -> None:
    sizes = [path.stat().st_size for path in FOLDER.rglob("*") if path.suffix in (".js", ".css")]
    assert sum(sizes) < MOST_BYTES
