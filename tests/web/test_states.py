"""Every page in every state: it fits narrow and wide windows, in both themes, holds still, has no grave barriers.

`make web-pictures` keeps a picture of each. Look at them after a change of the design.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from trees import replace_file, skill_md, write_tree
from web.conftest import EXAMPLES
from web.looking import examine
from web.processes import desk_over, issue_token, serving
from web.stage import LONG
from web.test_attacks import RUDE, TESTS
from web.test_desk import approve, confirm_findings, open_skill
from web.test_live import NEW, OLD, waiting

if TYPE_CHECKING:
    from pathlib import Path

    from web.processes import Desk
    from web.watching import Watch


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("list", "/"),
        ("list-folder", "/?under=acme"),
        ("list-folder-empty", "/?under=nothing"),
        ("search", "/search?q=chargeback"),
        ("search-nothing", "/search?q=xylophone"),
        ("skill", "/skill/acme/billing/refunds"),
        ("skill-long", "/skill/brand-slides"),
        ("skill-files", "/skill/csv-profile?tab=files"),
        ("skill-findings", "/skill/csv-profile?tab=findings"),
        ("skill-install", "/skill/csv-profile?tab=install"),
        ("skill-details", "/skill/csv-profile?tab=details"),
        ("file-line", "/file/csv-profile/scripts/profile_csv.py#L12"),
        ("file-prose", "/file/brand-slides/deck.md"),
        ("file-source", "/file/brand-slides/deck.md?as=text"),
        ("file-picture", "/file/brand-slides/assets/logo.png"),
        ("no-problems", "/problems"),
        ("connect", "/connect"),
        ("not-found", "/skill/nothing"),
    ],
)
def test_the_catalog(page: Page, watch: Watch, catalog: str, name: str, path: str) -> None:
    watch.excuse("status of 404")
    page.goto(f"{catalog}{path}")
    examine(page, f"catalog-{name}")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("list", "/"),
        ("skill", "/skill/hostile"),
        ("findings", "/skill/hostile?tab=findings"),
        ("file-prose", "/file/hostile/notes.md"),
        ("file-broken-picture", "/file/hostile/picture.png"),
        ("problems", "/problems"),
    ],
)
def test_the_catalog_of_somebody_hostile(page: Page, hostile_catalog: str, name: str, path: str) -> None:
    page.goto(f"{hostile_catalog}{path}")
    examine(page, f"hostile-{name}")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("list", "/"),
        ("folder", f"/?under=deep/{LONG}"),
        ("long", f"/skill/{LONG}"),
        ("deep", f"/skill/deep/{LONG}/in/{LONG}"),
        ("chinese", "/skill/chinese"),
        ("empty", "/skill/empty"),
        ("many-files", "/skill/many?tab=files"),
        ("many-findings", "/skill/many?tab=findings"),
        ("github", "/skill/github"),
        ("problems", "/problems"),
    ],
)
def test_odd_skills(page: Page, odd_catalog: str, name: str, path: str) -> None:
    page.goto(f"{odd_catalog}{path}")
    examine(page, f"odd-{name}")


def test_odd_skills_at_the_desk(page: Page, odd_catalog: str, tmp_path: Path) -> None:
    with desk_over(tmp_path, {"acme": {"type": "http", "url": f"{odd_catalog}/mcp"}}) as desk:
        page.goto(desk.link)
        expect(page.locator("#results [data-row]")).to_have_count(6)
        examine(page, "odd-desk-overview")
        for name, path in (("many", "many"), ("long", LONG), ("chinese", "chinese")):
            page.goto(f"{desk.base}/skill/acme/{path}")
            examine(page, f"odd-desk-{name}")


def test_the_keys_and_a_live_search(page: Page, catalog: str) -> None:
    page.goto(catalog)
    page.keyboard.press("?")
    examine(page, "catalog-keys")
    page.keyboard.press("Escape")
    page.get_by_role("searchbox").fill("chargeback")
    expect(page.locator("#results [data-row]")).to_have_count(1)
    examine(page, "catalog-search-live")


def test_unusual_catalogs(page: Page, watch: Watch, tmp_path: Path) -> None:
    watch.excuse("status of 401")
    (tmp_path / "empty").mkdir()
    with serving(tmp_path / "empty") as address:
        page.goto(address)
        examine(page, "catalog-empty")
    many = {f"group-{n % 7}/skill-{n}/SKILL.md": skill_md(f"skill-{n}") for n in range(250)}
    files = {"zeros.bin": bytes(64), "nothing.txt": b"", "long.txt": b"x" * 999}
    odd = {f"odd/{name}": data for name, data in {**files, "SKILL.md": skill_md("odd")}.items()}
    with serving(write_tree(tmp_path / "many", {**many, **odd})) as address:
        for name, path in (
            ("", "/"),
            ("-next", "/?page=2"),
            ("-end", "/?page=99"),
            ("-filtered", "/?has=none&sort=size"),
        ):
            page.goto(f"{address}{path}")
            examine(page, f"catalog-many{name}")
        for file in files:
            page.goto(f"{address}/file/odd/{file}")
            examine(page, f"catalog-file-{file}")
    issue_token(tmp_path / "access.toml", "nobody", "nowhere")
    with serving(EXAMPLES, "--access", str(tmp_path / "access.toml")) as address:
        page.goto(address)
        examine(page, "catalog-sign-in")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_be_visible()
        examine(page, "catalog-sign-in-wrong")


def test_the_desk(at_desk: Page, desk: Desk, watch: Watch) -> None:
    watch.excuse("status of 4")
    expect(at_desk.locator("#results [data-row]")).to_have_count(9)
    examine(at_desk, "desk-overview")
    at_desk.goto(f"{desk.base}/?q=xylophone")
    examine(at_desk, "desk-overview-nothing")
    for page in ("approvals", "log", "origins"):
        at_desk.goto(f"{desk.base}/{page}")
        examine(at_desk, f"desk-{page}")
    for name, path in (
        ("file", "/file/books/library?path=rules.md"),
        ("file-rendered", "/file/books/library?path=rules.md&view=rendered"),
        ("file-picture", "/file/acme/brand-slides?path=assets/logo.png"),
        ("skill-unknown", "/skill/books/nothing"),
        ("question-gone", "/question/nothing"),
        ("log-nothing", "/log?skill=xylophone"),
    ):
        at_desk.goto(f"{desk.base}{path}")
        examine(at_desk, f"desk-{name}")


def test_a_skill_at_the_desk_from_new_to_changed(at_desk: Page, desk: Desk, watch: Watch) -> None:
    watch.excuse("status of 4")
    open_skill(at_desk, "library")
    examine(at_desk, "desk-skill-new")
    at_desk.goto(f"{at_desk.url}?view=source")
    examine(at_desk, "desk-skill-source")
    at_desk.keyboard.press("a")
    examine(at_desk, "desk-skill-confirm")
    at_desk.keyboard.press("Escape")
    at_desk.get_by_role("button", name="Decline").click()
    expect(at_desk.get_by_role("heading", level=1)).to_contain_text("declined")
    examine(at_desk, "desk-skill-declined")
    approve(at_desk, "a note of some length, which says why this is a good idea")
    examine(at_desk, "desk-skill-approved")
    at_desk.goto(f"{desk.base}/approvals")
    examine(at_desk, "desk-approvals-some")
    at_desk.goto(f"{desk.base}/log")
    examine(at_desk, "desk-log-some")
    open_skill(at_desk, "library")
    rules = desk.trees["books"] / "library" / "rules.md"
    replace_file(rules, rules.read_text().replace(OLD, NEW).encode())
    (desk.trees["books"] / "library" / "more.md").write_text("A new file.\n")
    expect(at_desk.get_by_role("alert")).to_contain_text("The skill changed while you were reading.")
    examine(at_desk, "desk-skill-moved")
    at_desk.goto(f"{desk.base}/skill/books/library")
    expect(at_desk.get_by_role("region", name="Changes since the approval")).to_be_visible()
    examine(at_desk, "desk-skill-changed")
    (desk.trees["books"] / "library" / "more.md").write_text("Another new file.\n")
    expect(at_desk.get_by_role("alert")).to_be_visible()
    confirm_findings(at_desk)
    at_desk.get_by_role("button", name="Approve exactly this").click()
    expect(at_desk.get_by_role("heading", level=1)).to_have_text("The skill changed while you were reading")
    examine(at_desk, "desk-changed")
    at_desk.goto(f"{desk.base}/")
    examine(at_desk, "desk-overview-changed")


def test_questions_at_the_desk(at_desk: Page, desk: Desk) -> None:
    with desk.asking("library"), desk.asking("library", label="elsewhere"):
        question = waiting(at_desk).get_by_role("link", name="Allow the model to read library from elsewhere?")
        expect(question).to_be_visible()
        examine(at_desk, "desk-overview-waiting")
        question.click()
        examine(at_desk, "desk-question")
        at_desk.goto(f"{desk.base}/skill/books/library")
        expect(at_desk.get_by_text("waits for your answer")).to_be_visible()
        examine(at_desk, "desk-skill-waiting")


def test_desks_in_trouble(page: Page, watch: Watch, tmp_path: Path) -> None:
    watch.excuse("status of 4")
    servers: dict[str, object] = {
        "gone": {"type": "http", "url": "http://127.0.0.1:1/mcp"},
        "rude": {"command": sys.executable, "args": [RUDE], "env": {"PYTHONPATH": TESTS}},
    }
    for name, configured in (("empty", {}), ("troubled", servers)):
        (tmp_path / name).mkdir()
        with desk_over(tmp_path / name, configured) as desk:
            page.goto(desk.base)
            examine(page, "desk-no-session")
            page.goto(desk.link)
            origins = page.get_by_role("region", name="Origins")
            expect(origins.get_by_text("unreachable")).to_have_count(len(configured))
            examine(page, f"desk-{name}")
            page.goto(f"{desk.base}/origins")
            examine(page, f"desk-{name}-origins")
            page.context.clear_cookies()
            page.goto(desk.link)
            examine(page, "desk-link-used")
