"""One line attaches skills to a server that has things of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError

from interaction.conftest import Wire
from rotation import every_setting
from rules import rule
from skillwire import MemoryCatalog, Skill, SkillMeta
from skillwire.errors import FormatError, NotFoundError
from skillwire.server.skills import Skills
from skillwire.wire.extension import Freshness
from trees import SMALL_TREE_SKILLS, skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.anyio


def own_server() -> MCPServer:
    server = MCPServer("own", instructions="An own server.")

    @server.tool()
    def add(one: int, two: int) -> int:
        return one + two

    @server.resource("config://main")
    def config() -> str:
        return "a=1"

    @server.resource("notes://{name}")
    def note(name: str) -> str:
        return f"note {name}"

    return server


@every_setting
@rule("K1", "L1", "R1")
async def test_skills_stand_beside_the_servers_own_things(tmp_path: Path, mode: str) -> None:
    """Tools, resources and templates of the server go on working."""
    server = Skills(write_tree(tmp_path, small_tree())).attach(own_server())
    async with Client(server, mode=mode) as client:
        wire = Wire(client, "legacy" if mode == "legacy" else "modern")
        assert len((await wire.call("skills/list"))["skills"]) == len(SMALL_TREE_SKILLS)
        assert (await client.call_tool("add", {"one": 1, "two": 2})).structured_content == {"result": 3}
        resources = [resource.uri for resource in (await client.list_resources()).resources]
        assert resources[0] == "config://main"
        assert "skill://flat/SKILL.md" in resources
        templates = [item.uri_template for item in (await client.list_resource_templates()).resource_templates]
        assert templates == ["notes://{name}", "skill://{+path}"]
        for uri, text in (
            ("config://main", "a=1"),
            ("notes://x", "note x"),
            ("skill://flat/SKILL.md", skill_md("flat").decode()),
        ):
            assert (await client.read_resource(uri)).contents[0].text == text  # pyright: ignore
        capabilities = client.server_capabilities
        assert capabilities.tools is not None
        assert (capabilities.extensions or {})["io.modelcontextprotocol/skills"] == {"directoryRead": True}


@rule("R1")
async def test_unknown_resources_of_either_side_are_refused(tmp_path: Path, mode: str) -> None:
    """-32602 for ours; the server's own refusal for the rest."""
    server = Skills(write_tree(tmp_path, small_tree())).attach(own_server())
    async with Client(server, mode=mode) as client:
        with pytest.raises(MCPError) as ours:
            await client.read_resource("skill://flat/nothing.md")
        assert ours.value.error.code == -32602
        assert "[file-unknown]" in ours.value.error.message
        with pytest.raises(MCPError):
            await client.read_resource("config://nothing")


@rule("L3")
async def test_the_servers_pages_come_first_and_ours_follow(mode: str) -> None:
    """A cursor says whose page it continues."""

    async def list_resources(ctx: Any, params: Any) -> dict[str, Any]:
        first = params is None or params.cursor is None
        item = {"uri": f"own://{'one' if first else 'two'}", "name": "own"}
        keep = {"ttlMs": 0, "cacheScope": "private", "resultType": "complete"} if mode == "auto" else {}
        return {"resources": [item], **keep, **({"nextCursor": "two"} if first else {})}

    server = Server("low", on_list_resources=list_resources)  # pyright: ignore
    catalog = MemoryCatalog([Skill(f"s{n}", {"SKILL.md": skill_md(f"s{n}")}) for n in range(5)])
    Skills(catalog, page_size=2).attach(server)
    seen: list[list[str]] = []
    async with Client(server, mode=mode) as client:
        cursor = None
        while True:
            page = await client.list_resources(cursor=cursor)
            seen.append([resource.uri for resource in page.resources])
            cursor = page.next_cursor
            if cursor is None:
                break
    ours = [f"skill://s{n}/SKILL.md" for n in range(5)]
    assert seen == [["own://one"], ["own://two", *ours[:2]], ours[2:4], [*ours[4:], "skill://index.json"]]


