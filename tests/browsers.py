"""A real headless Chromium, and a watch on what it complains of."""

import os
from dataclasses import dataclass, field

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

from toolbench.running.chromium import find_chromium

TIMEOUT_MS = 20_000
# What htmx writes of a poll that ends because the page is left; an answer that failed has lines of its own.
_ABORTED_REQUEST_MESSAGES = ("htmx:afterRequest", "htmx:sendAbort")


def find_browser() -> str:
    """The browser to use. A missing one is a failure, never a skip."""
    found = find_chromium()
    assert found is not None, "No Chromium was found: run `make test`, which fetches one, or set SKIP_BROWSER=1."
    return found


def list_chromium_flags() -> list[str]:
    """Chromium's own sandbox refuses root."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


@dataclass
class ComplaintRecorder:
    """Collects what a page must not do: errors on the console (a breach of the content policy is one), uncaught
    exceptions, requests that failed. `expected` holds parts of complaints that a test brings about on purpose."""

    complaints: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def over(self, context: BrowserContext) -> None:
        context.on("page", self._look_at)
        context.on("requestfailed", self._failed)

    def unexpected(self) -> list[str]:
        return [line for line in self.complaints if not any(part in line for part in self.expected)]

    def _look_at(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(_ABORTED_REQUEST_MESSAGES):
            self.complaints.append(f"console: {message.text} ({message.location.get('url', '')})")

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":
            self.complaints.append(f"request failed: {request.url} {request.failure}")
