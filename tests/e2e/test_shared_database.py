"""Several gateways as processes on one PostgreSQL database: what one of them learns counts for all."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from e2e.installing import serving
from e2e.talking import Talking
from rules import rule
from skillwire import connect
from skillwire.errors import NotFoundError
from starting import skillwire_command
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire.types import SkillsClient

pytestmark = pytest.mark.anyio
FLAT = "skill://acme/flat/SKILL.md"
NAME = "acme:skill://flat/SKILL.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    write_tree(tmp_path / "tree", small_tree())
    command, *words = serving(tmp_path / "tree")
    entry = {"command": command, "args": words, "cwd": str(tmp_path)}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": {"acme": entry}}))
    (tmp_path / "gateway.toml").write_text(
        'mode = "admit"\nservers = "servers.json"\n[upstream.acme]\nskills = ["flat"]\n'
    )
    return tmp_path


def gateway(folder: Path, database: str) -> Talking:
    return Talking("gateway", "--policy", "gateway.toml", "--state", database, "--http", "0", folder=folder)


async def run(folder: Path, *words: str) -> bytes:
    done = await anyio.run_process([*skillwire_command(), *words], cwd=folder)
    return done.stdout + done.stderr


def has_file_store(folder: Path) -> bool:
    return any(folder.rglob("*.sqlite3"))


async def until_served(client: SkillsClient, *, is_served: bool) -> None:
    with anyio.fail_after(60):
        while bool([entry async for entry in client.list_skills()]) != is_served:
            await anyio.lowlevel.checkpoint()


@rule("A1", "A2")
async def test_two_gateways_share_an_approval_and_a_revocation(folder: Path, postgres_url: str) -> None:
    """Approved once, served by both; revoked once, served by neither; and the database is new."""
    with gateway(folder, postgres_url) as one, gateway(folder, postgres_url) as other:
        urls = [each.wait_for_talk(r"listening at (\S+) ")[1] for each in (one, other)]
        review = one.wait_for_talk(r"skillwire (approvals show .*skill://flat/.*)\n")[1]
        reviewed = (await run(folder, *shlex.split(review))).decode()
        approve = reviewed.partition("skillwire approve")[2].splitlines()[0]
        async with connect(urls[0]) as first, connect(urls[1]) as second:
            for client in (first, second):
                await until_served(client, is_served=False)
            await run(folder, "approve", *shlex.split(approve))
            for client in (first, second):
                await until_served(client, is_served=True)
                entry = await client.get_skill(FLAT)
                assert (await client.read_skill(entry)).text.encode() == small_tree()["flat/SKILL.md"]
            await run(folder, "approvals", "revoke", NAME, "--state", postgres_url)
            for client in (first, second):
                await until_served(client, is_served=False)
                with pytest.raises(NotFoundError):
                    await client.get_skill(FLAT)
        lines: list[Any] = [
            json.loads(text)["what"]
            for text in (await run(folder, "log", "--json", "--state", postgres_url)).splitlines()
        ]
        assert [what for what in lines if what != "served"] == ["approved", "revoked"]
    assert not has_file_store(folder)


async def test_a_password_on_the_command_line_is_refused_and_not_repeated(folder: Path) -> None:
    done = await anyio.run_process(
        [*skillwire_command(), "log", "--state", "postgresql://ada:s3cret@127.0.0.1:1/skills"],
        cwd=folder,
        check=False,
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 2
    assert "[password-visible]" in said
    assert "s3cret" not in said
