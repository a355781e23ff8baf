"""The ``sep-2076`` endpoint, as any client sees it: over memory, stdio and HTTP, in both eras (P1–P6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from interaction.named_tree import GUIDE_BODY, LABELS, LEFT_OUT, named_tree
from rotation import every_setting
from rules import rule
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills, build_server
from skillwire.skill.entry import digest_of
from skillwire.wire import meta
from trees import replace_file, skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from interaction.conftest import Wire

pytestmark = pytest.mark.anyio
TREE = named_tree()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", TREE)


async def refusal(wire: Wire, method: str, **params: Any) -> Any:
    with pytest.raises(MCPError) as caught:
        await wire.call(method, **params)
    return caught.value.error


@every_setting
@rule("P1")
async def test_p1_the_capability_is_declared(mode: str, root: Path) -> None:
    server = build_server(Skills(root, dialects=Dialects("sep-2076")))
    async with Client(server, mode=mode) as client:
        assert (client.server_capabilities.experimental or {})["skills"] == {"listChanged": True}
        if mode == "auto":
            raw = await client.session.send_discover("2026-07-28")
            assert raw["capabilities"]["skills"] == {"listChanged": True}


@rule("N1", "P1", "P6")
async def test_p1_p6_skills_are_listed_by_name_with_what_they_declare(connect) -> None:
    """A name that several have is a path."""
    async with connect("sep-2076") as wire:
        result = await wire.call("skills/list")
        skills = {skill["name"]: skill for skill in result["skills"]}
        assert list(skills) == LABELS
        assert {"ttlMs", "cacheScope"} <= set(result) or wire.era == "legacy"
    about = {meta.URI: "skill://guide/SKILL.md", **promised("guide/SKILL.md")}
    assert skills["guide"] == {
        "name": "guide",
        "title": "The guide",
        "description": "Guides.",
        "version": "1.10",
        "tags": ["help", "docs"],
        "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png"}],
        "_meta": about,
    }
    assert skills["weather"]["arguments"] == [
        {"name": "city", "title": "City", "description": "Where?", "required": True},
        {"name": "unit", "required": False},
    ]
    assert set(skills["wrong-fields"]) == {"name", "description", "_meta"}
    assert skills["shop/refunds"]["description"] == "Of the shop."


@rule("P6")
async def test_p2_a_skill_is_got_by_name_or_path(connect) -> None:
    """The body without frontmatter, byte for byte, and nothing is taken for an argument that is none."""
    async with connect("sep-2076") as wire:
        braces = await wire.call("skills/get", name="plain-braces")
        assert braces["instructions"] == "\nUse {{ city }} as it is.\n"
        assert "files" not in braces
        windows = await wire.call("skills/get", name="windows")
        assert (windows["description"], windows["instructions"]) == ("CRLF and a BOM", "\r\nhello")
        for name in ("shop/refunds", "shop/refunds/SKILL.md", "skill://shop/refunds/SKILL.md"):
            assert (await wire.call("skills/get", name=name))["description"] == "Of the shop."


@rule("P6")
async def test_p2_arguments_are_filled_in_once(connect) -> None:
    """What is optional is empty, what is unknown stays, and a value is not looked into."""
    async with connect("sep-2076") as wire:
        given = {"city": "{{unit}} & Bern", "unit": "°C"}
        full = await wire.call("skills/get", name="weather", arguments=given)
        assert full["instructions"] == "\nIn {{unit}} & Bern, °C. {{x}}\n"
        assert full.get("cacheScope", "private") == "private"
        short = await wire.call("skills/get", name="weather", arguments={"city": ""})
        assert short["instructions"] == "\nIn , . {{x}}\n"


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "an unknown name": ({"name": "weathr"}, "skill-unknown", "weathr"),
    "a name that several have": ({"name": "refunds"}, "skill-ambiguous", "refunds"),
    "no name": ({}, "name-invalid", "'name'"),
    "a name that is a number": ({"name": 7}, "name-invalid", "'name'"),
    "a name too long": ({"name": "x" * 10_000}, "skill-unknown", "xxx"),
    "a way out": ({"name": "../flat"}, "skill-unknown", "../flat"),
    "a required argument left out": ({"name": "weather"}, "argument-missing", "'city'"),
    "an argument that there is not": (
        {"name": "weather", "arguments": {"city": "Bern", "town": "x"}}, "argument-unknown", "'town'",
    ),
    "an argument for a skill that takes none": (
        {"name": "flat", "arguments": {"city": "Bern"}}, "argument-unknown", "'city'",
    ),
    "an argument that is a number": ({"name": "weather", "arguments": {"city": 7}}, "argument-invalid", "'city'"),
    "an argument that is null": ({"name": "weather", "arguments": {"city": None}}, "argument-invalid", "'city'"),
    "an argument too long": (
        {"name": "weather", "arguments": {"city": "x" * 16_385}}, "argument-too-long", "'city'",
    ),
    "arguments in a list": ({"name": "weather", "arguments": ["Bern"]}, "arguments-invalid", "'arguments'"),
    "something missing on the server": ({"name": LEFT_OUT}, "dependency-missing", "'thank'"),
}  # fmt: skip


async def test_p2_p3_what_cannot_be_answered_says_why_and_what_to_do(connect) -> None:
    async with connect("sep-2076") as wire:
        for what, (params, reference, words) in WRONG.items():
            error = await refusal(wire, "skills/get", **params)
            assert (error.code, error.data["reference"]) == (-32602, reference), what
            assert words in error.message, what
            assert error.data["hint"], what
        ambiguous = await refusal(wire, "skills/get", name="refunds")
        assert "acme/billing/refunds, shop/refunds" in ambiguous.data["hint"]
        assert "weather" in (await refusal(wire, "skills/get", name="weathr")).data["hint"]


async def test_l3_a_cursor_that_we_did_not_give_is_refused(connect) -> None:
    async with connect("sep-2076") as wire:
        for cursor in ("", "x", "skillwire.x"):
            error = await refusal(wire, "skills/list", cursor=cursor)
            assert (error.code, error.data["reference"]) == (-32602, "cursor-invalid")


@rule("P6", "R4")
async def test_p4_files_are_named_in_order_and_read_like_any_resource(connect) -> None:
    """Linked ones first, each once, with the words of the link; none outside the skill."""
    async with connect("sep-2076") as wire:
        got = await wire.call("skills/get", name="guide")
        files = {file["name"]: file for file in got["files"]}
        assert list(files) == ["references/zz.md", "assets/aa.png", "LICENSE"]
        assert files["references/zz.md"] == {
            "name": "references/zz.md",
            "title": "the last file",
            "description": "First the *last* file, then a picture, and again.",
            "uri": "skill://guide/references/zz.md",
            "mimeType": "text/markdown",
            "required": True,
            "_meta": promised("guide/references/zz.md"),
        }
        assert [(file.get("title"), file["required"]) for file in got["files"][1:]] == [
            ("a picture", True),
            (None, False),
        ]
        assert got["instructions"] == f"\n{GUIDE_BODY}"
        for file in got["files"]:
            [content] = (await wire.client.read_resource(file["uri"])).contents
            assert content.mime_type == file["mimeType"]
        odd = await wire.call("skills/get", name="odd-names")
        for file in odd["files"]:
            assert (await wire.call("resources/read", uri=file["uri"]))["contents"]


async def test_r2_a_skill_that_changed_is_got_as_it_is_now(connect, root: Path) -> None:
    async with connect("sep-2076") as wire:
        await wire.call("skills/list")
        replace_file(root / "guide/SKILL.md", skill_md("guide", "New.", "[new](new.md)\n"))
        (root / "guide/new.md").write_bytes(b"new")
        got = await wire.call("skills/get", name="guide")
        assert got["instructions"] == "\n[new](new.md)\n"
        assert got["description"] == "New."
        assert got["_meta"][meta.DIGEST] == digest_of((root / "guide/SKILL.md").read_bytes())


@rule("K2")
async def test_k2_the_methods_of_other_dialects_are_unknown_here(connect) -> None:
    async with connect("sep-2076") as wire:
        for method in ("skills/activate", "skillwire/sep-2076/skills/list"):
            assert (await refusal(wire, method, name="flat")).code == -32601


def promised(path: str) -> dict[str, Any]:
    return {meta.DIGEST: digest_of(TREE[path]), meta.SIZE: len(TREE[path])}
