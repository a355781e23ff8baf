"""A browser's context that is watched: what must never happen in one of our pages is noted, and fails the test.

Noted are errors on the console and in scripts, violations of the Content-Security-Policy, dialogs, requests that
leave the machine, and the sentinel that every attack in these tests would set if it could run: ``window.pwned``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Page, Request, WebError

# Runs in every page before anything of its own, outside of its Content-Security-Policy.
_SCRIPT = """
(() => {
  const report = window.noteTrouble;
  document.addEventListener("securitypolicyviolation", (event) =>
    report(`policy: ${event.effectiveDirective} blocked ${event.blockedURI} in ${event.documentURI}`));
  Object.defineProperty(window, "pwned", {set: () => report(`PWNED: a skill's script ran in ${location.href}`)});
  window.shifted = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifted += entry.value;
  }).observe({type: "layout-shift", buffered: true});
})();
"""


class Watch:
    """Notes ``troubles`` of a context; what a test provokes on purpose it excuses, by pattern, before."""

    def __init__(self, context: BrowserContext) -> None:
        self.noted: list[str] = []
        self._excused = [r"ERR_CONNECTION_REFUSED at \S+/events$"]  # a server may end before the page does
        context.expose_binding("noteTrouble", lambda _, what: self.noted.append(str(what)))
        context.add_init_script(_SCRIPT)
        context.on("console", self._hear)
        context.on("weberror", self._fail)
        context.on("request", self._see)
        context.on("dialog", self._refuse)

    def excuse(self, pattern: str) -> None:
        """A trouble that this test is about."""
        self._excused.append(pattern)

    @property
    def troubles(self) -> list[str]:
        """What was noted and not excused."""
        return [each for each in self.noted if not any(re.search(pattern, each) for pattern in self._excused)]

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            where: dict[str, Any] = dict(message.location)
            self.noted.append(f"console: {message.text} at {where.get('url')}")

    def _fail(self, error: WebError) -> None:
        self.noted.append(f"script: {error.error}")

    def _see(self, request: Request) -> None:
        place = urlsplit(request.url)
        if place.scheme not in ("data", "blob") and place.hostname != "127.0.0.1":
            self.noted.append(f"request: {request.url}")

    def _refuse(self, dialog: Dialog) -> None:
        self.noted.append(f"dialog: {dialog.message}")
        dialog.dismiss()


def shift_of(page: Page) -> float:
    """How much of the page moved by itself, as browsers measure it (0.1 is what people call good)."""
    return page.evaluate("window.shifted")
