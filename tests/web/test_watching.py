"""The watch of the browser detects what it is made for; otherwise the other tests would prove nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from web.hostile import ELSEWHERE, IMAGE, SCRIPT
from web.looking import barriers, overflowing
from web.stranger import strangers_page
from web.watching import Watch, shift_of

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

POLICY = "<meta http-equiv=Content-Security-Policy content=\"script-src 'none'\">"


@pytest.mark.parametrize(
    ("html", "noted"),
    [
        (SCRIPT, "PWNED"),
        (IMAGE, "PWNED"),
        ("<script>console.error('oh')</script>", "console: oh"),
        ("<script>nothing.at.all()</script>", "script: nothing is not defined"),
        ("<script>alert('hello')</script>", "dialog: hello"),
        (f"<img src={ELSEWHERE}/x.png>", f"request: {ELSEWHERE}/x.png"),
        (f"<head>{POLICY}</head>{SCRIPT}", "policy: script-src"),
    ],
    ids=["script", "image", "console", "exception", "dialog", "request", "policy"],
)
def test_what_must_not_happen_is_noted(context: BrowserContext, html: str, noted: str) -> None:
    watch = Watch(context)
    with strangers_page(f"<!doctype html>{html}") as port:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        while not any(noted in trouble for trouble in watch.troubles):  # pytest ends what waits for too long
            page.title()  # whatever the browser has to tell is heard while it is asked something
    watch.excuse("")
    assert not watch.troubles


def test_a_page_that_jumps_overflows_and_cannot_be_read_is_seen(context: BrowserContext) -> None:
    Watch(context)
    html = "<body><p id=late></p><p style='color:#eee;background:#fff;width:3000px'>Pale words</p>"
    with strangers_page(f"<!doctype html><html lang=en><title>x</title>{html}") as port:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        page.evaluate("new Promise(requestAnimationFrame).then(() => late.style.height = '400px')")
        page.wait_for_function("window.shifted > 0.01")
        assert shift_of(page) > 0.01
        assert overflowing(page)
        assert any("color-contrast" in each for each in barriers(page))
