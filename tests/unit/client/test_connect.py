"""``connect`` takes anything that has skills, and its client finds, reads and writes a skill by its name."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer

from rules import rule
from skillwire import DirectoryCatalog, MemoryCatalog, Skills, connect
from skillwire.errors import FormatError, NotFoundError, VerificationError
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio
FILES = {
    "acme/refunds/SKILL.md": skill_md("refunds"),
    "acme/refunds/references/a b.md": b"# Rules\n",
    "other/refunds-2/SKILL.md": skill_md("refunds-2"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", FILES)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home" / ".cursor").mkdir(parents=True)
    return tmp_path / "home"


def tree_at(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def listed(target: Any) -> list[str]:
    async with connect(target) as client:
        return sorted([entry.path async for entry in client.list_skills()])


OBJECTS: dict[str, Callable[[Path], Any]] = {
    "Catalog": DirectoryCatalog,
    "Skills": Skills,
    "Server": lambda path: Skills(path).attach(Server("x")),
    "MCPServer": lambda path: Skills(path).attach(MCPServer("x")),
    "command": lambda path: [sys.executable, "-m", "skillwire", "serve", str(path)],
}


@pytest.mark.parametrize("kind", OBJECTS)
async def test_every_kind_of_target_is_connected(kind: str, folder: Path) -> None:
    assert await listed(OBJECTS[kind](folder)) == ["acme/refunds", "other/refunds-2"]


async def test_a_label_of_the_users_own_configuration_is_connected(folder: Path, home: Path) -> None:
    entry = {"command": sys.executable, "args": ["-m", "skillwire", "serve", str(folder)]}
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"acme": entry}}))
    assert await listed("acme") == ["acme/refunds", "other/refunds-2"]


@rule("Z1")
@pytest.mark.usefixtures("home")
async def test_a_label_of_a_project_file_is_unknown(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"acme": {"command": "touch", "args": ["ran"]}}}))
    with pytest.raises(NotFoundError) as caught:
        await listed("acme")
    assert caught.value.reference == "server-unknown"
    assert not (folder / "ran").exists()


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(("label", "hint"), [("skills", "DirectoryCatalog"), ("npx server", "list")])
async def test_an_unknown_label_that_is_something_else_gets_that_hint(
    label: str, hint: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    with pytest.raises(NotFoundError) as caught:
        await listed(label)
    assert hint in caught.value.hint


@pytest.mark.parametrize("target", [None, 3, Path("skills"), b"https://example.com/mcp", [1, 2], object()])
async def test_anything_else_is_a_type_error_that_lists_what_is_possible(target: Any) -> None:
    with pytest.raises(TypeError) as caught:
        await listed(target)
    for word in ("URL", "command", "label", "MCPServer", "Server", "FastMCP", "Skills", "Catalog"):
        assert word in str(caught.value)
    assert ("DirectoryCatalog('skills')" in str(caught.value)) == isinstance(target, Path)


async def test_one_skills_object_can_be_connected_often_and_at_once(folder: Path) -> None:
    skills = Skills(folder)
    async with connect(skills) as one, connect(skills) as other:
        assert [(await client.get("refunds")).path for client in (one, other)] == ["acme/refunds"] * 2
    assert await listed(skills) == ["acme/refunds", "other/refunds-2"]


NAMES = ["refunds", "acme/refunds", "skill://acme/refunds", "skill://acme/refunds/SKILL.md"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_skill_is_found_by_name_path_or_uri(name: str, folder: Path) -> None:
    async with connect(DirectoryCatalog(folder)) as client:
        entry = await client.get(name)
        assert [file.path for file in entry.files] == ["SKILL.md", "references/a b.md"]
        assert (await client.read(name)).data == FILES["acme/refunds/SKILL.md"]
        assert (await client.read(name, "references/a b.md")).data == b"# Rules\n"


async def test_a_skill_of_another_scheme_is_found_by_its_name(folder: Path) -> None:
    async with connect(Skills(DirectoryCatalog(folder, scheme="wiki"), scheme="wiki")) as client:
        assert (await client.read("refunds", "references/a b.md")).uri.startswith("wiki://acme/refunds/")


async def test_an_unknown_name_gets_suggestions(folder: Path) -> None:
    async with connect(DirectoryCatalog(folder)) as client:
        with pytest.raises(NotFoundError) as caught:
            await client.get("refund")
    assert "refunds" in caught.value.hint


@rule("V2")
@pytest.mark.parametrize("path", ["../refunds-2/SKILL.md", "/etc/passwd", "a\\b", ""])
async def test_a_path_that_leaves_the_skill_is_refused(path: str, folder: Path) -> None:
    async with connect(DirectoryCatalog(folder)) as client:
        with pytest.raises(FormatError):
            await client.read("refunds", path)
        with pytest.raises(VerificationError) as caught:
            await client.read("refunds", "references/ab.md")
    assert caught.value.reference == "file-unlisted"
    assert "references/a b.md" in caught.value.hint


async def test_a_skill_is_downloaded_whole_into_a_folder_with_its_name(folder: Path, tmp_path: Path) -> None:
    async with connect(DirectoryCatalog(folder)) as client:
        written = await client.download("refunds", tmp_path / "copied")
        assert written == tmp_path / "copied" / "refunds"
        files = {
            str(path.relative_to(written)): path.read_bytes() for path in written.rglob("*") if path.is_file()
        }
        assert files == {"SKILL.md": FILES["acme/refunds/SKILL.md"], "references/a b.md": b"# Rules\n"}
        with pytest.raises(FormatError) as caught:
            await client.download("refunds", str(tmp_path / "copied"))
        assert (caught.value.reference, "replace=True" in caught.value.hint) == ("destination-exists", True)
        (written / "SKILL.md").write_text("old")
        await client.download("refunds", tmp_path / "copied", replace=True)
        assert (written / "SKILL.md").read_bytes() == FILES["acme/refunds/SKILL.md"]


@rule("Z3")
async def test_a_skill_with_a_repository_is_not_downloaded(tmp_path: Path) -> None:
    catalog = MemoryCatalog.from_tree({"a/SKILL.md": skill_md("a"), "a/.git/config": b"[core]\n"})
    async with connect(catalog) as client:
        with pytest.raises(FormatError) as caught:
            await client.download("a", tmp_path)
    assert (caught.value.reference, tree_at(tmp_path)) == ("file-forbidden", {})
