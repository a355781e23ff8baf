"""Versions of a skill, differences between them, and decisions about many skills, in a browser."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from rules import rule
from trees import replace_file, skill_md, write_tree
from web.looking import examine
from web.processes import desk_over, serving
from web.test_desk import LIBRARY, approve, open_skill
from web.test_live import NEW, OLD

if TYPE_CHECKING:
    from pathlib import Path

    from web.processes import Desk

LINES = "".join(f"Rule {number}.\n" for number in range(100))


def change_rules(desk: Desk, page: Page) -> None:
    """Change one line in the middle of a long file, and add a script."""
    rules = desk.trees["books"] / "library" / "rules.md"
    replace_file(rules, rules.read_text().replace(OLD, NEW).encode())
    write_tree(desk.trees["books"], {"library/scripts/mail.py": b"import smtplib\n"})
    page.goto(f"{desk.base}/")
    expect(page.locator("#results [data-row]").first).to_contain_text("changed")


@rule("A1", "A2")
def test_two_versions_are_compared_also_after_the_approval(at_desk: Page, desk: Desk) -> None:
    rules = desk.trees["books"] / "library" / "rules.md"
    replace_file(rules, f"{LINES}{OLD}\n{LINES}".encode())
    expect(at_desk.locator("#results [data-row]").filter(has_text="library")).to_contain_text("KiB")
    open_skill(at_desk, "library")
    approve(at_desk, "the first")
    change_rules(desk, at_desk)
    open_skill(at_desk, "library")
    news = at_desk.get_by_role("region", name="New since approval")
    expect(news).to_contain_text("scripts/mail.py")
    changes = at_desk.get_by_role("region", name="Changes since the approval")
    expect(changes.get_by_role("list", name="Changed files")).to_contain_text("rules.md +1 −1")
    changes.get_by_role("link", name="unified").click()
    expect(changes.locator(".diff--unified .removed").first).to_contain_text("Four weeks")
    examine(at_desk, "desk-skill-changed-unified")
    approve(at_desk, "the second")
    at_desk.get_by_role("link", name="History").click()
    rows = at_desk.locator(".versions [data-row]")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("the second")
    expect(rows.last).to_contain_text("the first")
    changes = at_desk.get_by_role("region", name="Changes")
    expect(changes).to_contain_text("Four weeks")
    expect(changes.get_by_text("Rule 20.").first).to_be_hidden()
    changes.get_by_role("button", name="Show 97 equal lines").first.click()
    expect(changes.get_by_text("Rule 20.").first).to_be_visible()
    examine(at_desk, "desk-history")
    rows.first.get_by_role("radio").first.check()
    rows.last.get_by_role("radio").last.check()
    at_desk.get_by_role("button", name="Compare").click()
    expect(changes.locator(".minus").first).to_have_text("−2")  # the script is removed in this direction
    at_desk.get_by_role("link", name="Log", exact=True).click()
    at_desk.get_by_role("row").filter(has_text="the second").get_by_role("link", name="diff").click()
    expect(changes).to_contain_text("Four weeks")


def test_what_needs_attention_is_first(at_desk: Page, desk: Desk) -> None:
    open_skill(at_desk, "library")
    approve(at_desk)
    desk.run("approve", "csv-profile", servers=True)
    at_desk.goto(f"{desk.base}/?origin=books&state=approved")
    expect(at_desk.locator("#results [data-row]")).to_contain_text("hidden text 1")  # it was reviewed
    change_rules(desk, at_desk)
    groups = at_desk.locator("#results .group")
    expect(groups).to_have_text(["Changed since approval", "New", "Decided"])
    expect(at_desk.locator("#results [data-row]").first).to_contain_text("library")
    expect(at_desk.locator("#results [data-row]").first).to_contain_text("4 files not searched")


@rule("A1", "B6")
def test_skills_without_findings_are_approved_together(at_desk: Page, desk: Desk) -> None:
    at_desk.get_by_role("region", name="Origins").get_by_role("link", name="7 to decide").click()
    expect(at_desk.get_by_role("heading", level=1)).to_contain_text("Skills of acme")
    rows = at_desk.locator("[data-row]")
    expect(rows).to_have_count(7)
    expect(rows.filter(has_text="csv-profile").get_by_role("checkbox")).to_have_count(0)
    examine(at_desk, "desk-bulk")
    chosen = rows.filter(has_text="commit-messages").get_by_role("checkbox")
    expect(chosen).to_be_checked()
    chosen.uncheck()
    at_desk.get_by_label("Note").fill("all of these are harmless")
    at_desk.get_by_role("button", name="Approve the ticked skills").click()
    expect(at_desk.get_by_role("status").filter(has_text="3 skills approved")).to_be_visible()
    examine(at_desk, "desk-bulk-done")
    assert len(desk.approvals()) == 3
    assert not any("commit-messages" in uri or "csv-profile" in uri for uri in desk.approvals())
    assert desk.run("log", "--json").count("all of these are harmless") == 3
    at_desk.goto(f"{desk.base}/bulk/books")
    expect(at_desk.get_by_role("checkbox")).to_have_count(1)  # of "release"; "library" has hidden text
    assert LIBRARY not in desk.approvals()


def test_a_long_review_begins_on_the_first_screen(page: Page, tmp_path: Path) -> None:
    """As large as a public skill for documents: a long description, scripts, and many schemas beside them."""
    description = "Use this skill whenever the user wants to create, read or edit a document. " * 11
    body = "# Documents\n\nThe beginning of the text.\n\n" + "More.\n\n" * 200
    schema = b'<schema xmlns="http://www.w3.org/2001/XMLSchema"/>\n'
    tree = {
        "docx/SKILL.md": f"---\nname: docx\ndescription: {json.dumps(description)}\n---\n\n{body}".encode(),
        **{f"docx/scripts/schemas/{number}.xsd": schema for number in range(39)},
        **{f"docx/scripts/{number}.py": b"import os\n" for number in range(12)},
    }
    with (
        serving(write_tree(tmp_path / "served", tree)) as address,
        desk_over(tmp_path, {"acme": {"type": "http", "url": f"{address}/mcp"}}) as desk,
    ):
        page.goto(desk.link)
        for width, height in ((1280, 800), (400, 800), (2000, 1000)):
            page.set_viewport_size({"width": width, "height": height})
            page.goto(f"{desk.base}/skill/acme/docx")
            expect(page.get_by_role("button", name="Approve exactly this")).to_be_in_viewport(ratio=1)
            expect(page.get_by_role("button", name="Decline")).to_be_in_viewport(ratio=1)
            expect(
                page.get_by_role("list", name="Risk").get_by_role("link", name="12 scripts")
            ).to_be_in_viewport()
            expect(page.get_by_text("The beginning of the text.")).to_be_in_viewport(ratio=1)
            page.get_by_text("More.").last.scroll_into_view_if_needed()
            expect(page.get_by_role("button", name="Approve exactly this")).to_be_in_viewport(ratio=1)
        examine(page, "desk-skill-large")


def test_a_skill_with_problems_is_marked(page: Page, tmp_path: Path) -> None:
    broken = skill_md("pointing", body="See [the rules](rules.md).\n")
    with serving(write_tree(tmp_path, {"pointing/SKILL.md": broken})) as address:
        page.goto(address)
        page.get_by_role("link", name="1 problem").click()
        expect(page.get_by_role("region", name="Problems")).to_contain_text("rules.md")
        page.get_by_role("navigation", name="Parts of this skill").get_by_role("link", name="SKILL.md").click()
        expect(page.get_by_role("list", name="Risk")).to_contain_text("1 problem")
