"""The catalog in a browser, as a user sees it after starting a server."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from trees import skill_md, write_tree
from web.conftest import EXAMPLES
from web.processes import issue_token, serving

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext

    from web.watching import Watch

WORD = "chargeback"  # stands in the body of one skill, and in no name and no description


def search(page: Page, words: str) -> None:
    page.get_by_role("searchbox").press_sequentially(words, delay=15)


def test_a_word_in_a_body_leads_to_the_skill_and_to_the_line_that_connects_a_host(
    page: Page, context: BrowserContext, catalog: str
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=catalog)
    page.goto(catalog)
    expect(page.locator("#results [data-summary]")).to_have_text("7 skills")
    page.evaluate("window.stays = true")
    search(page, WORD)

    results = page.locator("#results [data-row]")
    expect(results).to_have_count(1)
    expect(results.locator("mark.found").first).to_contain_text(WORD, ignore_case=True)
    assert page.evaluate("window.stays"), "it was searched without loading the page again"
    results.locator("a.path").click()

    expect(page.get_by_role("heading", level=1)).to_have_text("refunds")
    expect(page.get_by_role("article", name="SKILL.md")).to_contain_text(WORD, ignore_case=True)
    page.get_by_role("link", name="Install").first.click()
    page.get_by_role("button", name="Copy the command for Claude Code").click()
    line = page.evaluate("navigator.clipboard.readText()")
    assert re.fullmatch(rf"claude mcp add --transport http \S+ {re.escape(catalog)}/mcp", line)


def test_the_word_is_in_no_name_and_no_description() -> None:
    """Or the test above would prove less than it says."""
    texts = [path.read_text() for path in EXAMPLES.rglob("SKILL.md")]
    assert sum(WORD in text.lower() for text in texts) == 1
    assert not any(WORD in text.lower().split("---")[1] for text in texts)


ADDRESSES = {
    "/skill/release/changelog": "changelog",
    "/?under=acme/billing": "Skills under acme/billing",
    "/search?q=slides": "Search",
    "/file/csv-profile/scripts/profile_csv.py#L12": "scripts/profile_csv.py",
    "/file/brand-slides/assets/logo.png": "assets/logo.png",
    "/problems": "Problems",
    "/connect": "Connect a host",
}


def test_an_address_leads_to_its_page_and_stays(page: Page, catalog: str) -> None:
    for path, shown in ADDRESSES.items():
        page.goto("about:blank")
        page.goto(f"{catalog}{path}")
        for _ in range(2):
            expect(page.get_by_role("heading", level=1)).to_have_text(shown)
            assert page.url == f"{catalog}{path}"
            page.reload()


def test_a_line_of_a_file_has_an_address(page: Page, catalog: str) -> None:
    page.goto(f"{catalog}/file/csv-profile/scripts/profile_csv.py")
    page.locator("#L12 > a").click()
    assert page.url.endswith("#L12")
    expect(page.locator("#L12")).to_be_in_viewport()


def test_a_picture_is_shown_and_other_files_are_downloaded(page: Page, catalog: str) -> None:
    page.goto(f"{catalog}/file/brand-slides/assets/logo.png")
    expect(page.get_by_role("img", name="logo.png")).to_have_js_property("naturalWidth", 328)
    page.goto(f"{catalog}/file/brand-slides/deck.md")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.path().read_bytes() == (EXAMPLES / "brand-slides/deck.md").read_bytes()


def test_a_file_is_wrapped_and_a_skill_is_downloaded_with_its_digest(page: Page, catalog: str) -> None:
    page.goto(f"{catalog}/file/csv-profile/scripts/profile_csv.py")
    wrap = page.get_by_role("button", name="Wrap lines")
    wrap.click()
    expect(wrap).to_have_attribute("aria-pressed", "true")
    expect(page.locator("#source.wrapped")).to_be_visible()
    page.get_by_role("complementary").get_by_role("link", name="output.md").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("references/output.md")
    page.goto(f"{catalog}/skill/csv-profile?tab=install")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as zip").click()
    digest = hashlib.sha256(download.value.path().read_bytes()).hexdigest()
    expect(page.get_by_role("region", name="Download")).to_contain_text(f"sha256:{digest}")
    for title, scheme in (("Cursor", "cursor://"), ("VS Code", "vscode:")):
        page.get_by_role("region", name="Or connect").get_by_text(title, exact=True).click()
        link = page.get_by_role("link", name=f"Add to {title}")
        expect(link).to_have_attribute("href", re.compile(re.escape(scheme)))


def test_links_in_a_skill_lead_to_its_files(page: Page, catalog: str) -> None:
    page.goto(f"{catalog}/skill/brand-slides")
    page.get_by_role("article").get_by_role("link", name="deck.md").first.click()
    expect(page).to_have_url(f"{catalog}/file/brand-slides/deck.md")


def test_everything_can_be_reached_with_keys(page: Page, catalog: str) -> None:
    page.goto(catalog)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("release", delay=15)
    rows = page.locator("#results [data-row]")
    expect(page.locator("#results [data-summary]")).to_contain_text("release")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(rows.nth(0).locator("a.path")).to_be_focused()
    page.keyboard.press("j")
    expect(rows.nth(1).locator("a.path")).to_be_focused()
    page.keyboard.press("k")
    wanted = rows.nth(0).locator("a.path").get_attribute("href")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{catalog}{wanted}")


def test_the_keys_are_told(page: Page, catalog: str) -> None:
    page.goto(catalog)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.get_by_role("button", name="Keys").click()
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()


def test_an_emptied_search_shows_the_list_again(page: Page, catalog: str) -> None:
    page.goto(catalog)
    search(page, "xylophone")
    expect(page.locator("#results")).to_contain_text("No skills found for")
    page.get_by_role("searchbox").fill("")
    expect(page.locator("#results [data-summary]")).to_have_text("7 skills")
    assert page.url == f"{catalog}/"


def test_an_emptied_search_goes_back_to_the_folder_where_it_began(page: Page, catalog: str) -> None:
    page.goto(f"{catalog}/?under=acme")
    rows = page.locator("#results [data-row]")
    before = rows.count()
    search(page, "release")
    expect(page.locator("#results [data-summary]")).to_contain_text("release")
    page.get_by_role("searchbox").fill("")
    expect(page.get_by_role("heading", level=1)).to_contain_text("under acme")
    expect(rows).to_have_count(before)
    assert page.url == f"{catalog}/?under=acme"


def test_an_answer_that_comes_late_leaves_the_focus_where_it_is(page: Page, catalog: str) -> None:
    page.goto(f"{catalog}/search?q=refund")
    page.keyboard.press("j")
    focused = page.locator("#results [data-row] a:focus")
    wanted = focused.get_attribute("href")
    # As if the last letter had been typed just before: the answer replaces the row that has the focus.
    page.evaluate("""() => {
        document.querySelector("#results").firstElementChild.dataset.old = "";
        const field = document.querySelector("input[type=search]");
        field.value += "s";
        field.dispatchEvent(new Event("input"));
    }""")
    expect(page.locator("#results [data-old]")).to_have_count(0)
    assert focused.get_attribute("href") == wanted


def test_rows_without_a_link_are_reached_with_keys_too(page: Page, hostile_catalog: str) -> None:
    page.goto(f"{hostile_catalog}/skill/hostile?tab=findings")
    rows = page.locator("[data-row]")
    expect(rows.locator("a")).to_have_count(0)
    for at, key in enumerate("jjk"):
        page.keyboard.press(key)
        expect(rows.nth((0, 1, 0)[at])).to_be_focused()


def test_going_back_shows_what_was_searched(page: Page, catalog: str) -> None:
    page.goto(catalog)
    search(page, WORD)
    expect(page.locator("#results [data-row]")).to_have_count(1)
    page.locator("#results [data-row] a.path").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("refunds")
    page.go_back()
    expect(page.locator("#results [data-row]")).to_have_count(1)
    expect(page.get_by_role("searchbox")).to_have_value(WORD)


def test_back_leaves_a_search(page: Page, catalog: str) -> None:
    page.goto(f"{catalog}/?under=acme")
    search(page, WORD)
    expect(page.get_by_role("heading", level=1)).to_have_text("Search")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text("under acme")
    expect(page.get_by_role("searchbox")).to_have_value("")


def test_a_change_on_the_disk_appears_without_reloading(page: Page, tmp_path: Path) -> None:
    write_tree(tmp_path, {"one/SKILL.md": skill_md("one")})
    with serving(tmp_path) as address:
        page.goto(address)
        page.evaluate("window.stays = true")
        expect(page.locator("#results [data-summary]")).to_have_text("1 skill")
        write_tree(tmp_path, {"two/SKILL.md": skill_md("two", description="Came later.")})
        expect(page.get_by_text("Came later.")).to_be_visible()
        assert page.evaluate("window.stays")


def test_the_whole_row_opens_a_skill_and_a_chip_its_evidence(page: Page, catalog: str) -> None:
    page.goto(catalog)
    row = page.locator("#results [data-row]").filter(has_text="csv-profile")
    row.get_by_role("link", name="1 script").click()
    expect(page.get_by_role("region", name="Scripts")).to_contain_text("scripts/profile_csv.py")
    page.go_back()
    row.locator("td").last.click(force=True)
    expect(page.get_by_role("heading", level=1)).to_have_text("csv-profile")


def test_filters_are_applied_when_they_are_chosen(page: Page, catalog: str) -> None:
    page.goto(catalog)
    page.get_by_label("Contains").select_option("scripts")
    expect(page.locator("#results [data-row]")).to_have_count(1)
    assert "has=scripts" in page.url


def test_the_theme_is_chosen_and_kept(page: Page, catalog: str) -> None:
    page.goto(catalog)
    page.get_by_role("button", name="Change between light and dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto(f"{catalog}/connect")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"


def test_without_scripts_everything_is_there_too(browser: Browser, catalog: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(catalog)
    page.get_by_role("searchbox").fill(WORD)
    page.keyboard.press("Enter")
    page.locator("#results [data-row] a.path").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("refunds")
    page.get_by_role("link", name="Install").first.click()
    expect(page.get_by_text("claude mcp add")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Copy"))).to_have_count(0)
    context.close()


def test_what_is_wrong_with_a_tree_has_a_page(page: Page, tmp_path: Path) -> None:
    tree = {
        "fine/SKILL.md": skill_md("fine"),
        "other/SKILL.md": skill_md("another"),
        "broken/SKILL.md": b"---\nname: broken\n",
        "fine/.env": b"KEY=1\n",
    }
    with serving(write_tree(tmp_path, tree)) as address:
        page.goto(address)
        page.get_by_role("link", name="Problems").click()
        refused = page.get_by_role("region", name="Not served")
        expect(refused.locator("[data-row]")).to_have_count(2)
        expect(refused).to_contain_text("other/SKILL.md")
        expect(page.get_by_role("region", name="Ignored by name")).to_contain_text("fine/.env")
        assert str(tmp_path) not in page.content()


def test_what_is_not_there_is_said_in_words(page: Page, watch: Watch, catalog: str) -> None:
    watch.excuse("status of 404")
    answer = page.goto(f"{catalog}/skill/no/such/skill")
    assert answer is not None
    assert answer.status == 404
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")
    page.get_by_role("link", name="Show all skills").click()
    expect(page).to_have_url(f"{catalog}/")


def test_a_token_opens_what_it_may_see_and_nothing_more(page: Page, watch: Watch, tmp_path: Path) -> None:
    watch.excuse("status of 40[14]")
    token = issue_token(tmp_path / "access.toml", "billing-agents", "acme/billing")
    with serving(EXAMPLES, "--access", str(tmp_path / "access.toml")) as address:
        page.goto(f"{address}/skill/acme/billing/refunds")
        expect(page.get_by_label("Token")).to_be_focused()
        page.get_by_label("Token").fill("something else")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("Token not recognised")
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("refunds")
        expect(page.get_by_text("signed in as billing-agents")).to_be_visible()
        assert page.url == f"{address}/skill/acme/billing/refunds"
        assert token not in page.content()
        assert page.evaluate("document.cookie") == ""
        page.goto(address)
        expect(page.locator("[data-row]")).to_have_count(1)
        answer = page.goto(f"{address}/skill/release")
        assert answer is not None
        assert answer.status == 404
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("Token")).to_be_visible()
