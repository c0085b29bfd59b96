"""A real browser: Debian's Chromium without a screen, steered by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request, sync_playwright

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
AS_ROOT = ["--no-sandbox"] if os.geteuid() == 0 else []
PHONE, WIDE = 360, 2560  # pixels


@dataclass
class Window:
    """One page of its own context, and what went wrong in it."""

    page: Page
    origin: str
    complaints: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)  # of all that was asked for

    def __post_init__(self) -> None:
        self.page.set_default_timeout(10_000)
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._see)

    def open(self) -> None:
        self.page.goto(f"{self.origin}/console")

    def panel(self, title: str) -> Locator:
        return self.page.get_by_role("region", name=title, exact=True)

    @property
    def overflow(self) -> int:
        """Pixels that the page is wider than its window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))

    @property
    def violations(self) -> str:
        """What axe finds wrong for people who can't see, or hardly; empty where nothing is."""
        found = Axe().run(self.page)
        return found.generate_report() if found.violations_count else ""

    @property
    def first_figures_s(self) -> float | None:
        """From asking for the page until figures are on it; None: they are not yet."""
        marks: list[dict[str, Any]] = self.page.evaluate(
            "performance.getEntriesByName('outrider.figures').map((mark) => mark.toJSON())"
        )
        return float(marks[0]["startTime"]) / 1000 if marks else None

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _see(self, request: Request) -> None:
        self.addresses.append(request.url)
        if not request.url.startswith((self.origin, "data:")):
            self.complaints.append(f"asked of elsewhere: {request.url}")


@dataclass
class Chromium:
    browser: Browser

    @contextmanager
    def window(self, origin: str, *, width: int = 1400, scheme: Any = "light") -> Iterator[Window]:
        """`scheme`: light | dark."""
        context = self.browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        try:
            yield Window(context.new_page(), origin)
        finally:
            context.close()


@contextmanager
def opened() -> Iterator[Chromium]:
    """Playwright's loop runs in the thread that opens it, until it is closed."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=AS_ROOT)
        try:
            yield Chromium(browser)
        finally:
            browser.close()
