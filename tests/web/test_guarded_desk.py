"""Access to the desk: a link used twice, forms and frames of other sites, other names for loopback."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from web.conftest import STRANGER
from web.stranger import fetching, framing, posting, strangers_page
from web.test_desk import LIBRARY, approve, confirm_findings, open_skill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext

    from web.processes import Desk
    from web.watching import Watch


LOOPBACK = ("127.0.0.1", "localhost")


def decision_form(page: Page) -> tuple[str, dict[str, str]]:
    """Where the form for a yes goes, and all that is in it."""
    open_skill(page, "library")
    form = page.locator("#approve-form")
    fields: dict[str, str] = form.evaluate("form => Object.fromEntries(new FormData(form))")
    action: str = form.evaluate("form => form.action")
    assert fields["csrf"]
    return action, fields


def test_a_stolen_link_is_of_no_use(at_desk: Page, browser: Browser, desk: Desk) -> None:
    thief = browser.new_context().new_page()
    answer = thief.goto(desk.link)
    assert answer is not None
    assert answer.status == 410
    expect(thief.get_by_role("heading", level=1)).to_have_text("This link was already used")
    assert thief.context.cookies() == []
    answer = thief.goto(desk.base)
    assert answer is not None
    assert answer.status == 401
    assert "library" not in thief.content()
    thief.context.close()
    at_desk.reload()
    expect(at_desk.get_by_role("heading", level=1)).to_have_text("Review desk")
    desk.process.wait_for_talk("used a second time")


def test_the_cookie_is_not_for_scripts_and_the_link_is_not_in_the_address(at_desk: Page, desk: Desk) -> None:
    [cookie] = at_desk.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert at_desk.evaluate("document.cookie") == ""
    assert at_desk.url == f"{desk.base}/"


def test_a_form_of_a_stranger_changes_nothing(
    at_desk: Page, context: BrowserContext, watch: Watch, desk: Desk
) -> None:
    """Not even with a stolen token.

    127.0.0.1 with another port is the same site: the cookie goes along, and only ``Origin`` tells.
    """
    watch.excuse("status of 40[13]|request: http://localhost")
    action, stolen = decision_form(at_desk)
    for fields in (stolen, {name: value for name, value in stolen.items() if name != "csrf"}):
        with strangers_page(posting(action, fields)) as port:
            for host in LOOPBACK:
                page = context.new_page()
                page.goto(f"http://{host}:{port}/")
                page.get_by_role("button", name="Win a prize").click()
                expect(page.get_by_role("heading", level=1)).to_have_text("Request from another site")
                page.close()
    assert desk.approvals() == {}
    approve(at_desk)
    assert list(desk.approvals()) == [LIBRARY], "the form itself was right"


def test_a_script_of_a_stranger_changes_nothing(
    at_desk: Page, context: BrowserContext, watch: Watch, desk: Desk
) -> None:
    watch.excuse("status of 40[13]|request: http://localhost|ERR_FAILED|ERR_BLOCKED")
    action, fields = decision_form(at_desk)
    with strangers_page(fetching(action, fields)) as port:
        for host in LOOPBACK:
            page = context.new_page()
            page.goto(f"http://{host}:{port}/")
            expect(page).to_have_title("sent")
            page.close()
    assert desk.approvals() == {}


def test_a_form_of_the_desk_without_its_token_changes_nothing(at_desk: Page, watch: Watch, desk: Desk) -> None:
    watch.excuse("status of 403")
    open_skill(at_desk, "library")
    confirm_findings(at_desk)
    at_desk.locator("#approve-form [name=csrf]").evaluate("field => field.value = 'another one'")
    at_desk.get_by_role("button", name="Approve exactly this").click()
    expect(at_desk.get_by_role("heading", level=1)).to_have_text("This form belongs to another session")
    assert desk.approvals() == {}


def test_nobody_can_put_the_desk_into_a_frame(
    at_desk: Page, context: BrowserContext, watch: Watch, desk: Desk
) -> None:
    watch.excuse("frame-ancestors|X-Frame-Options|chrome-error|ERR_BLOCKED|status of 40[13]")
    with strangers_page(framing(f"{desk.base}/")) as port:
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_load_state("load")
        frames = [frame for frame in page.frames if frame != page.main_frame]
        assert all("Review desk" not in frame.content() for frame in frames)


def test_another_name_for_this_machine_gets_nothing(
    at_desk: Page, context: BrowserContext, watch: Watch, desk: Desk, catalog: str
) -> None:
    """DNS rebinding: the browser believes that a stranger's name is at this address."""
    watch.excuse(re.escape(STRANGER))
    for base, words in ((desk.base, "library"), (catalog, "refunds")):
        page = context.new_page()
        answer = page.goto(base.replace("127.0.0.1", STRANGER) + "/")
        assert answer is not None
        assert answer.status == 421
        assert words not in page.content()
