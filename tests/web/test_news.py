"""Changes while a page of the desk is open: they are announced, move nothing, and none is missed."""

from __future__ import annotations

import http.client
import json
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from web.looking import SHIFT
from web.processes import desk_over
from web.test_desk import open_skill
from web.test_live import waiting
from web.watching import shift_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from web.processes import Desk
    from web.watching import Watch

ROOM = 64  # streams that a desk has


def place_of(page: Page, selector: str) -> tuple[float, float]:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box["x"], box["y"]


def windows(page: Page, *widths: int) -> dict[int, Page]:
    """As many windows of the same person."""
    pages = {width: page.context.new_page() for width in widths}
    for width, each in pages.items():
        each.set_viewport_size({"width": width, "height": 900})
    return pages


def test_a_question_that_arrives_moves_nothing(at_desk: Page, desk: Desk) -> None:
    places = ("#results [data-row] a", "nav a[href='/log']")
    pages, before = windows(at_desk, 400, 1200, 2000), {}
    for width, page in pages.items():
        page.goto(f"{desk.base}/")
        expect(page.locator("#results [data-row]")).to_have_count(9)
        before[width] = [place_of(page, selector) for selector in places]
    with desk.asking("library"), desk.asking("library", label="elsewhere"):
        for width, page in pages.items():
            expect(waiting(page).get_by_role("link")).to_have_count(2)
            expect(page.get_by_role("link", name="Overview")).to_contain_text("2 waiting")
            assert [place_of(page, selector) for selector in places] == before[width], width
            assert shift_of(page) < SHIFT, width


def test_news_of_a_skill_lie_over_its_page(at_desk: Page, desk: Desk) -> None:
    pages, before = windows(at_desk, 400, 1200), {}
    for width, page in pages.items():
        page.goto(f"{desk.base}/")
        open_skill(page, "library")
        before[width] = place_of(page, "#approve")
    desk.run("approve", "library", servers=True)
    for width, page in pages.items():
        news = page.locator("main").get_by_role("status")
        expect(news).to_be_in_viewport()
        expect(news).to_contain_text("The state is now approved")
        assert place_of(page, "#approve") == before[width], width
        assert shift_of(page) < SHIFT, width


@contextmanager
def filled_with_streams(desk: Desk, page: Page) -> Iterator[None]:
    """As if as many pages were open as the desk has room for."""
    cookie = "; ".join(f"{each['name']}={each['value']}" for each in page.context.cookies())
    with ExitStack() as stack:
        for _ in range(ROOM):
            line = http.client.HTTPConnection(urlsplit(desk.base).netloc, timeout=30)
            stack.callback(line.close)
            line.request("GET", "/events", headers={"Cookie": cookie})
            answer = line.getresponse()
            stack.callback(answer.close)
            assert answer.status == 200
            answer.readline()  # it has begun, and is counted
        yield


def test_a_page_that_finds_no_room_says_so_and_catches_up_later(at_desk: Page, desk: Desk, watch: Watch) -> None:
    watch.excuse("status of 503")
    expect(at_desk.locator("#results [data-row]")).to_have_count(9)
    at_desk.goto("about:blank")
    with filled_with_streams(desk, at_desk):
        at_desk.goto(f"{desk.base}/")
        live = at_desk.locator("#live")
        expect(live).to_have_text("The server is busy. Trying again …")
        desk.run("approve", "library", servers=True)
        row = at_desk.locator("#results [data-row]").filter(has_text="library")
        expect(row).to_contain_text("new")
    expect(row).to_contain_text("approved")
    expect(live).to_be_hidden()


def test_a_page_outlives_its_desk_and_catches_up_with_the_next_one(
    at_desk: Page, desk: Desk, watch: Watch
) -> None:
    watch.excuse("ERR_|status of 401|Failed to load")
    expect(at_desk.locator("#results [data-row]")).to_have_count(9)
    desk.process.popen.terminate()
    desk.process.popen.wait(timeout=60)
    live = at_desk.locator("#live")
    expect(live).to_have_text("Not connected. Reconnecting …")
    desk.run("approve", "library", servers=True)
    servers = json.loads(desk.config.read_text())["mcpServers"]
    with desk_over(desk.state.parent, servers, port=urlsplit(desk.base).port or 0) as again:
        expect(live).to_have_text("The desk has ended. Start it again and use the new link.")
        at_desk.context.new_page().goto(again.link)
        expect(live).to_be_hidden()
        expect(at_desk.locator("#results [data-row]").filter(has_text="library")).to_contain_text("approved")
