"""Error pages: unknown addresses, and unexpected exceptions."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

import pytest

from interaction.page_stage import ACCESS, TOKENS, TREE, got, serving
from rules import rule
from skillwire import MemoryCatalog
from skillwire.lowlevel import GeneratedCatalog
from skillwire.skill.entry import Partial, Resource, SkillEntry
from skillwire.web.catalog.pages import describe_amount, list_files
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", TREE)


async def test_below_our_pages_there_is_a_page_for_what_does_not_exist(root: Path) -> None:
    addresses = [
        "/connect/x",
        "/search/x/y",
        "/problems/x",
        "/sign-in/x",
        "/sign-out/x",
        "/static/a/b",
        "/skill/x",
    ]
    async with serving(root) as web:
        for address in addresses:
            assert "/" in (await got(web, address, 404)).links
    async with serving(root, ACCESS) as web:
        for address in addresses:
            forms = (await got(web, address, 401)).all("form")
            assert "/sign-in" in {form.get("action") for form in forms}, address


async def test_elsewhere_the_server_answers_as_it_did(root: Path) -> None:
    async with serving(root) as web:
        for address in ("/nothing", "/nothing/below", "/.well-known/oauth-protected-resource"):
            answer = await web.get(address)
            assert (answer.status_code, answer.text) == (404, "Not Found")


async def test_an_address_for_forms_is_a_page_to_whoever_opens_it(root: Path) -> None:
    async with serving(root) as web:
        assert (await web.get("/sign-in")).headers["location"] == "/"
        refused = await got(web, "/sign-out", 405)
        assert "[method-refused]" in refused.text
        posted = await web.post("/")
        assert (posted.status_code, "GET" in posted.headers["allow"]) == (405, True)
        assert "<h1>" in posted.text
    async with serving(root, ACCESS, public_url="https://skills.example.com/below/mcp") as web:
        asked = await got(web, "/sign-in", 401)
        assert asked.all("input")[1]["value"] == "/below/"
        web.headers["Authorization"] = f"Bearer {TOKENS['all']}"
        assert (await web.get("/sign-in")).headers["location"] == "/below/"


class Broken(MemoryCatalog):
    """A catalog with a defect."""

    async def problems(self) -> list[object]:  # type: ignore[override]
        raise RuntimeError("token=SECRET123 in /srv/private")


async def test_what_nobody_expected_is_a_calm_page_with_a_number(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Broken()) as web:
        with caplog.at_level(logging.ERROR, logger="skillwire.page"):
            page = await got(web, "/problems", 500)
        await got(web, "/")
    number = re.search(r"\[unexpected ([0-9a-f]{8})\]", page.text)
    assert number is not None
    assert number[1] in caplog.text
    assert "SECRET123" in caplog.text
    for word in ("SECRET123", "private", "RuntimeError", "Traceback"):
        assert word not in page.html


@rule("E2b")
async def test_a_page_says_no_size_and_no_count_that_is_not_known() -> None:
    """What a server did not promise is not made up."""
    catalog = GeneratedCatalog()
    catalog.add("made", lambda: {"SKILL.md": skill_md("made"), "notes.md": b"x"}, dynamic=True)
    async with serving(catalog) as web:
        page = await got(web, "/skill/made")
        assert {"/file/made/SKILL.md", "/file/made/notes.md"} <= set(page.links)
        assert not re.search(r"\d (B|KiB)\b", page.text)


async def test_what_is_promised_of_files_is_said_and_no_more() -> None:
    uri, digest = "skill://a/SKILL.md", f"sha256:{'0' * 64}"
    known, unsized = Resource(uri, digest, 2048), Resource("skill://a/b", digest, None)
    said = {}
    for name, resources in {
        "whole": (known,), "unsized": (known, unsized), "partial": Partial((known,)), "named": Partial(()),
    }.items():  # fmt: skip
        entry = SkillEntry(uri, {"name": "a", "description": "x"}, resources)
        said[name] = describe_amount(entry, await list_files(MemoryCatalog(), entry))
    assert {name: re.findall(r"[\d.]+(?: KiB)?", text) for name, text in said.items()} == {
        "whole": ["1", "2.0 KiB"],
        "unsized": ["2"],
        "partial": ["1"],
        "named": [],
    }
    assert len(set(said.values())) == 4
