"""Listings that go on without bringing anything: they stop, and what came before is delivered (B3)."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from adversarial.adversary import EXTENSION, KIB, SMALL
from adversarial.expecting import listed, refused
from adversarial.speaking import silence
from rules import rule
from skillwire import MemoryCatalog
from skillwire.catalog import verification
from skillwire.catalog.contract import DirectoryChild, Page
from skillwire.catalog.names import find_skill
from skillwire.catalog.verification import verify_catalog
from skillwire.cli.printer import Printer
from skillwire.cli.show import list_directory
from skillwire.cli.targets import print_problems
from skillwire.errors import LimitError, ProtocolError
from skillwire.lowlevel import discover_and_build_catalog, list_many
from skillwire.skill.diagnostics import Diagnostic
from skillwire.types import RemoteCatalog
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from adversarial.adversary import HostileServer
    from skillwire.types import SkillsClient

pytestmark = pytest.mark.anyio

DIRECTORY = "resources/directory/read"
CHILD = {"uri": "skill://flat/notes.md", "name": "notes.md"}


def again(field: str, items: list[Any]) -> Callable[[Any], dict[str, Any]]:
    """The same page for ever, with a cursor that is new each time."""
    numbers = count()
    return lambda _: {field: items, "nextCursor": f"{next(numbers)}"}


def always_more(server: HostileServer) -> Callable[[Any], dict[str, Any]]:
    """The skills of ``server``, then a new one on each page."""
    numbers = count()

    def page(params: dict[str, Any]) -> dict[str, Any]:
        number = next(numbers)
        new = {"uri": f"skill://s{number}/SKILL.md", "frontmatter": {"name": f"s{number}", "description": "d"}}
        skills = [{**new, "resources": "dynamic"}] if "cursor" in params else server.entries
        return {"skills": skills, "nextCursor": f"{number}"}

    return page


@asynccontextmanager
async def connected(server: HostileServer, **limits: Any) -> AsyncIterator[SkillsClient]:
    server.capabilities["extensions"][EXTENSION] = {"directoryRead": True}
    async with server.connect(dialect="extension", limits=replace(SMALL, **limits)) as client:
        yield client


@rule("B3")
@pytest.mark.parametrize("is_empty", [True, False], ids=["empty pages", "the same page"])
async def test_a_page_that_brings_nothing_new_ends_the_listing(server: HostileServer, is_empty: bool) -> None:
    """However often its cursor changes."""
    server.answers["skills/list"] = again("skills", [] if is_empty else server.entries)
    async with connected(server, max_pages=10_000) as client:
        with refused(ProtocolError, "page-repeats", "B3"):
            await listed(client)
    assert len(server.methods()) <= 2


@rule("B3")
@pytest.mark.parametrize(
    "bound",
    [{"max_listing_bytes": 4 * KIB}, {"max_listing_values": 100}, {"max_listing_objects": 30}, {"max_pages": 5}],
    ids=["bytes", "values", "objects", "pages"],
)
async def test_a_listing_is_bounded_as_a_whole(server: HostileServer, bound: dict[str, Any]) -> None:
    server.answers["skills/list"] = always_more(server)
    async with connected(server, **{"max_pages": 10_000, **bound}) as client:
        listing = await client.list_all()
    assert listing.entries[0].name == "flat"
    assert len(server.methods()) < 100
    assert listing.error is not None
    assert (type(listing.error), listing.error.reference) == (LimitError, "listing-too-long")
    [name] = bound
    assert name in listing.error.hint


@rule("B3")
async def test_a_listing_has_a_time_limit_as_a_whole(server: HostileServer) -> None:
    """Each page is in time; together they are not."""
    more, silent = always_more(server), anyio.Event()

    async def page(params: dict[str, Any]) -> dict[str, Any]:
        if "cursor" in params:
            await silent.wait()
        return more(params)

    server.answers["skills/list"] = page
    async with connected(server, max_listing_seconds=1.0) as client:
        listing = await client.list_all()
    assert [entry.name for entry in listing.entries] == ["flat"]
    assert listing.error is not None
    assert (listing.error.reference, listing.error.rule) == ("listing-too-long", "B3")


@rule("B3", "L2")
async def test_what_came_before_the_bound_is_delivered_and_marked(server: HostileServer) -> None:
    """By a catalog, by a listing of many servers, and to a model."""
    server.answers["skills/list"] = always_more(server)
    async with connected(server, max_pages=3) as client:
        catalog = RemoteCatalog(client)
        page = await catalog.list_skills()
        assert "flat" in [entry.name for entry in page.items]
        assert [problem.reference for problem in await catalog.problems()] == ["listing-partial"]
        many = (await list_many({"it": client}))["it"]
        assert many.entries
        assert many.error
        discovered = await discover_and_build_catalog(client)
        assert discovered.error
        assert "flat" in discovered.catalog


@rule("B3", "I4")
async def test_skills_among_endless_resources_are_delivered(server: HostileServer) -> None:
    server.answers["resources/list"] = again("resources", [{"uri": "skill://flat/SKILL.md", "name": "flat"}])
    async with server.connect(dialect="fallback") as client:
        listing = await client.list_all()
    assert [entry.name for entry in listing.entries] == ["flat"]
    assert listing.error is not None
    assert listing.error.rule == "B3"


@rule("B3", "L2")
async def test_a_partial_listing_removes_nothing(server: HostileServer) -> None:
    server.add("last", {"SKILL.md": skill_md("last")})
    async with connected(server, max_pages=3) as client:
        catalog = RemoteCatalog(client)
        await catalog.list_skills()
        server.entries.pop()
        server.answers["skills/list"] = always_more(server)
        assert not (await catalog.refresh()).removed
        assert "last" in [entry.name for entry in (await catalog.list_skills()).items]


@rule("B3")
async def test_a_lookup_by_path_lists_nothing(server: HostileServer) -> None:
    server.answers["skills/list"] = always_more(server)
    async with connected(server) as client:
        assert (await find_skill(RemoteCatalog(client), "flat")).uri == "skill://flat/SKILL.md"
    assert server.methods() == ["skills/get"]


@rule("B3")
async def test_a_lookup_by_name_does_not_wait_for_the_end_of_a_listing(server: HostileServer) -> None:
    """The skill is on the first page, and no limit ends the listing."""
    numbers = count()

    def skill(path: str) -> dict[str, Any]:
        fields = {"name": path.rpartition("/")[2], "description": "d"}
        return {"uri": f"skill://{path}/SKILL.md", "frontmatter": fields, "resources": "dynamic"}

    def page(params: dict[str, Any]) -> dict[str, Any]:
        number = next(numbers)
        return {"skills": [skill(f"s{number}" if "cursor" in params else "team/hit")], "nextCursor": f"{number}"}

    server.answers["skills/list"] = page
    server.answers["skills/get"] = lambda params: {
        "skill": skill("team/hit") if params["uri"] == "skill://team/hit/SKILL.md" else None
    }
    unlimited = {
        "max_pages": 10**9,
        "max_entries": 10**9,
        "max_listing_seconds": 3600.0,
        "max_server_bytes": 10**9,
    }
    async with connected(server, **unlimited) as client:
        with anyio.fail_after(60):
            entry = await find_skill(RemoteCatalog(client), "hit", replace(SMALL, after_match_seconds=0.01))
    assert entry.uri == "skill://team/hit/SKILL.md"


@rule("B3", "M1", "P1")
@pytest.mark.parametrize("dialect", ["native", "sep-2076"])
async def test_a_lookup_by_name_stops_at_its_hit(server: HostileServer, dialect: Any) -> None:
    numbers = count()
    server.answers["skills/list"] = lambda params: {
        "skills": [{"name": f"s{next(numbers)}" if "cursor" in params else "flat"}],
        "nextCursor": f"{next(numbers)}",
    }
    server.answers["skills/get"] = {"instructions": "Do."}
    server.answers["skills/activate"] = {"messages": []}
    async with server.connect(dialect=dialect) as client:
        assert (await client.get_skill("named://flat/SKILL.md")).name == "flat"
    assert server.methods().count("skills/list") == 1


@rule("B3", "D1")
async def test_a_directory_that_never_ends_is_delivered_as_far_as_it_came(server: HostileServer) -> None:
    server.answers[DIRECTORY] = again("resources", [CHILD])
    async with connected(server) as client:
        children = await client.read_directory("skill://flat")
    assert [child.name for child in children] == ["notes.md"]
    assert children.error is not None
    assert (children.error.reference, children.error.rule) == ("page-repeats", "B3")
    assert server.methods().count(DIRECTORY) == 2


@rule("B3", "D1")
async def test_ls_marks_a_directory_that_never_ends(
    server: HostileServer, capsys: pytest.CaptureFixture[str]
) -> None:
    server.answers[DIRECTORY] = again("resources", [CHILD, {"uri": "skill://other/x", "name": "x"}])
    async with connected(server) as client:
        assert await list_directory(RemoteCatalog(client), "skill://flat", Printer(is_json=True)) == 1
    document = json.loads(capsys.readouterr().out)
    assert [child["name"] for child in document["children"]] == ["notes.md"]
    assert {problem["reference"] for problem in document["problems"]} == {"listing-partial", "child-invalid"}


def new_names() -> Callable[[Any], dict[str, Any]]:
    """A directory in which each page has 50 names that were never there, and a cursor."""
    numbers = count()

    def page(params: dict[str, Any]) -> dict[str, Any]:
        names = [f"f{next(numbers):04}" for _ in range(50)]
        return {"resources": [{"uri": f"{params['uri']}/{name}"} for name in names], "nextCursor": names[0]}

    return page


@rule("B3", "D1")
async def test_all_pages_of_a_directory_are_of_one_reading(server: HostileServer) -> None:
    """Also if the server invents other names whenever it is asked."""
    server.answers[DIRECTORY] = new_names()
    async with connected(server, max_pages=5, max_entries=1000) as client:
        catalog = RemoteCatalog(client)
        names = [child.name async for child in catalog.children("skill://flat")]
        assert names == [f"f{number:04}" for number in range(250)]
        assert server.methods().count(DIRECTORY) == 5
        first = await catalog.read_directory("skill://flat")
        assert first.items[0].name == "f0250"  # another walk is another reading


@rule("B3", "D1")
@pytest.mark.parametrize("is_silent", [False, True], ids=["folders without end", "no answer"])
async def test_endless_directories_of_many_skills_cost_no_more_than_those_of_one(
    server: HostileServer, is_silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``verify`` reads no directory any more after one with too many entries, or that took too long."""
    monkeypatch.setattr(verification, "_SECONDS_PER_SKILL", 0.0)
    for number in range(10):
        server.add(f"s{number}", {"SKILL.md": skill_md(f"s{number}")})

    def folders(params: dict[str, Any]) -> dict[str, Any]:
        uris = [f"{params['uri']}/{name}" for name in ("a", "b", "c")]
        return {"resources": [{"uri": uri, "mimeType": "inode/directory"} for uri in uris]}

    server.answers[DIRECTORY] = silence if is_silent else folders
    async with connected(server) as client:
        seconds = 0.2 if is_silent else 60.0
        limits = replace(client.limits, max_entries=30, max_listing_seconds=seconds)
        report = await verify_catalog(RemoteCatalog(client), limits=limits)
    assert [(failure.rule, failure.reference) for failure in report.false_claims] == [("B3", "listing-too-long")]
    assert report.skills == report.checked["G1"] == 11
    assert server.methods().count(DIRECTORY) <= 11


class Labyrinth(MemoryCatalog):
    """Each folder has a folder, and no file."""

    async def read_directory(self, uri: str, cursor: str | None = None, limit: int = 100) -> Page[DirectoryChild]:
        return Page([DirectoryChild(uri, "a", is_directory=True)])


@rule("B3", "D1")
async def test_a_walk_through_folders_without_end_ends() -> None:
    with refused(LimitError, "listing-too-long", "B3"):
        [child async for child in Labyrinth([]).walk("skill://flat")]


@rule("B6")
def test_words_of_a_server_stay_on_one_line_of_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A name with line ends would look like what the command prints itself."""
    problem = Diagnostic("entry-invalid", "bad\nname", "", file="x\nverified by your administrator")
    print_problems([problem], Printer())
    assert len(capsys.readouterr().err.splitlines()) == 1
