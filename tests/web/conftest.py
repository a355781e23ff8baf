"""One browser for all tests of a worker, a watched context for each test, and processes that people would start.

All of it is synchronous: Playwright's loop runs in this thread, so agents and servers are processes of their own.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from trees import write_tree
from web import hostile
from web.looking import ARTEFACTS, KEEP_PICTURES
from web.processes import desk_over, serving
from web.stage import BOOKS, ODD, servers_of
from web.watching import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Browser, BrowserContext, Page

    from web.processes import Desk

EXAMPLES = Path(__file__).parents[2] / "examples" / "skills"
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
LARGEST = 150 * 1024
PATIENCE = 40_000  # milliseconds; a busy machine takes its time
STRANGER = "rebound.example"  # a name that a stranger owns and points to this machine
# Nothing that a page asks for leaves this machine, whatever it asks for.
NAMES = f"MAP {STRANGER} 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", action="store_true", help="write pictures for the docs and of every state")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--pictures"):
        os.environ[KEEP_PICTURES] = "1"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, which Playwright starts without a sandbox: root cannot have one."""
    program = shutil.which(os.environ.get("CHROMIUM", "chromium-headless-shell"))
    if program is None:
        reason = "CHROMIUM IS MISSING: run tests/web/install_chromium.sh"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=[f"--host-resolver-rules={NAMES}", "--force-color-profile=srgb"]
        )
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A person's window: nothing is remembered from another test."""
    context = browser.new_context(viewport={"width": 1200, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def watch(context: BrowserContext) -> Iterator[Watch]:
    """What must not happen in that window; whatever did fails the test."""
    watch = Watch(context)
    yield watch
    assert not watch.troubles


@pytest.fixture
def page(context: BrowserContext, watch: Watch) -> Page:
    return context.new_page()


@pytest.fixture(scope="session")
def catalog() -> Iterator[str]:
    """The examples, served."""
    with serving(EXAMPLES) as address:
        yield address


@pytest.fixture(scope="session")
def hostile_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("hostile"), hostile.tree())


@pytest.fixture(scope="session")
def hostile_catalog(hostile_root: Path) -> Iterator[str]:
    """A tree whose author wants to run scripts in the reader's browser, served."""
    with serving(hostile_root) as address:
        yield address


@pytest.fixture(scope="session")
def odd_catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Skills with long names, many files, many links, or other letters, served."""
    with serving(write_tree(tmp_path_factory.mktemp("odd"), ODD)) as address:
        yield address


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk over two servers: ``acme``, over HTTP, has the examples; ``books``, a command, has ``BOOKS``."""
    acme = Path(shutil.copytree(EXAMPLES, tmp_path / "acme"))
    books = write_tree(tmp_path / "books", BOOKS)
    trees = {"acme": acme, "books": books}
    with serving(acme) as address, desk_over(tmp_path, servers_of(address, books), trees) as desk:
        yield desk


@pytest.fixture
def at_desk(desk: Desk, page: Page) -> Page:
    """A browser that came in with the link."""
    page.goto(desk.link)
    return page


@pytest.fixture
def picture(request: pytest.FixtureRequest) -> Callable[[Page, str], None]:
    """``picture(page, "desk")``: what the window shows, small enough for the documents."""
    folder = PICTURES if request.config.getoption("--pictures") else ARTEFACTS

    def take(page: Page, name: str) -> None:
        folder.mkdir(exist_ok=True)
        page.screenshot(path=folder / f"{name}.png")
        assert (folder / f"{name}.png").stat().st_size <= LARGEST

    return take
