"""Our own client on the ``sep-2076`` endpoint: found, listed, read with proof, followed (K2, P1–P5, V1)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp_types import Request

from http_server import serving_http
from interaction.conftest import AnyResult, Setting
from interaction.named_tree import LABELS, LEFT_OUT, named_tree
from rotation import every_setting
from rules import rule
from skillwire import connect
from skillwire.errors import NotFoundError, VerificationError
from skillwire.lowlevel import SkillsExtension
from skillwire.server.dialect import Dialects
from skillwire.server.skills import Skills, build_server
from skillwire.types import RemoteCatalog
from starting import skillwire_command
from trees import replace_file, skill_md, write_tree

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from skillwire.client.skills import SkillsClient

pytestmark = pytest.mark.anyio
TREE = named_tree()
GUIDE = "named://guide/SKILL.md"
PATIENCE = 20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "skills", TREE)


@asynccontextmanager
async def opened(setting: Setting, root: Path) -> AsyncIterator[SkillsClient]:
    """A client that does not know which dialect the server speaks."""
    mode = "legacy" if setting.era == "legacy" else "auto"
    if setting.transport == "http":
        async with (
            serving_http(build_server(Skills(root))) as url,
            connect(f"{url}/sep-2076", mode=mode) as client,
        ):
            yield client
        return
    target: Any = [*skillwire_command(), "serve", str(root), "--dialect", "sep-2076"]
    if setting.transport == "memory":
        target = build_server(Skills(root, dialects=Dialects("sep-2076")))
    async with connect(target, mode=mode) as client:
        yield client


@rule("K2", "P1", "P2", "P4", "V1")
async def test_the_dialect_is_found_and_skills_are_listed_got_and_read(setting: Setting, root: Path) -> None:
    """A name may be a path; files are verified by the digests that come with them."""
    async with opened(setting, root) as client:
        assert await client.dialect() == "sep-2076"
        assert [entry.name async for entry in client.list_skills()] == LABELS
        assert client.problems == []
        weather = await client.get_named("weather", {"city": "Bern"})
        assert weather.instructions == "\nIn Bern, . {{x}}\n"
        entry = await client.get_skill("named://acme/billing/refunds/SKILL.md")
        assert entry.name == "acme/billing/refunds"
        assert len(entry.files) == 2
        for file in entry.files:
            read = await client.read_resource(entry, file.uri)
            assert read.data == TREE[file.uri.removeprefix("skill://")]
        with pytest.raises(NotFoundError, match="pay"):  # the tool that it needs
            await client.get_named(LEFT_OUT)


async def test_v1_a_catalog_has_the_files_beside_the_skill_md(setting: Setting, root: Path) -> None:
    path = "acme/billing/refunds/templates/reply.md"
    async with opened(setting, root) as client:
        assert (await RemoteCatalog(client).read_file(f"named://{path}")).data == TREE[path]
        for nothing in ("named://acme/billing/refunds/none.md", "named://none/SKILL.md", f"skill://{path}"):
            with pytest.raises((NotFoundError, VerificationError)):
                await RemoteCatalog(client).read_file(nothing)


async def test_v1_v2_what_was_not_promised_is_not_read(setting: Setting, root: Path) -> None:
    """A file that changed since its skill was got, and one that is another skill's."""
    async with opened(setting, root) as client:
        entry = await client.get_skill(GUIDE)
        assert "digest" not in entry.gaps
        (root / "guide/references/zz.md").write_bytes(b"other\n")
        with pytest.raises(VerificationError) as changed:
            await client.read_resource(entry, "skill://guide/references/zz.md")
        assert changed.value.rule == "V1"
        for uri in ("skill://flat/SKILL.md", "skill://guide/SKILL.md", GUIDE):
            with pytest.raises(VerificationError) as unlisted:
                await client.read_resource(entry, uri)
            assert (unlisted.value.reference, unlisted.value.rule) == ("file-unlisted", "V2")
        fresh = await client.get_skill(GUIDE)
        assert (await client.read_resource(fresh, "skill://guide/references/zz.md")).data == b"other\n"


@rule("S1")
async def test_p5_changes_are_followed(setting: Setting, root: Path) -> None:
    """A skill that is new, one whose body changed, and one that is gone."""
    async with opened(setting, root) as client:
        catalog = RemoteCatalog(client)
        assert len([entry async for entry in catalog.entries()]) == len(LABELS)
        async with anyio.create_task_group() as group:
            with catalog.changes() as changes, anyio.fail_after(PATIENCE):
                group.start_soon(catalog.follow)
                write_tree(root, {"fresh/SKILL.md": skill_md("fresh")})
                assert "named://fresh/SKILL.md" in (await anext(changes)).added
                replace_file(root / "flat/SKILL.md", skill_md("flat", body="Another body.\n"))
                assert "named://flat/SKILL.md" in (await anext(changes)).changed
                (root / "fresh/SKILL.md").unlink()
                assert "named://fresh/SKILL.md" in (await anext(changes)).removed
            group.cancel_scope.cancel()


@every_setting
async def test_p5_whoever_wants_to_hear_of_skills_hears_of_them(
    connect: Any, setting: Setting, root: Path
) -> None:
    """By ``notifications/skills/list_changed``; in the stateless era a client asks for it."""
    heard = anyio.Event()
    async with connect("sep-2076", extensions=[SkillsExtension(lambda: heard.set())]) as wire:
        await wire.call("skills/list")
        async with anyio.create_task_group() as group:
            if setting.era == "modern":
                group.start_soon(_listen, wire.client.session)
            with anyio.fail_after(PATIENCE):
                number = 0
                while not heard.is_set():  # what changed before it began to listen was told to nobody
                    replace_file(root / "flat/SKILL.md", skill_md("flat", f"Change {number}."))
                    number += 1
                    with anyio.move_on_after(0.5):
                        await heard.wait()
            group.cancel_scope.cancel()


async def _listen(session: Any) -> None:
    params = {"notifications": {"skillsListChanged": True}}
    request = Request[dict[str, Any], str](method="subscriptions/listen", params=params)
    await session.send_request(request, AnyResult)