@rule("E2", "L2", "R3", "R4")
async def test_skills_are_declared_in_code(tmp_path: Path, mode: str) -> None:
    """From a folder, a Skill, or a function; with what the server says about them."""
    write_tree(tmp_path / "anything", {"SKILL.md": skill_md("refunds"), "refs/a.md": b"a"})
    skills = Skills()

    @skills.skill("acme/refunds", meta=SkillMeta(audience=("user",), meta={"com.example/owner": "billing"}))
    def refunds() -> Path:
        return tmp_path / "anything"

    @skills.skill("acme/hidden", meta=SkillMeta(listed=False))
    def hidden() -> Skill:
        return Skill("x", {"SKILL.md": skill_md("hidden")})

    @skills.skill("acme/today", dynamic=True)
    async def today() -> Mapping[str, str]:
        return {"SKILL.md": skill_md("today").decode()}

    async with Client(skills.attach(Server("code")), mode=mode) as client:
        wire = Wire(client, "modern")
        listing = (await wire.call("skills/list"))["skills"]
        assert [entry["uri"] for entry in listing] == [
            "skill://acme/refunds/SKILL.md",
            "skill://acme/today/SKILL.md",
        ]
        assert listing[1]["resources"] == "dynamic"
        assert set(listing[0]) == {"uri", "frontmatter", "resources"}
        got = await wire.call("skills/get", uri="skill://acme/hidden/SKILL.md")
        assert got["skill"]["frontmatter"]["name"] == "hidden"
        resource = (await client.list_resources()).resources[0]
        assert resource.meta == {"com.example/owner": "billing"}
        assert resource.annotations is not None
        assert resource.annotations.audience == ["user"]
        children = (await wire.call("resources/directory/read", uri="skill://acme/refunds"))["resources"]
        assert children[0]["_meta"] == {"com.example/owner": "billing"}


async def test_files_and_code_are_served_together(tmp_path: Path, mode: str) -> None:
    skills = Skills(write_tree(tmp_path, {"a/SKILL.md": skill_md("a")}))
    skills.skill("b")(lambda: {"SKILL.md": skill_md("b")})
    async with Client(skills.attach(Server("both")), mode=mode) as client:
        listing = (await Wire(client, "modern").call("skills/list"))["skills"]
        assert [entry["uri"] for entry in listing] == ["skill://a/SKILL.md", "skill://b/SKILL.md"]


@rule("R4")
@pytest.mark.parametrize("key", ["owner", "io.modelcontextprotocol/x", "io.modelcontextprotocol.skillsx/x", "a/b"])
def test_a_meta_key_without_a_prefix_of_its_own_is_refused(key: str) -> None:
    with pytest.raises(FormatError):
        SkillMeta(meta={key: 1})


def test_a_folder_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        Skills(tmp_path / "typo")


async def test_a_merged_page_is_kept_no_longer_than_either_side_allows() -> None:
    async def list_resources(ctx: Any, params: Any) -> dict[str, Any]:
        return {"resources": [], "ttlMs": 5, "cacheScope": "private", "resultType": "complete"}

    server = Server("low", on_list_resources=list_resources)  # pyright: ignore
    Skills(MemoryCatalog(), freshness=Freshness(1000, "public")).attach(server)
    async with Client(server) as client:
        result = await Wire(client, "modern").call("resources/list")
        assert (result["ttlMs"], result["cacheScope"]) == (5, "private")


@rule("S1")
async def test_a_subscription_to_nothing_is_refused(tmp_path: Path) -> None:
    """As unknown, not as an unknown method."""
    async with Client(Skills(tmp_path).attach(Server("x")), mode="legacy") as client:
        with pytest.raises(MCPError) as caught:
            await Wire(client, "legacy").call("resources/subscribe", uri="skill://nothing/SKILL.md")
        assert caught.value.error.code == -32602


def test_attaching_twice_or_to_something_else_is_refused(tmp_path: Path) -> None:
    server = Server("x")
    Skills(tmp_path).attach(server)
    with pytest.raises(FormatError) as twice:
        Skills(tmp_path).attach(server)
    assert twice.value.reference == "skills-attached"
    with pytest.raises(FormatError) as other:
        Skills(tmp_path).attach(object())
    assert other.value.reference == "server-unknown"
