"""The ``native`` dialect on servers of other kinds, and how things are bound to skills (M1, M2, M3)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, EmptyResult, TextContent

from interaction.native_caller import Caller
from rotation import every_setting
from rules import rule
from skillwire import CombinedCatalog, MemoryCatalog, Mount, Skill, SkillMeta, connect
from skillwire.errors import FormatError
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills
from skillwire.wire.extension import Freshness
from starting import python_command
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.anyio

NATIVE = Dialects("native")


def caller_of(client: Client, mode: str) -> Caller:
    return Caller(client, "legacy" if mode == "legacy" else "modern")


def low_server(names: Sequence[str]) -> Server[Any]:
    """One tool on each page."""

    async def list_tools(ctx: Any, params: Any) -> dict[str, Any]:
        place = int(params.cursor) if params is not None and params.cursor else 0
        tool = {"name": names[place], "inputSchema": {"type": "object"}}
        more = {"nextCursor": str(place + 1)} if place + 1 < len(names) else {}
        modern = ctx.protocol_version == "2026-07-28"
        keep = {"ttlMs": 5000, "cacheScope": "public", "resultType": "complete"} if modern else {}
        return {"tools": [tool], **keep, **more}

    async def call_tool(ctx: Any, params: Any) -> CallToolResult:
        if params.name not in names:
            return CallToolResult(content=[TextContent(text=f"no {params.name!r} here")], is_error=True)
        return CallToolResult(content=[TextContent(text=f"ran {params.name}")])

    return Server("low", on_list_tools=list_tools, on_call_tool=call_tool)  # pyright: ignore


def memory(*skills: tuple[str, str], **meta: Any) -> MemoryCatalog:
    made = [
        Skill(path, {"SKILL.md": skill_md(path.rpartition("/")[2], extra=extra)}, **meta) for path, extra in skills
    ]
    return MemoryCatalog(made)


@every_setting
@rule("M2", "M3")
async def test_a_low_level_server_is_bound_by_name(mode: str) -> None:
    """Page by page; a page may be empty and the next one is still there; no list is kept for others."""
    skills = Skills(memory(("a", ""), ("b", "metadata:\n  mcp-tools: second\n")), dialects=NATIVE)
    skills.scope("a").bind(tools=["first", "third"])
    async with Client(skills.attach(low_server(["first", "second", "third", "free"])), mode=mode) as client:
        caller = caller_of(client, mode)

        async def pages() -> list[list[str]]:
            found: list[list[str]] = []
            params: dict[str, Any] = {}
            while True:
                page = await caller.call("tools/list", **params)
                assert (page.get("ttlMs"), page.get("cacheScope")) in ((None, None), (0, "private"))
                found.append([tool["name"] for tool in page["tools"]])
                if "nextCursor" not in page:
                    return found
                params = {"cursor": page["nextCursor"]}

        assert await pages() == [[], [], [], ["free"]]
        answer = await caller.call("skills/activate", name="a")
        assert [tool["name"] for tool in answer["tools"]] == ["first", "third"]
        assert await pages() == [[], [], [], ["free"]]
        assert await caller.ran("third") == "ran third"
        assert "'b'" in await caller.failed("second")


@rule("M1", "L3")
async def test_skills_are_listed_page_by_page_without_what_is_nested(mode: str) -> None:
    """The catalog's own cursors; a page may be empty."""
    skills = Skills(memory(("a", ""), ("a/b", ""), ("a/c", ""), ("d", "")), page_size=1, dialects=NATIVE)
    async with Client(skills.attach(Server("x")), mode=mode) as client:
        caller = caller_of(client, mode)
        seen: list[list[str]] = []
        page = await caller.call("skills/list")
        while True:
            seen.append([skill["name"] for skill in page["skills"]])
            if "nextCursor" not in page:
                break
            page = await caller.call("skills/list", cursor=page["nextCursor"])
        assert seen == [["a"], [], [], ["d"]]


@rule("N1", "M1")
async def test_names_that_several_skills_have_are_paths(mode: str) -> None:
    """The bare name is refused with the candidates."""
    skills = Skills(memory(("one/a", ""), ("two/a", "")), dialects=NATIVE)
    async with Client(skills.attach(Server("x")), mode=mode) as client:
        caller = caller_of(client, mode)
        assert await caller.names("skills/list", "skills") == {"one/a", "two/a"}
        await caller.call("skills/activate", name="two/a")


@rule("L2", "M3")
async def test_an_unlisted_skill_is_activated_by_whoever_knows_it_and_encloses_nothing(mode: str) -> None:
    """What is inside an unlisted skill would otherwise be found by nobody."""
    unlisted = Skill("a", {"SKILL.md": skill_md("a")}, meta=SkillMeta(listed=False))
    skills = Skills(MemoryCatalog([unlisted, Skill("a/b", {"SKILL.md": skill_md("b")})]), dialects=NATIVE)
    skills.scope("a").bind(tools=["first"])
    async with Client(skills.attach(low_server(["first"])), mode=mode) as client:
        caller = caller_of(client, mode)
        assert await caller.names("skills/list", "skills") == {"b"}
        assert await caller.tools() == set()
        await caller.call("skills/activate", name="a")
        assert await caller.tools() == set()
        assert await caller.ran("first") == "ran first"


