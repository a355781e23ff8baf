"""Rare states of the pages, made real and examined like all other pages."""

from __future__ import annotations

import json
import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import Page, expect

from trees import skill_md, write_tree
from web.conftest import EXAMPLES
from web.looking import examine
from web.processes import address_of, desk_over, issue_token, odd_server, serving, started
from web.stage import BOOKS, servers_of
from web.stranger import posting, strangers_page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.talking import Talking
    from web.processes import Desk
    from web.watching import Watch


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder of the person's own."""
    return write_tree(tmp_path / "own", {"diary/SKILL.md": skill_md("diary")})


def test_skills_of_every_other_state(page: Page, watch: Watch, tmp_path: Path, own: Path) -> None:
    """Local, dynamic, broken, revoked, unlisted, unreachable."""
    watch.excuse("status of 4")
    books = write_tree(tmp_path / "books", BOOKS)
    leaving = write_tree(tmp_path / "leaving", {"farewell/SKILL.md": skill_md("farewell")})
    with odd_server() as odd, started("serve", str(leaving), "--http", "0") as server:
        servers = servers_of(address_of(server), books) | {"odd": {"type": "http", "url": odd}}
        with desk_over(tmp_path, servers, {}, "--folder", str(own)) as desk:
            page.goto(desk.link)
            rows = page.locator("#results [data-row]")
            expect(rows).to_have_count(6)
            for name, place in (("local", "local/diary"), ("dynamic", "odd/made"), ("broken", "odd/bent")):
                page.goto(f"{desk.base}/skill/{place}")
                expect(page.get_by_role("region", name="Details")).to_be_visible()
                examine(page, f"desk-skill-{name}")
            desk.run("approve", "library", servers=True)
            desk.run("approve", "books:release", servers=True)
            desk.run("approvals", "revoke", "library", "--note", "it was too long ago")
            page.goto(f"{desk.base}/skill/books/library")
            expect(page.get_by_role("heading", level=1)).to_contain_text("revoked")
            examine(page, "desk-skill-revoked")
            shutil.rmtree(books / "release")
            server.popen.terminate()
            page.goto(desk.base)
            expect(rows.filter(has_text="farewell")).to_contain_text("unreachable")
            expect(rows.filter(has_text="release")).to_contain_text("approved, not listed")
            page.goto(desk.base)
            examine(page, "desk-overview-states")
            page.goto(f"{desk.base}/origins")
            examine(page, "desk-origins-unreachable")
            page.goto(f"{desk.base}/skill/books/release")
            examine(page, "desk-skill-unlisted")
            page.goto(f"{desk.base}/skill/acme/farewell")
            expect(page.get_by_role("heading", level=1)).to_contain_text("unreachable")
            examine(page, "desk-skill-unreachable")


def test_an_import_says_what_it_took(at_desk: Page, desk: Desk) -> None:
    desk.run("approve", "csv-profile", servers=True)
    export = json.loads(desk.run("approvals", "--json"))
    [approval] = export["approvals"]
    export["approvals"].append({**approval, "origin": "nobody"})
    at_desk.goto(f"{desk.base}/approvals")
    at_desk.get_by_text("Import approvals").click()
    at_desk.get_by_label("The JSON of").fill(json.dumps(export))
    at_desk.get_by_role("button", name="Import").click()
    expect(at_desk.get_by_role("status").filter(has_text="skipped")).to_be_visible()
    examine(at_desk, "desk-imported")
    desk.run("approvals", "revoke", "csv-profile")
    expect(at_desk.locator("#results")).to_contain_text("No skill is approved yet.")  # the page is live too


def test_a_desk_that_is_gone(at_desk: Page, desk: Desk, watch: Watch) -> None:
    watch.excuse("ERR_|Failed to load")
    expect(at_desk.locator("#results [data-row]")).to_have_count(9)
    desk.process.popen.terminate()
    expect(at_desk.locator("#live")).to_have_text("Not connected. Reconnecting …")
    examine(at_desk, "desk-disconnected")


@pytest.fixture
def alone() -> Iterator[Talking]:
    """A server of its own, in a process that can be stopped and killed."""
    with started("serve", str(EXAMPLES), "--http", "0", new=True) as process:
        yield process
        process.popen.send_signal(signal.SIGCONT)


def test_a_search_that_takes_its_time(page: Page, alone: Talking) -> None:
    page.goto(address_of(alone))
    alone.popen.send_signal(signal.SIGSTOP)
    page.get_by_role("searchbox").fill("chargeback")
    expect(page.locator("form[data-slow]")).to_have_count(1)
    expect(page.locator("#results")).to_have_attribute("aria-busy", "true")
    examine(page, "catalog-search-slow")
    alone.popen.send_signal(signal.SIGCONT)
    expect(page.locator("#results [data-row]")).to_have_count(1)
    expect(page.locator("form[data-slow]")).to_have_count(0)


def test_a_search_that_nobody_answers(page: Page, watch: Watch, alone: Talking) -> None:
    watch.excuse("ERR_|Failed to load")
    page.goto(address_of(alone))
    alone.popen.kill()
    alone.popen.wait()
    page.get_by_role("searchbox").fill("chargeback")
    expect(page.locator("#results .error")).to_contain_text("The server did not respond.")
    examine(page, "catalog-search-failed")


def test_who_may_see_nothing_and_who_comes_from_elsewhere(page: Page, watch: Watch, tmp_path: Path) -> None:
    watch.excuse("status of 40[13]")
    token = issue_token(tmp_path / "access.toml", "nobody", "nowhere")
    with serving(EXAMPLES, "--access", str(tmp_path / "access.toml")) as address:
        page.goto(address)
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("No skills are listed for you.")).to_be_visible()
        examine(page, "catalog-signed-in-empty")
        with strangers_page(posting(f"{address}/sign-in", {"token": token})) as port:
            page.goto(f"http://127.0.0.1:{port}/")
            page.get_by_role("button", name="Win a prize").click()
            expect(page.get_by_role("heading", level=1)).to_have_text("Refused")
            examine(page, "catalog-foreign")


def test_a_skill_whose_server_is_away_behind_a_gateway(page: Page, watch: Watch, tmp_path: Path) -> None:
    watch.excuse("status of 5")
    with started("serve", str(EXAMPLES), "--http", "0") as server:
        config = tmp_path / "servers.json"
        config.write_text(
            json.dumps(
                {
                    "mcpServers": {
                        "acme": {"type": "http", "url": f"{address_of(server)}/mcp"},
                        "gone": {"type": "http", "url": "http://127.0.0.1:1/mcp"},
                    }
                }
            )
        )
        policy = tmp_path / "gateway.toml"
        policy.write_text('mode = "observe"\n')
        words = [
            "--config",
            str(config),
            "--policy",
            str(policy),
            "--state",
            str(tmp_path / "state"),
            "--http",
            "0",
        ]
        with started("gateway", *words) as gateway:
            address = address_of(gateway)
            page.goto(address)
            expect(page.locator("#results [data-row]")).to_have_count(7)
            expect(page.get_by_role("list", name="Upstreams")).to_contain_text("unreachable")
            examine(page, "gateway-home")
            page.goto(f"{address}/skill/acme/csv-profile")
            examine(page, "gateway-skill")
            server.popen.terminate()
            server.popen.wait()
            page.goto(f"{address}/file/acme/csv-profile/references/output.md")
            expect(page.get_by_role("heading", level=1)).to_have_text("This page cannot be shown")
            examine(page, "catalog-trouble")
