"""Our skills on a FastMCP server that has a tool, resources and a prompt of its own: all of it works."""

from __future__ import annotations

import re
import runpy
import subprocess
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest
from fastmcp import FastMCP
from fastmcp.server.providers.skills import SkillsDirectoryProvider
from fastmcp.skills.extension import SkillsExtension
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent

from interop.honest import hashes, path_of, skills_of
from interop.running import EXAMPLES, fastmcp_command
from interop.wire import EXTENSION, INVALID_PARAMS, call, connected, read_bytes
from rules import rule
from skillwire import connect
from skillwire.errors import FormatError
from skillwire.server.skills import Skills

if TYPE_CHECKING:
    from interop.running import Era, Served, Transport

pytestmark = pytest.mark.anyio


@rule("R1", "X1", "X2")
async def test_its_tool_resource_template_and_prompt_still_work(
    attached: Served, transport: Transport, era: Era
) -> None:
    """Its own come first; this client does not declare the extension, so it gets ours as well."""
    async with connected(attached, transport, era) as client:
        first, *ours = [tool.name for tool in (await client.list_tools()).tools]
        assert first == "add"
        assert set(ours) == {"list_skills", "search_skills", "load_skill", "read_skill_file"}
        [answer] = (await client.call_tool("add", {"a": 40, "b": 2})).content
        assert isinstance(answer, TextContent)
        assert answer.text == "42"
        assert await read_bytes(client, "weather://today") == b"sunny"
        assert await read_bytes(client, "weather://rome/today") == b"sunny in rome"
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert names == ["greet", *(path.rpartition("/")[2] for path in skills_of(attached.tree))]
        [message] = (await client.get_prompt("greet", {"name": "Ada"})).messages
        assert isinstance(message.content, TextContent)
        assert message.content.text == "Hello, Ada!"


@rule("K1", "R1", "T1")
async def test_its_capabilities_and_resources_are_shown_beside_ours(attached: Served, era: Era) -> None:
    async with connected(attached, "http", era) as client:
        capabilities = client.server_capabilities
        assert (capabilities.extensions or {})[EXTENSION] == {"directoryRead": True}
        assert capabilities.resources is not None
        assert capabilities.tools is not None
        assert capabilities.prompts is not None
        listed = [resource.uri for resource in (await client.list_resources()).resources]
        skills = [f"skill://{skill}/SKILL.md" for skill in skills_of(attached.tree)]
        assert listed == ["weather://today", *skills, "skill://index.json"]
        templates = (await client.list_resource_templates()).resource_templates
        assert [template.uri_template for template in templates] == ["weather://{city}/today", "skill://{+path}"]


@rule("L1", "G1", "R1", "D1", "E2", "E3")
async def test_every_skill_is_listed_got_read_and_walked(attached: Served, era: Era) -> None:
    async with connected(attached, "http", era) as client:
        listing = await call(client, "skills/list")
        assert ("ttlMs" in listing, "cacheScope" in listing) == (era == "modern", era == "modern")
        read: dict[str, str] = {}
        for entry in listing["skills"]:
            assert (await call(client, "skills/get", uri=entry["uri"]))["skill"] == entry
            for resource in entry["resources"]:
                data = await read_bytes(client, resource["uri"])
                read[path_of(resource["uri"])] = sha256(data).hexdigest()
                assert resource["digest"] == f"sha256:{sha256(data).hexdigest()}"
        listed = [path_of(entry["uri"]).removesuffix("/SKILL.md") for entry in listing["skills"]]
        assert listed == skills_of(attached.tree)
        assert read == hashes(attached.tree)
        found = await call(client, "resources/directory/read", uri="skill://release")
        assert {child["name"]: child["mimeType"] for child in found["resources"]} == {
            "SKILL.md": "text/markdown",
            "changelog": "inode/directory",
            "references": "inode/directory",
            "templates": "inode/directory",
        }


@rule("G1", "R1")
async def test_what_neither_has_is_refused(attached: Served, era: Era) -> None:
    """-32602, and the connection lives on."""
    async with connected(attached, "http", era) as client:
        for uri in ("skill://nothing/SKILL.md", "skill://release/nothing.md", "nothing://here"):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(uri)
            assert caught.value.error.code == INVALID_PARAMS
        assert await read_bytes(client, "weather://today") == b"sunny"


@rule("N1")
def test_skills_are_not_attached_over_those_that_fastmcp_serves_itself() -> None:
    """Nothing is shadowed silently."""
    provider = SkillsDirectoryProvider(roots=EXAMPLES, experimental_skills=True, supporting_files="resources")
    server: FastMCP = FastMCP("theirs", providers=[provider])
    server.add_extension(SkillsExtension(providers=[provider]))
    with pytest.raises(FormatError):
        Skills(EXAMPLES).attach(server)


def test_the_documented_example_runs() -> None:
    """docs/how-to/attach.md: the block that needs FastMCP, which ``make test`` does not have."""
    root = EXAMPLES.parents[1]
    page = (root / "docs/how-to/attach.md").read_text()
    (code,) = re.findall(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    done = subprocess.run(fastmcp_command("-c", code), cwd=root, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ready for acme\n"


async def test_the_example_attaches_skills_to_a_fastmcp_server() -> None:
    file = EXAMPLES.parent / "attach_to_fastmcp.py"
    assert len(file.read_text().splitlines()) < 40
    async with connect(runpy.run_path(str(file))["server"]) as client:
        assert len([entry async for entry in client.list_skills()]) == 7
