"""The index among the resources, unknown entries in it, and what archives keep of a tree (I1, I2)."""

from __future__ import annotations

import json
import tarfile
import zipfile
from base64 import b64decode
from io import BytesIO
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client

from interaction.conftest import Wire
from rules import rule
from skillwire import connect
from skillwire.catalog.packer import FORMS
from skillwire.client.dialects.index import parse_index_entry
from skillwire.errors import FormatError
from skillwire.server.skills import Skills, build_server
from skillwire.skill.archive import archive_format, pack, unpack_tree
from skillwire.skill.entry import digest_of
from skillwire.types import RemoteCatalog
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.skill.archive import ArchiveFormat

pytestmark = pytest.mark.anyio

INDEX = "skill://index.json"
TREE = {"tool/SKILL.md": skill_md("tool"), "tool/run.sh": b"#!/bin/sh\n", "tool/notes.md": b"x"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = write_tree(tmp_path / "skills", TREE)
    (root / "tool/run.sh").chmod(0o755)
    (root / "tool/output/empty").mkdir(parents=True)
    return root


@rule("I1")
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_index_is_listed_once(root: Path, mode: str) -> None:
    write_tree(root, {f"s{n}/SKILL.md": skill_md(f"s{n}") for n in range(3)})
    async with Client(build_server(Skills(root, page_size=2, watch=False)), mode=mode) as client:
        wire, found, params = Wire(client, "modern"), list[str](), dict[str, Any]()
        while True:
            page = await wire.call("resources/list", **params)
            found += [item["uri"] for item in page["resources"]]
            if "nextCursor" not in page:
                break
            params = {"cursor": page["nextCursor"]}
    assert found.count(INDEX) == 1
    assert len(found) == 5


@rule("I1", "S1")
async def test_a_session_that_subscribed_to_the_index_hears_when_it_changes(root: Path) -> None:
    heard = anyio.Event()

    async def on_message(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/resources/updated" and message.params.uri == INDEX:
            heard.set()

    server = build_server(Skills(root))
    async with Client(server, mode="legacy", message_handler=on_message) as client:
        wire = Wire(client, "legacy")
        await wire.call("resources/subscribe", uri=INDEX)
        await wire.call("skills/list")
        write_tree(root, {"new/SKILL.md": skill_md("new")})
        with anyio.fail_after(20):
            await heard.wait()
        await wire.call("resources/unsubscribe", uri=INDEX)


@rule("I1", "S1")
async def test_a_stream_hears_when_the_index_changes(root: Path) -> None:
    async with Client(build_server(Skills(root))) as client:
        await Wire(client, "modern").call("skills/list")
        async with client.listen(resource_subscriptions=[INDEX]) as stream:
            assert stream.honored.resource_subscriptions == [INDEX]
            write_tree(root, {"new/SKILL.md": skill_md("new")})
            with anyio.fail_after(20):
                assert (await anext(aiter(stream))).uri == INDEX


@rule("I1")
@pytest.mark.parametrize("more", [{}, {"frontmatter": {"name": "a", "description": "x"}}], ids=["older", "newer"])
@pytest.mark.parametrize("kind", ["skill-bundle", "", None, 7], ids=["other", "empty", "null", "number"])
def test_an_entry_of_an_unknown_type_is_skipped(kind: object, more: dict[str, Any]) -> None:
    entry = {"name": "a", "description": "x", "url": "skill://a/SKILL.md", **more}
    assert parse_index_entry(entry).entry.name == "a"
    with pytest.raises(FormatError) as caught:
        parse_index_entry({**entry, "type": kind})
    assert caught.value.reference == "entry-type-unknown"


async def archives(wire: Wire) -> dict[str, bytes]:
    """The archives that the index names, each with the digest that it names."""
    [entry] = json.loads((await wire.call("resources/read", uri=INDEX))["contents"][0]["text"])["skills"]
    found: dict[str, bytes] = {}
    for item in entry["archives"]:
        [content] = (await wire.call("resources/read", uri=item["url"]))["contents"]
        data = b64decode(content["blob"])
        assert digest_of(data) == item["digest"]
        found[item["mimeType"]] = data
    return found


@rule("I2")
async def test_archives_keep_the_executable_bit_and_empty_folders(root: Path) -> None:
    async with Client(build_server(Skills(root, watch=False))) as client:
        found = await archives(Wire(client, "modern"))
    with tarfile.open(fileobj=BytesIO(found["application/gzip"])) as tar:
        modes = {member.name: (member.isdir(), member.mode) for member in tar.getmembers()}
    assert modes == {
        "SKILL.md": (False, 0o644),
        "notes.md": (False, 0o644),
        "output/empty": (True, 0o755),
        "run.sh": (False, 0o755),
    }
    with zipfile.ZipFile(BytesIO(found["application/zip"])) as archive:
        members = {info.filename: (info.is_dir(), info.external_attr >> 16 & 0o777) for info in archive.infolist()}
    assert members == {
        "SKILL.md": (False, 0o644),
        "notes.md": (False, 0o644),
        "output/empty/": (True, 0o755),
        "run.sh": (False, 0o755),
    }


@rule("I2")
@pytest.mark.parametrize("form", FORMS)
async def test_an_archive_that_is_packed_otherwise_keeps_both(tmp_path: Path, form: ArchiveFormat) -> None:
    """zip to tar.gz, and tar.gz to zip; a client of the index finds both in what it unpacks."""
    files = {path.removeprefix("tool/"): data for path, data in TREE.items()}
    path = tmp_path / f"any.{form}"
    path.write_bytes(pack(files, form, executables=["run.sh"], empty_folders=["output/empty"]))
    async with Client(build_server(Skills(path, watch=False))) as client:
        found = await archives(Wire(client, "modern"))
    assert len(found) == len(FORMS)
    for media_type, data in found.items():
        tree = unpack_tree(data, archive_format("", media_type))
        assert (tree.files, tree.executables, tree.folders) == (files, {"run.sh"}, {"output/empty"})
    async with connect(build_server(Skills(path, watch=False)), dialect="index") as remote:
        children = [child async for child in RemoteCatalog(remote).children("skill://tool")]
        assert [(child.name, child.is_directory, child.executable) for child in children] == [
            ("SKILL.md", False, False),
            ("notes.md", False, False),
            ("output", True, False),
            ("run.sh", False, True),
        ]
        assert [child async for child in RemoteCatalog(remote).children("skill://tool/output/empty")] == []


@rule("I2", "S1")
async def test_the_index_follows_a_change_of_the_executable_bit(root: Path) -> None:
    skills = Skills(root, watch=False)
    async with Client(build_server(skills)) as client:
        wire = Wire(client, "modern")
        before = await archives(wire)
        (root / "tool/run.sh").chmod(0o644)
        await skills.catalog.refresh(["tool"])  # type: ignore[attr-defined] - a folder's
        after = await archives(wire)
    assert before.keys() == after.keys()
    assert all(before[kind] != after[kind] for kind in before)
