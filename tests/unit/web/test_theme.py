"""Templates and static files."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx2
import pytest
from starlette.applications import Starlette

from pages import Page
from skillwire.web.theme import PAGE_HEADERS, ago, field_texts, moment, render, static_route

if TYPE_CHECKING:
    from skillwire.skill import Json

NOW = 1_800_000_000.0


def static_files() -> httpx2.AsyncClient:
    """A client of the static files alone."""
    transport = httpx2.ASGITransport(app=Starlette(routes=[static_route()]))
    return httpx2.AsyncClient(transport=transport, base_url="http://test")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (3, "just now"),
        (59, "59 seconds ago"),
        (60, "1 minute ago"),
        (7200, "2 hours ago"),
        (86_400 * 3, "3 days ago"),
        (-7200, "in 2 hours"),
        (86_400 * 40, "2026-12-06"),
    ],
)
def test_a_time_is_told_as_people_say_it(seconds: float, words: str) -> None:
    assert ago(NOW - seconds, NOW) == words


def test_a_time_has_the_exact_one_on_hover() -> None:
    assert str(moment(NOW - 60, NOW)) == (
        '<time datetime="2027-01-15T07:59:00Z" title="2027-01-15 07:59:00 UTC">1 minute ago</time>'
    )
    assert str(moment(None)) == ""


def test_each_item_of_the_metadata_is_a_field_of_its_own() -> None:
    fields: dict[str, Json] = {
        "license": "MIT",
        "metadata": {"owner": "billing", "level": 2},
        "x-tags": ["a"],
    }
    assert field_texts(fields) == [
        ("license", "MIT", False),
        ("metadata.owner", "billing", False),
        ("metadata.level", "2", True),
        ("x-tags", '["a"]', True),
    ]


def test_templates_escape() -> None:
    html = render("message.html", frame="base.html", status=404, title='"><script>x</script>')
    assert "<script>x" not in html
    assert "&lt;script&gt;x" in html


@pytest.mark.anyio
async def test_static_files_are_kept_for_good_under_an_address_that_changes_with_them() -> None:
    page = Page(render("message.html", frame="base.html", status=404, title="x", base="/below"))
    styles = [link["href"] for link in page.all("link")]
    assert all(re.fullmatch(r"/below/static/[a-z]+\.[a-z]+\?v=[0-9a-f]{12}", style) for style in styles)
    async with static_files() as web:
        for address in [*styles, *(script["src"] for script in page.all("script"))]:
            answer = await web.get(address.removeprefix("/below"))
            assert answer.status_code == 200
            assert "immutable" in answer.headers["cache-control"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            again = await web.get(
                address.removeprefix("/below"), headers={"If-None-Match": answer.headers["etag"]}
            )
            assert (again.status_code, again.content) == (304, b"")
        old = await web.get("/static/style.css?v=old")
        assert "no-cache" in old.headers["cache-control"]


@pytest.mark.parametrize("name", ["nothing.css", "..%2flook.py", "%2e%2e/look.py"])
@pytest.mark.anyio
async def test_nothing_else_is_static(name: str) -> None:
    async with static_files() as web:
        assert (await web.get(f"/static/{name}")).status_code == 404


@pytest.mark.anyio
async def test_the_static_files_weigh_little() -> None:
    async with static_files() as web:
        answers = [await web.get(f"/static/{name}") for name in ("style.css", "page.js", "icon.svg")]
    assert 0 < sum(len(answer.content) for answer in answers) < 60_000


@pytest.mark.slow  # a cold Python
def test_nothing_heavy_is_imported_before_a_page_is_asked_for() -> None:
    code = (
        "import sys, skillwire.cli.serve, skillwire.server.http, skillwire.web.catalog\n"
        "heavy = {'jinja2', 'markupsafe', 'nh3', 'pygments', 'markdown_it'}; print(heavy & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100, check=True)
    assert done.stdout.strip() == "set()"


def test_a_page_runs_only_our_own_scripts() -> None:
    policy = dict(part.strip().split(" ", 1) for part in PAGE_HEADERS["Content-Security-Policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["img-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in PAGE_HEADERS["Content-Security-Policy"]
