"""The review desk in a browser, as the user of a waiting agent sees it."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from rules import rule
from web.processes import desk_over

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator

    from web.processes import Desk
    from web.watching import Watch

REFUNDS = "skill://acme/billing/refunds/SKILL.md"
LIBRARY = "skill://library/SKILL.md"
CSV = "skill://csv-profile/SKILL.md"


def open_skill(page: Page, name: str) -> None:
    """From the overview, by its name there."""
    page.get_by_role("link", name="Overview").first.click()
    page.locator("#results").get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("region", name="Details")).to_be_visible()


def grants(page: Page) -> None:
    """Open the panel with grants and the note."""
    if page.locator(".bar details[open]").count() == 0:
        page.get_by_text("Grants and note").click()


def tick(page: Page, tool: str) -> Locator:
    grants(page)
    return page.get_by_role("checkbox", name=tool)


def write_note(page: Page, note: str) -> None:
    grants(page)
    page.get_by_label("Note").fill(note)


def confirm_findings(page: Page) -> None:
    """Tick the box that serious findings need."""
    box = page.get_by_role("checkbox", name="I have read the findings")
    if box.count():
        box.check()


def approve(page: Page, note: str = "") -> None:
    if note:
        write_note(page, note)
    confirm_findings(page)
    page.get_by_role("button", name="Approve exactly this").click()
    expect(page.get_by_role("status").filter(has_text="Approved, exactly as shown here.")).to_be_visible()


@rule("N1", "O1")
def test_origins_and_skills_are_shown_with_their_states_and_shared_names(at_desk: Page) -> None:
    origins = at_desk.get_by_role("region", name="Origins")
    expect(origins.get_by_role("listitem").filter(has_text="acme")).to_contain_text("complete")
    expect(origins.get_by_role("listitem").filter(has_text="books")).to_contain_text("complete")
    skills = at_desk.locator("#results")
    expect(skills.locator("[data-row]")).to_have_count(9)
    shared = skills.get_by_role("row").filter(has_text="Shared name")
    expect(shared).to_have_count(2)
    expect(shared.first).to_contain_text("books:release")
    at_desk.get_by_label("Origin", exact=True).select_option("books")
    expect(skills.locator("[data-row]")).to_have_count(2)
    at_desk.get_by_role("searchbox").press_sequentially("shelf", delay=15)
    expect(skills.locator("[data-row]")).to_have_count(1)


@rule("A3", "A4", "A5", "B6")
def test_a_review_tells_everything_before_the_yes(at_desk: Page, desk: Desk) -> None:
    """And the yes reaches the command line, with what was granted and with the note."""
    open_skill(at_desk, "library")
    expect(at_desk.get_by_role("region", name="Hidden text")).to_contain_text("mallory")
    expect(at_desk.get_by_role("region", name="Requests")).to_contain_text("Bash(lend:*)")
    expect(at_desk.get_by_role("region", name="Scripts")).to_contain_text("scripts/lend.py")
    expect(at_desk.get_by_role("region", name="SKILL.md")).to_contain_text("Ask for the reader's number first.")
    at_desk.get_by_role("link", name="rules.md").click()
    expect(at_desk.get_by_text("Four weeks, renewed twice.")).to_be_visible()
    at_desk.go_back()
    tick(at_desk, "Bash(lend:*)").check()
    approve(at_desk, "read all of it")
    assert desk.approvals() == {LIBRARY: ["Bash(lend:*)"]}
    assert "read all of it" in desk.run("log", "--json")


@rule("A4", "A5")
def test_each_tool_is_granted_and_refused_by_itself_and_all_is_taken_back(at_desk: Page, desk: Desk) -> None:
    open_skill(at_desk, "library")
    approve(at_desk)
    assert desk.approvals() == {LIBRARY: []}
    tick(at_desk, "Read").check()
    tick(at_desk, "run code").check()
    at_desk.get_by_role("button", name="Save grants").click()
    expect(at_desk.get_by_text("The grants were saved.")).to_be_visible()
    assert desk.approvals() == {LIBRARY: ["Read", "execute"]}
    tick(at_desk, "Read").uncheck()
    at_desk.get_by_role("button", name="Save grants").click()
    expect(tick(at_desk, "Read")).not_to_be_checked()
    assert desk.approvals() == {LIBRARY: ["execute"]}
    write_note(at_desk, "not any more")
    at_desk.get_by_role("button", name="Revoke").click()
    expect(at_desk.get_by_role("heading", level=1)).to_contain_text("revoked")
    expect(at_desk.get_by_role("region", name="Your decision")).to_contain_text("not any more")
    assert desk.approvals() == {}


def test_a_skill_is_declined_and_says_so(at_desk: Page, desk: Desk) -> None:
    open_skill(at_desk, "library")
    write_note(at_desk, "who is mallory?")
    at_desk.get_by_role("button", name="Decline").click()
    expect(at_desk.get_by_role("heading", level=1)).to_contain_text("declined")
    expect(at_desk.get_by_role("region", name="Declined")).to_contain_text("who is mallory?")
    assert desk.approvals() == {}
    open_skill(at_desk, "library")
    approve(at_desk, "she is the librarian")
    assert desk.approvals() == {LIBRARY: []}


def test_a_yes_on_the_command_line_appears_without_reloading(at_desk: Page, desk: Desk) -> None:
    at_desk.evaluate("window.stays = true")
    row = at_desk.locator("#results [data-row]").filter(has_text="csv-profile")
    expect(row).to_contain_text("new")
    desk.run("approve", "csv-profile", servers=True)
    expect(row).to_contain_text("approved")
    desk.run("approvals", "revoke", "csv-profile")
    expect(row).to_contain_text("revoked")
    assert at_desk.evaluate("window.stays")


def test_an_emptied_filter_shows_what_is_so_now_and_keeps_the_other_choices(at_desk: Page, desk: Desk) -> None:
    at_desk.goto(f"{desk.base}/?origin=books")
    rows = at_desk.locator("#results [data-row]")
    expect(rows).to_have_count(2)
    at_desk.get_by_role("searchbox").press_sequentially("shelf", delay=15)
    expect(rows).to_have_count(1)
    desk.run("approve", "library", servers=True)
    expect(rows).to_contain_text("approved")
    at_desk.get_by_role("searchbox").fill("")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="library")).to_contain_text("approved")
    assert at_desk.url == f"{desk.base}/?origin=books"
    desk.run("approvals", "revoke", "library")
    expect(rows.filter(has_text="library")).to_contain_text("revoked")
    expect(rows).to_have_count(2)
    expect(at_desk.get_by_label("Origin", exact=True)).to_have_value("books")


@rule("A1")
def test_a_skill_that_changed_while_somebody_read_it_is_not_approved(
    at_desk: Page, desk: Desk, watch: Watch
) -> None:
    watch.excuse("status of 409")
    open_skill(at_desk, "csv-profile")
    (desk.trees["acme"] / "csv-profile" / "references" / "output.md").write_text("something else\n")
    expect(at_desk.get_by_role("alert")).to_be_visible()
    at_desk.get_by_role("button", name="Approve exactly this").click()
    expect(at_desk.get_by_role("heading", level=1)).to_have_text("The skill changed while you were reading")
    assert desk.approvals() == {}
    at_desk.get_by_role("link", name="Review the new content").click()
    approve(at_desk)
    assert list(desk.approvals()) == [CSV]


def test_everything_can_be_done_with_keys(at_desk: Page, desk: Desk) -> None:
    expect(at_desk.locator("#results [data-row]")).to_have_count(9)
    at_desk.keyboard.press("/")
    expect(at_desk.get_by_role("searchbox")).to_be_focused()
    at_desk.keyboard.type("csv-profile", delay=15)
    expect(at_desk.locator("#results [data-row]")).to_have_count(1)
    at_desk.keyboard.press("Escape")
    at_desk.keyboard.press("j")
    at_desk.keyboard.press("Enter")
    expect(at_desk.get_by_role("heading", level=1)).to_contain_text("csv-profile")
    at_desk.keyboard.press("a")
    confirm = at_desk.get_by_role("dialog", name="Approve csv-profile from acme?")
    expect(confirm).to_contain_text("Grants: nothing")
    at_desk.keyboard.press("Escape")
    expect(confirm).to_be_hidden()
    assert desk.approvals() == {}
    at_desk.keyboard.press("a")
    at_desk.keyboard.press("Enter")
    expect(at_desk.get_by_text("Approved, exactly as shown here.")).to_be_visible()
    assert list(desk.approvals()) == [CSV]


def test_the_log_is_filtered_and_exported(at_desk: Page, desk: Desk) -> None:
    desk.run("approve", "csv-profile", "--by", "grace", "--note", "=1+1", servers=True)
    desk.run("approve", "library", "--by", "ada", servers=True)
    desk.run("approvals", "revoke", "library", "--by", "ada")
    at_desk.get_by_role("link", name="Log", exact=True).click()
    rows = at_desk.locator("[data-row]")
    expect(rows.filter(has_text="approved")).to_have_count(2)
    at_desk.get_by_label("Event").select_option("revoked")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(LIBRARY)
    at_desk.goto(f"{desk.base}/log")
    at_desk.get_by_label("By").fill("grace")
    at_desk.get_by_role("button", name="Filter").click()
    expect(rows).to_have_count(1)
    with at_desk.expect_download() as download:
        at_desk.get_by_role("link", name="JSON lines").click()
    [line] = map(json.loads, download.value.path().read_text().splitlines())
    assert (line["what"], line["by"], line["uri"]) == ("approved", "grace", CSV)
    with at_desk.expect_download() as download:
        at_desk.get_by_role("link", name="CSV", exact=True).click()
    text = download.value.path().read_text()
    [row] = csv.DictReader(io.StringIO(text))
    assert row["uri"] == CSV
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values())


def test_approvals_are_listed_and_lead_to_their_skill(at_desk: Page, desk: Desk) -> None:
    at_desk.get_by_role("link", name="Approvals").click()
    expect(at_desk.get_by_text("No skill is approved yet.")).to_be_visible()
    desk.run("approve", "library", "--grant", "Read", servers=True)
    expect(at_desk.locator("[data-row]")).to_contain_text("Read")
    at_desk.locator("[data-row]").get_by_role("link").click()
    expect(at_desk.get_by_role("heading", level=1)).to_contain_text("library")


def test_an_origin_that_does_not_answer_says_why(page: Page, tmp_path: Path) -> None:
    with desk_over(tmp_path, {"gone": {"type": "http", "url": "http://127.0.0.1:1/mcp"}}) as desk:
        page.goto(desk.link)
        origin = page.get_by_role("region", name="Origins").get_by_role("listitem").filter(has_text="gone")
        expect(origin).to_contain_text("unreachable")
        expect(origin).to_contain_text("[connection-lost]")


def test_a_desk_without_anything_says_what_to_do(page: Page, tmp_path: Path) -> None:
    with desk_over(tmp_path, {}) as desk:
        page.goto(desk.link)
        expect(page.get_by_text("There are no origins.")).to_be_visible()
        expect(page.get_by_text("skillwire origins add")).to_be_visible()
        expect(page.get_by_text("No open questions.")).to_be_visible()


def test_without_scripts_everything_is_there_too(browser: Browser, desk: Desk) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(desk.link)
    skill = page.locator("#results").get_by_role("link", name="library", exact=True)
    assert any(skill.is_visible() or page.reload() is None for _ in range(200)), "the servers answer after a while"
    page.get_by_role("searchbox").fill("lends")
    page.get_by_role("button", name="Filter").click()
    skill.click()
    approve(page, "without scripts")
    assert list(desk.approvals()) == [LIBRARY]
    context.close()
