"""Headless Chromium, and a recorder of the errors that it reports."""

import os
from dataclasses import dataclass, field

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request

from toolbench.running.chromium import find_chromium

TIMEOUT_MS = 20_000
# Messages of htmx about a poll that ends because the page is left. A failed answer has other messages.
_ABORTED_REQUEST_MESSAGES = ("htmx:afterRequest", "htmx:sendAbort")


def find_browser() -> str:
    """Return the path of the browser. A missing browser fails the test; it is never skipped."""
    found = find_chromium()
    assert found is not None, "No Chromium was found: run `make test`, which fetches one, or set SKIP_BROWSER=1."
    return found


def list_chromium_flags() -> list[str]:
    """Return the flags of Chromium: as root it runs without its sandbox, which refuses root."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


@dataclass
class ComplaintRecorder:
    """Recorder of errors on pages: console errors (also of the content policy), uncaught exceptions, failed requests.

    Attributes:
        expected: parts of complaints that a test causes on purpose.
    """

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
