"""Microsoft Agent Framework's ``MCPSkillsSource``: a client of the older generation of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from agent_framework import MCPSkillsSource
from mcp.shared.exceptions import MCPError

from interop.cells import NASTY, ONE_TRAIT, SETTINGS
from interop.honest import files_by_skill, path_of, samples, skills_of
from interop.wire import connected
from rules import rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_framework import MCPSkill
    from agent_framework import SkillsSourceContext as Context
    from mcp import Client

    from interop.cells import Record
    from interop.running import Era, Serve, Served, Transport

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # how the framework says "experimental"
]
NOTES = {"names": "agent-framework-names", "bytes": "agent-framework-empty"}


async def found_skills(client: Client) -> dict[str, MCPSkill]:
    """Its skills by their paths; it keeps the URI to itself."""
    skills = await MCPSkillsSource(client=client).get_skills(cast("Context", None))
    return {path_of(skill._skill_md_uri).removesuffix("/SKILL.md"): cast("MCPSkill", skill) for skill in skills}


async def read_file(skill: MCPSkill, name: str) -> bytes | None:
    """A file beside the manual, as the framework gives it."""
    resource = await skill.get_resource(name)
    content = None if resource is None else await resource.read()
    return content.encode() if isinstance(content, str) else content


async def not_as_on_disk(client: Client, served: Served, only: Iterable[str] | None = None) -> set[str]:
    """Read everything; the paths of files that came out otherwise, or not at all."""
    found, spoiled = await found_skills(client), set[str]()
    assert sorted(found) == skills_of(served.tree)
    for skill, paths in files_by_skill(served.tree).items():
        for path in paths if only is None else set(paths) & set(only):
            try:
                if path == f"{skill}/SKILL.md":
                    data = (await found[skill].get_content()).encode()
                else:
                    data = await read_file(found[skill], path.removeprefix(f"{skill}/"))
            except MCPError:
                data = None
            if data != served.tree[path]:
                spoiled.add(path)
    return spoiled


@rule("I1", "R1")
@pytest.mark.parametrize(("transport", "era"), SETTINGS)
async def test_every_skill_of_the_index_is_read(
    cell: Record, serve: Serve, transport: Transport, era: Era
) -> None:
    cell("server", "agent-framework", transport, era, "skills")
    served = serve("examples")
    async with connected(served, transport, era) as client:
        assert await not_as_on_disk(client, served) == set()


@rule("F4", "F5", "F6", "U7", "E4", "E5", "R1")
async def test_all_but_three_names_and_empty_files_are_read(cell: Record, serve: Serve) -> None:
    """It puts names into URIs as they are, and takes no bytes for no file."""
    cell("server", "agent-framework", "http", "modern", *NASTY, notes=NOTES)
    served = serve("nasty")
    async with connected(served, "http", "modern") as client:
        assert await not_as_on_disk(client, served) == {
            "odd-names/references/Résumé & notes #1?.md",
            "odd-names/references/100%.md",
            "odd-names/references/%41.md",
            "bytes/empty",
            "bytes/empty.md",
        }


@rule("F5", "F6", "I1", "E6")
@pytest.mark.parametrize("name", ONE_TRAIT)
async def test_a_mark_a_kept_block_230_skills_and_large_ones_are_read(
    cell: Record, serve: Serve, name: str
) -> None:
    """The index is one document."""
    cell("server", "agent-framework", "http", "modern", *ONE_TRAIT[name])
    served = serve(name)
    async with connected(served, "http", "modern") as client:
        assert await not_as_on_disk(client, served, samples(served.tree)) == set()
