"""Folders above skills, descriptions of files, and templates that people fill in (D1, P2, T1, R3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from interaction.conftest import Wire
from interaction.test_access import ACCESS, TOKENS, caller, running
from rules import rule
from skillwire.catalog.memory import MemoryCatalog, Skill
from skillwire.client.connect import connect
from skillwire.errors import ProtocolError
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills, build_server
from skillwire.skill.entry import SkillMeta
from trees import skill_md, small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

BOTH_ERAS = pytest.mark.parametrize("mode", ["legacy", "auto"])
DIRECTORY = "inode/directory"


def skill(path: str, body: str = "Do it.\n", files: dict[str, bytes] | None = None, **meta: Any) -> Skill:
    name = path.rpartition("/")[2]
    return Skill(path, {"SKILL.md": skill_md(name, body=body), **(files or {})}, **meta)


async def listed(client: Client, uri: str) -> list[tuple[str, str, str]]:
    """All pages of a directory."""
    found: list[tuple[str, str, str]] = []
    params: dict[str, Any] = {"uri": uri}
    while True:
        page = await call(client, "resources/directory/read", params)
        found += [(item["uri"], item["name"], item["mimeType"]) for item in page["resources"]]
        if "nextCursor" not in page:
            return found
        params = {"uri": uri, "cursor": page["nextCursor"]}


async def refusal(client: Client, uri: str) -> str:
    with pytest.raises(MCPError) as caught:
        await listed(client, uri)
    assert caught.value.error.code == -32602
    return caught.value.error.model_dump_json()


async def call(client: Client, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return await Wire(client, "modern").call(method, **params)


@rule("D1")
@BOTH_ERAS
async def test_folders_above_skills_have_the_folders_that_lead_to_them(mode: str) -> None:
    catalog = MemoryCatalog(
        [
            skill("acme/billing/refunds"),
            skill("acme/billing/refunds/inner"),
            skill("acme/billing/taxes"),
            skill("acme/notes"),
            skill("acmed"),
        ]
    )
    async with Client(build_server(Skills(catalog, page_size=1)), mode=mode) as client:
        assert await listed(client, "skill://acme") == [
            ("skill://acme/billing", "billing", DIRECTORY),
            ("skill://acme/notes", "notes", DIRECTORY),
        ]
        assert await listed(client, "skill://acme/billing") == [
            ("skill://acme/billing/refunds", "refunds", DIRECTORY),
            ("skill://acme/billing/taxes", "taxes", DIRECTORY),
        ]
        for uri in ("skill://acm", "skill://acme/bill", "skill://acme/billing/gone", "other://acme"):
            await refusal(client, uri)


@rule("D1")
async def test_a_folder_that_leads_to_unlisted_skills_only_does_not_answer() -> None:
    catalog = MemoryCatalog([skill("acme/draft", meta=SkillMeta(listed=False)), skill("shop/one")])
    async with Client(build_server(Skills(catalog))) as client:
        await refusal(client, "skill://acme")
        assert await listed(client, "skill://shop") == [("skill://shop/one", "one", DIRECTORY)]


@rule("D1")
async def test_a_folder_shows_only_what_its_caller_may_see(tmp_path: Path) -> None:
    root = write_tree(tmp_path / "skills", small_tree())
    async with running(root, ACCESS) as url:
        async with caller(url, TOKENS["billing"], "auto") as wire:
            assert [uri for uri, _, _ in await listed(wire.client, "skill://acme")] == ["skill://acme/billing"]
        async with caller(url, TOKENS["all"], "auto") as wire:
            assert len(await listed(wire.client, "skill://acme")) > 1
        async with caller(url, TOKENS["nobody"], "auto") as wire:
            refused = [await refusal(wire.client, uri) for uri in ("skill://acme", "skill://gone")]
        assert refused[0].replace("acme", "gone") == refused[1]


LINKED = """Read this first.

- [The policy](policy.md): what is paid back, and *when*.
- ![Map](map.png "where")

See [letters](letter.md).
[](bare.md)
"""


@rule("P2", "P6")
async def test_the_line_around_a_link_describes_the_file_it_leads_to() -> None:
    files = dict.fromkeys(("policy.md", "map.png", "letter.md", "bare.md", "other.md"), b"x")
    catalog = MemoryCatalog([skill("refunds", LINKED, files)])
    async with Client(build_server(Skills(catalog, dialects=Dialects("sep-2076")))) as client:
        answer = await call(client, "skills/get", {"name": "refunds"})
    assert {file["name"]: file.get("description") for file in answer["files"]} == {
        "policy.md": "The policy: what is paid back, and *when*.",
        "map.png": None,
        "letter.md": "See letters.",
        "bare.md": None,
        "other.md": None,
    }


@rule("T1", "R3")
async def test_the_template_for_files_carries_annotations() -> None:
    async with Client(build_server(Skills(MemoryCatalog([skill("a")])))) as client:
        [template] = (await call(client, "resources/templates/list", {}))["resourceTemplates"]
    assert template["annotations"] == {"audience": ["assistant"], "priority": 0.5}


@rule("T1")
@BOTH_ERAS
async def test_our_client_completes_templates(mode: str) -> None:
    skills = Skills(MemoryCatalog([skill("acme/refunds", files={"notes.md": b"x"}), skill("acme/taxes")]))

    @skills.template("docs/{product}", values={"product": ["pump", "pipe"]}, description="Manuals.")
    def manual(product: str) -> dict[str, bytes]:
        return {"SKILL.md": skill_md(product)}

    async with connect(build_server(skills), mode=mode) as client:
        assert await client.complete("skill://docs/{product}/SKILL.md", "product", "pi") == ["pipe"]
        assert await client.complete("skill://{+path}", "path", "acme/t") == ["acme/taxes/SKILL.md"]
        assert "acme/refunds/notes.md" in await client.complete("skill://{+path}", "path", "acme/refunds/")


@rule("K2")
async def test_our_client_asks_for_no_completion_that_a_server_does_not_offer() -> None:
    async with connect(Server("bare"), dialect="index") as client:
        with pytest.raises(ProtocolError) as caught:
            await client.complete("skill://{+path}", "path")
        assert caught.value.reference == "no-completions"