@rule("M2")
async def test_what_the_server_does_not_offer_is_left_out_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    """In the log, not to clients."""
    skills = Skills(memory(("a", "metadata:\n  mcp-tools: first nothing\n")), dialects=NATIVE)
    with caplog.at_level(logging.WARNING, "skillwire.server"):
        async with Client(skills.attach(low_server(["first"])), mode="legacy") as client:
            for _ in range(2):
                answer = await caller_of(client, "legacy").call("skills/activate", name="a")
                assert [tool["name"] for tool in answer["tools"]] == ["first"]
                await caller_of(client, "legacy").call("skills/deactivate", name="a")
    [record] = [record for record in caplog.records if "'nothing'" in record.getMessage()]
    assert "'a'" in record.getMessage()


@rule("M3")
def test_a_decorator_needs_a_server_that_has_one() -> None:
    """Whether skills are attached before or after, and it says what to do instead."""
    skills = Skills(memory(("a", "")))
    skills.attach(Server("x"))
    with pytest.raises(FormatError) as caught:
        skills.scope("a").tool(len)
    assert "scope.bind(tools=['len'])" in caught.value.hint
    skills = Skills(memory(("a", "")))
    skills.scope("a").resource("x://y")(len)
    with pytest.raises(FormatError) as caught:
        skills.attach(Server("x"))
    assert "scope.bind(resources=['x://y'])" in caught.value.hint
    with pytest.raises(FormatError):
        skills.scope("a").bind(tools="pay")
    with pytest.raises(FormatError):
        skills.scope("../a")
    with pytest.raises(FormatError):
        skills.scope("a").tool(name=7)(print)


@rule("M3")
async def test_a_registration_that_the_server_refuses_binds_nothing() -> None:
    skills = Skills(memory(("a", "")), dialects=NATIVE)
    server = skills.attach(MCPServer("x"))
    with pytest.raises(ValueError, match="Mismatch"):  # the SDK's word
        skills.scope("a").resource("x://{one}")(lambda two: two)

    @server.resource("x://{one}")
    def same(one: str) -> str:
        return one

    async with Client(server) as client:
        assert await caller_of(client, "auto").read("x://7") == "7"  # not hidden with the skill


@rule("M3")
async def test_what_is_bound_later_is_hidden_at_once(mode: str) -> None:
    """Also where it was listed before."""
    skills = Skills(memory(("a", "")), dialects=NATIVE)
    async with Client(skills.attach(low_server(["first"])), mode=mode) as client:
        caller = caller_of(client, mode)
        assert await caller.tools() == {"first"}
        skills.scope("a").bind(tools=["first"])
        assert await caller.tools() == set()
        skills.skill("b")(lambda: {"SKILL.md": skill_md("b", extra="metadata:\n  mcp-tools: first\n")})
        await caller.call("skills/activate", name="b")
        assert await caller.tools() == set()
        assert await caller.ran("first") == "ran first"


@rule("M3")
async def test_lists_without_what_skills_bind_are_kept_by_nobody() -> None:
    """Code binds things at any time. The listing of skills does not depend on it."""
    skills = Skills(memory(("a", "")), dialects=NATIVE, freshness=Freshness(60_000, "public"))
    async with Client(skills.attach(low_server(["first"]))) as client:
        page = await caller_of(client, "auto").call("tools/list")
        assert (page["ttlMs"], page["cacheScope"]) == (5000, "public")  # nothing depends on anything yet
        skills.scope("a").bind(tools=["first"])
        for method, freshness in (("skills/list", (60_000, "public")), ("tools/list", (0, "private"))):
            page = await caller_of(client, "auto").call(method)
            assert (page["ttlMs"], page["cacheScope"]) == freshness


@rule("M3")
async def test_of_two_activations_at_once_one_is_refused() -> None:
    """Whatever waits in between, a session does not take the same skill twice."""
    skills = Skills(memory(("a", ""), ("b", "")), dialects=NATIVE)
    skills.scope("a").bind(tools=["first"])
    said: list[str] = []
    async with Client(skills.attach(low_server(["first"])), mode="legacy") as client:
        caller = caller_of(client, "legacy")

        async def activate(name: str) -> None:
            try:
                await caller.call("skills/activate", name=name)
            except MCPError as error:
                said.append(error.error.data["reference"])

        async with anyio.create_task_group() as group:
            for name in ("a", "b", "a"):
                group.start_soon(activate, name)
        assert said == ["skill-already-active"]
        for name in ("a", "b"):
            await caller.call("skills/deactivate", name=name)


