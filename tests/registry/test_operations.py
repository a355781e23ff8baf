"""What the page for operators tells them: its backup of PostgreSQL, the unit of systemd, and upgrades."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from docs.sessions import blocks_of
from registries import ADA, RegistryBuilder
from registry.replicas import free_port
from registry.stage import publish, refunds, running_registry
from skillwire.errors import SkillwireError
from skillwire.registry.model import SkillRef
from skillwire.registry.schema import SCHEMA
from skillwire.registry.store import SqlRegistryStore
from skillwire.store.place import open_database
from starting import folder_for_path, skillwire_command

if TYPE_CHECKING:
    from databases import TestDatabases

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/how-to/operate-a-registry.md"
UNIT = ROOT / "examples/registry/skillwire-registry@.service"
NEWER = replace(
    SCHEMA,
    sqlite=(*SCHEMA.sqlite, ("CREATE TABLE newer (number INTEGER)",)),
    postgres=(*SCHEMA.postgres, ("CREATE TABLE newer (number bigint)",)),
)


def own_environment(home: Path) -> dict[str, str]:
    """The environment of a process whose home is empty."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "SKILLWIRE_"))}
    return {**kept, "HOME": str(home)}


async def test_the_backup_of_the_page_restores_everything(
    postgres: TestDatabases, postgres_url: str, tmp_path: Path
) -> None:
    build = RegistryBuilder(SqlRegistryStore(await open_database(postgres_url, SCHEMA)))
    await build.namespace("acme")
    for version in ("1.0.0", "1.1.0"):
        await build.publish("acme/refunds", version)
    history, lines = await build.store.history(ADA, "acme/refunds"), await build.store.changes(0)
    restored = postgres.create()
    commands = [
        block.code
        for block in blocks_of(PAGE.read_text())
        if '"$DATABASE"' in block.code or "$RESTORED" in block.code
    ]
    assert [command.split()[0] for command in commands] == ["pg_dump", "pg_restore"]
    pgserver = importlib.util.find_spec("pgserver")
    assert pgserver is not None
    assert pgserver.origin is not None
    environment = {
        **own_environment(tmp_path),
        "PATH": f"{Path(pgserver.origin).parent}/pginstall/bin:{folder_for_path()}:{os.environ['PATH']}",
        "DATABASE": postgres_url,
        "RESTORED": restored,
    }
    done = await anyio.run_process(["sh", "-ec", "\n".join(commands)], env=environment, cwd=tmp_path)
    assert (done.stdout + done.stderr).decode() == "0 faults\n"
    copy = RegistryBuilder(SqlRegistryStore(await open_database(restored, SCHEMA)))
    assert await copy.store.history(ADA, "acme/refunds") == history
    assert await copy.store.changes(0) == lines
    assert await copy.store.read(ADA, SkillRef("acme/refunds"), "SKILL.md") is not None
    assert (await copy.publish("acme/refunds", "1.2.0")).moved  # numbers of rows go on where they were
    for store in (build.store, copy.store):
        await store.close()
    postgres.drop(restored)


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is missing")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/skillwire/bin/skillwire", "/bin/true"))
    done = subprocess.run([program, "verify", str(unit)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_command_of_the_unit_serves_and_stops(postgres_url: str, tmp_path: Path) -> None:
    [line] = [each for each in UNIT.read_text().splitlines() if each.startswith("ExecStart=")]
    given = {
        "%i": str(free_port()),
        "%S": str(tmp_path),
        "${DATABASE}": postgres_url,
        "${PUBLIC_URL}": "https://skills.example.com",
    }
    words = shlex.split(line.partition("=")[2])
    for name, value in given.items():
        words = [word.replace(name, value) for word in words]
    assert words[0] == "/opt/skillwire/bin/skillwire"
    with subprocess.Popen(
        [*skillwire_command(), *words[1:]], env=own_environment(tmp_path), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert any(each.startswith("listening at https://skills.example.com") for each in process.stderr)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_while_others_are_upgraded_a_registry_answers_reads_and_refuses_changes(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Another process has migrated the database further than this one knows."""
    place = (
        str(tmp_path / "own" / "registry.sqlite3")
        if engine == "sqlite"
        else request.getfixturevalue("postgres_url")
    )
    async with running_registry(place=place) as running:
        await running.namespace("acme", public=True)
        token = await running.token("user:operator")
        async with running.api(token) as ada, running.mcp() as wire:
            await publish(ada, "acme/refunds", refunds("One.\n"))
            await (await open_database(place, NEWER)).close()
            assert len((await wire.call("skills/list"))["skills"]) == 1
            with pytest.raises(SkillwireError) as caught:
                await publish(ada, "acme/refunds", refunds("Two.\n"))
            assert "store-newer" in str(caught.value)
            assert len((await wire.call("skills/list"))["skills"]) == 1
    where = ["--state", str(tmp_path / "own")] if engine == "sqlite" else ["--database", place]
    command = [*skillwire_command(), "registry", "--http", "127.0.0.1:0", *where]
    done = await anyio.run_process(command, env=own_environment(tmp_path), check=False)
    assert done.returncode == 2
    assert b"store-newer" in done.stderr
