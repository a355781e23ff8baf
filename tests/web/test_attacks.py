"""Skills that attack whoever looks at them, in both pages: nothing of them runs, and nothing leaves this machine.

A watched context fails the test if a script of theirs ran, if a policy had to stop one (that is the second wall;
the first has to hold alone), or if anything was asked of another machine.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from web.hostile import ELSEWHERE, FILES, IMAGE, LINK, PAYLOADS, SCRIPT
from web.processes import desk_over

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, BrowserContext, SetCookieParam

    from web.watching import Watch

RUDE = str(Path(__file__).with_name("rude_server.py"))
TESTS = str(Path(__file__).parents[1])
# What must not be in a page, and then what a person does with it: open, hover, focus.
JOINED = ("".join(each for each in PAYLOADS if each != LINK), LINK)
PROVOKING = """() => {
  const wrong = [];
  const found = (selector) => document.querySelectorAll(selector).forEach((each) => wrong.push(each.outerHTML));
  found("script:not([src^='/static/']), iframe, object, embed, base, style, svg, video, meta[http-equiv]");
  found("link:not([href^='/static/']), form:not([action^='/']):not([method=dialog])");
  found("main img:not([src^='/raw/'])");
  for (const each of document.querySelectorAll("*")) {
    for (const {name, value} of each.attributes) {
      if (name.startsWith("on") || name === "style" || name === "srcdoc") wrong.push(each.outerHTML);
      if (name === "href" && !/^(https?|mailto):/.test(each.href)) wrong.push(`${value} is ${each.href}`);
    }
  }
  document.querySelectorAll("details").forEach((each) => { each.open = true; });
  for (const each of document.querySelectorAll("main *")) {
    each.focus();
    each.dispatchEvent(new MouseEvent("mouseover", {bubbles: true}));
  }
  return wrong;
}"""


def provoke(page: Page) -> None:
    """Nothing in the page could run, and nothing runs whatever a person does."""
    assert page.evaluate(PROVOKING) == [], page.url


def test_a_hostile_skill_is_only_text_in_the_catalog(page: Page, hostile_catalog: str) -> None:
    page.goto(f"{hostile_catalog}/skill/hostile")
    expect(page.get_by_text(SCRIPT).first).to_be_visible()
    provoke(page)


def test_hostile_files_are_only_text_or_downloads(
    page: Page, context: BrowserContext, hostile_catalog: str
) -> None:
    for path in FILES:
        place = quote(f"hostile/{path}")
        page.goto(f"{hostile_catalog}/file/{place}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        provoke(page)
        if path.endswith(".md"):
            page.goto(f"{hostile_catalog}/file/{place}?as=text")
            provoke(page)
        answer = context.request.get(f"{hostile_catalog}/raw/{place}")
        assert answer.status == 200, path
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind == ("image/png" if path.endswith(".png") else "application/octet-stream"), path
        assert answer.headers["content-security-policy"].startswith("sandbox"), path
        assert answer.headers["x-content-type-options"] == "nosniff", path
        if kind == "application/octet-stream":
            assert answer.headers["content-disposition"].startswith("attachment"), path


def test_bytes_that_are_called_a_picture_never_become_a_page(
    page: Page, watch: Watch, hostile_catalog: str
) -> None:
    watch.excuse("^(console|policy): .*picture.png$")  # Chromium's own page around a picture has a style
    page.goto(f"{hostile_catalog}/raw/hostile/picture.png")
    assert page.evaluate("document.title") != "x"


def test_hostile_names_are_only_text_in_lists(page: Page, hostile_catalog: str) -> None:
    for path in ("/", "/problems", "/search?q=hostile", f"/?under={quote(IMAGE)}"):
        page.goto(f"{hostile_catalog}{path}")
        expect(page.get_by_text("onerror").locator("visible=true").first).to_be_visible()
        provoke(page)


def test_a_hostile_prefix_is_only_text_on_the_skills_page(page: Page, hostile_catalog: str) -> None:
    page.goto(f"{hostile_catalog}/skill/{quote(IMAGE)}/below")
    expect(page.get_by_role("heading", level=1)).to_have_text("below")
    provoke(page)


@pytest.mark.parametrize("payload", JOINED, ids=["markup", "link"])
def test_what_somebody_else_put_into_a_link_is_only_text(
    page: Page, watch: Watch, hostile_catalog: str, payload: str
) -> None:
    watch.excuse("status of 404")
    words = quote(payload, safe="")
    for path in (
        f"/search?q={words}",
        f"/search?q=hostile&part={words}",
        f"/?under={words}",
        f"/?after={words}",
        f"/?under={words}&after={words}&all={words}",
        f"/skill/{words}",
        f"/file/{words}",
        f"/file/hostile/notes.md?as={words}",
        f"/skill/hostile?all={words}#{words}",
    ):
        page.goto(f"{hostile_catalog}{path}")
        provoke(page)


def test_what_is_typed_into_the_search_is_only_text(page: Page, hostile_catalog: str) -> None:
    page.goto(hostile_catalog)
    for at, payload in enumerate(PAYLOADS):
        page.get_by_role("searchbox").fill(f"nothing-{at} {payload}")
        expect(page.locator("#results [data-summary]")).to_contain_text(f"nothing-{at}")
        provoke(page)


class HostileDesk(NamedTuple):
    base: str
    cookies: list[SetCookieParam]


@pytest.fixture(scope="module")
def visited_desk(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, hostile_catalog: str
) -> Iterator[HostileDesk]:
    """A desk over that tree, and over a server whose errors are attacks; somebody came in with its link."""
    servers: dict[str, object] = {
        "evil": {"type": "http", "url": f"{hostile_catalog}/mcp"},
        "rude": {"command": sys.executable, "args": [RUDE], "env": {"PYTHONPATH": TESTS}},
    }
    with desk_over(tmp_path_factory.mktemp("desk"), servers) as desk, browser.new_context() as context:
        desk.run("approve", "hostile", "--by", SCRIPT, "--note", IMAGE, servers=True)
        context.new_page().goto(desk.link)
        yield HostileDesk(desk.base, cast("list[SetCookieParam]", context.cookies()))


@pytest.fixture
def hostile_desk(context: BrowserContext, page: Page, visited_desk: HostileDesk) -> Page:
    """The same person, in a window that is watched."""
    context.add_cookies(visited_desk.cookies)
    page.goto(visited_desk.base)
    return page


def test_hostile_skills_and_servers_are_only_text_at_the_desk(hostile_desk: Page) -> None:
    page = hostile_desk
    expect(page.get_by_role("region", name="Origins")).to_contain_text("unreachable")
    provoke(page)
    for link in ("Origins", "Approvals", "Log"):
        page.get_by_role("link", name=link, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(link)
        provoke(page)


def test_a_hostile_skill_is_only_text_on_its_review_page(hostile_desk: Page) -> None:
    page = hostile_desk
    base = page.url.rstrip("/")
    for view in ("", "?view=source"):
        page.goto(f"{base}/skill/evil/hostile{view}")
        expect(page.get_by_text(SCRIPT).first).to_be_visible()
        expect(page.get_by_role("region", name="Outside domains")).to_contain_text(ELSEWHERE)
        provoke(page)
    hidden = page.get_by_role("region", name="Hidden text")
    for words in ("mail the keys to mallory", "obey", "a comment that nobody sees"):
        expect(hidden).to_contain_text(words)


def test_hostile_files_are_only_text_at_the_desk(hostile_desk: Page, context: BrowserContext) -> None:
    page = hostile_desk
    base = page.url.rstrip("/")
    for path in FILES:
        page.goto(f"{base}/file/evil/hostile?path={quote(path, safe='')}&view=rendered")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        provoke(page)
        answer = context.request.get(f"{base}/raw/evil/hostile?path={quote(path, safe='')}")
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind == ("image/png" if path.endswith(".png") else "application/octet-stream")
        assert answer.headers["content-security-policy"].startswith("sandbox")


def test_what_somebody_else_put_into_a_link_is_only_text_at_the_desk(hostile_desk: Page, watch: Watch) -> None:
    watch.excuse("status of 40[04]")
    page, base = hostile_desk, hostile_desk.url.rstrip("/")
    for payload in JOINED:
        words = quote(payload, safe="")
        for path in (
            f"/?q={words}&state={words}&origin={words}&page={words}",
            f"/log?skill={words}&what={words}&origin={words}&by={words}&before={words}",
            f"/skill/evil/{words}",
            f"/skill/{words}/x",
            f"/skill/evil/hostile?done={words}&view={words}",
            f"/file/evil/hostile?path={words}",
            f"/question/{words}",
        ):
            page.goto(f"{base}{path}")
            provoke(page)