@rule("M3")
async def test_a_hidden_resource_is_not_subscribed_to() -> None:
    """Nor is it heard of; once it is there, it is."""
    subscribed: list[str] = []

    async def subscribe(ctx: Any, params: Any) -> EmptyResult:
        subscribed.append(str(params.uri))
        return EmptyResult()

    server = Server("low", on_subscribe_resource=subscribe)
    skills = Skills(memory(("a", "metadata:\n  mcp-resources: rules://a\n")), dialects=NATIVE)
    async with Client(skills.attach(server), mode="legacy") as client:
        caller = caller_of(client, "legacy")
        with pytest.raises(MCPError) as caught:
            await caller.call("resources/subscribe", uri="rules://a")
        assert caught.value.error.data["reference"] == "skill-not-active"
        assert subscribed == []
        await caller.call("skills/activate", name="a")
        await caller.call("resources/subscribe", uri="rules://a")
        assert subscribed == ["rules://a"]


@rule("M2", "M3")
async def test_the_example_works() -> None:
    example = Path(__file__).parents[2] / "examples" / "native_server.py"
    async with connect([*python_command(), str(example)]) as client:
        assert await client.dialect() == "native"
        refunds = await client.activate("refunds")
        assert (await refunds.call_tool("pay", {"order": "7"}))["content"][0]["text"] == "paid 7"


@rule("M3")
async def test_code_that_binds_to_a_skill_that_is_not_there_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    """What it binds is hidden, and says nothing of that skill."""
    skills = Skills(memory(("refunds", "")), dialects=NATIVE)
    skills.scope("refnuds").bind(tools=["first"])
    with caplog.at_level(logging.WARNING, "skillwire.server"):
        async with Client(skills.attach(low_server(["first"])), mode="legacy") as client:
            caller = caller_of(client, "legacy")
            assert await caller.tools() == set()
            assert await caller.failed("first") == "no 'first' here"
    assert len([record for record in caplog.records if "'refnuds'" in record.getMessage()]) == 1


@rule("M3")
@pytest.mark.parametrize("how", ["memory", "folder", "combined"])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_m3_what_an_unlisted_skill_binds_is_in_no_list(tmp_path: Path, how: str, mode: str) -> None:
    """A refusal does not name the skill: it is the answer to a tool that does not exist."""
    tree = {"SKILL.md": skill_md("quiet", extra="metadata:\n  mcp-tools: secret\n")}
    source: Any = MemoryCatalog([Skill("x/quiet", tree, meta=SkillMeta(listed=False))])
    if how == "folder":
        source = write_tree(tmp_path / "skills", {"x/quiet/SKILL.md": tree["SKILL.md"]})
        (tmp_path / "skills/skillwire.toml").write_text('[skills."x/quiet"]\nlisted = false\n')
    if how == "combined":
        source = CombinedCatalog([Mount(source, "one"), Mount(memory(("a", "")), "two")])
    skills = Skills(source, dialects=NATIVE)
    async with Client(skills.attach(low_server(["secret", "free"])), mode=mode) as client:
        caller = caller_of(client, mode)
        assert await listed_tools(caller) == {"free"}
        words = await caller.failed("secret")
        assert words == (await caller.failed("missing")).replace("missing", "secret")
        defined = await caller.call("skills/activate", name="x/quiet")
        assert [tool["name"] for tool in defined["tools"]] == ["secret"]
        assert await caller.ran("secret") == "ran secret"
        assert await listed_tools(caller) == {"free"}


@rule("M3")
async def test_m3_only_code_binds_to_a_skill_that_a_template_makes(caplog: pytest.LogCaptureFixture) -> None:
    """Its frontmatter is unknown before it is made: nothing is listed and hidden later. The log tells, once."""
    skills = Skills(dialects=NATIVE)

    @skills.template("docs/{product}", values={"product": ["one", "two"]}, description="Docs.")
    def docs(product: str) -> dict[str, bytes]:
        return {"SKILL.md": skill_md(product, extra="metadata:\n  mcp-tools: said gone\n")}

    skills.scope("docs/one").bind(tools=["coded"])
    server = skills.attach(low_server(["said", "coded", "free"]))
    async with Client(server) as client, Client(server) as other:
        caller, stranger = caller_of(client, "auto"), caller_of(other, "auto")
        with caplog.at_level(logging.WARNING, "skillwire.server"):
            for name, tools in (("docs/one", ["coded"]), ("docs/two", [])):
                assert await listed_tools(caller) == {"said", "free"}
                defined = await caller.call("skills/activate", name=name)
                assert [tool["name"] for tool in defined.get("tools", [])] == tools
        assert await listed_tools(stranger) == await listed_tools(caller) == {"said", "free"}
        assert (await caller.ran("coded"), await caller.ran("said")) == ("ran coded", "ran said")
        assert await stranger.failed("coded")
        assert await stranger.ran("said") == "ran said"
    assert len([record for record in caplog.records if "template" in record.getMessage()]) == 1


async def listed_tools(caller: Caller) -> set[str]:
    """All pages."""
    names, page = set[str](), await caller.call("tools/list")
    while True:
        names |= {tool["name"] for tool in page["tools"]}
        if "nextCursor" not in page:
            return names
        page = await caller.call("tools/list", cursor=page["nextCursor"])
