"""The pictures of the documentation, taken from a real run. ``make web-pictures`` writes them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import Page, expect

from trees import replace_file, write_tree
from web.conftest import EXAMPLES
from web.processes import desk_over, serving
from web.stage import BOOKS, servers_of
from web.test_desk import approve, open_skill
from web.test_live import NEW, OLD, waiting

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from playwright.sync_api import ViewportSize

    Picture = Callable[[Page, str], None]

SIZE: ViewportSize = {"width": 1200, "height": 740}


def test_pictures_of_the_catalog(page: Page, picture: Picture, request: pytest.FixtureRequest) -> None:
    page.set_viewport_size(SIZE)
    with serving(EXAMPLES, port=8000 if request.config.getoption("--pictures") else 0) as address:
        page.goto(address)
        expect(page.locator("#results")).not_to_contain_text("not searched")  # in the background
        picture(page, "catalog")
        page.get_by_role("searchbox").fill("chargeback")
        expect(page.locator("#results [data-row]")).to_have_count(1)
        page.set_viewport_size({"width": 1200, "height": 360})
        picture(page, "search")
        page.set_viewport_size(SIZE)
        page.locator("#results [data-row] a.path").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("refunds")
        picture(page, "skill")


def test_pictures_of_the_desk(page: Page, picture: Picture, tmp_path: Path) -> None:
    page.set_viewport_size(SIZE)
    acme = Path(shutil.copytree(EXAMPLES, tmp_path / "acme"))
    books = write_tree(tmp_path / "books", BOOKS)
    with serving(acme) as address, desk_over(tmp_path, servers_of(address, books)) as desk:
        page.goto(desk.link)
        open_skill(page, "library")
        approve(page)
        page.get_by_role("link", name="Overview").first.click()
        rules = books / "library" / "rules.md"
        replace_file(rules, rules.read_text().replace(OLD, NEW).encode())
        expect(page.locator("#results [data-row]").filter(has_text="library")).to_contain_text("changed")
        with desk.agent("library"):
            question = waiting(page).get_by_role("link", name="Allow the model to read library")
            expect(question).to_be_visible()
            expect(page.get_by_role("link", name="Overview")).to_contain_text("1 waiting")
            picture(page, "desk")
            question.click()
            expect(page.get_by_role("region", name="Changes since the approval")).to_be_visible()
            page.emulate_media(color_scheme="dark")
            # The address is the Python of this machine, which is no part of a document.
            page.locator(".crumbs .mono").evaluate("address => address.textContent = 'books-server'")
            picture(page, "review")
