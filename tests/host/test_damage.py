"""Disks and clocks that fail: a clear word, nothing half done, nothing lost that was committed (A1, C1)."""

from __future__ import annotations

import os
import sqlite3
import time
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from host.stage import ALLOW, SECONDS, Person, StagedHost, hosting, reference
from rules import rule
from skillwire.errors import StoreError
from skillwire.store.records import LogLine
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adversarial.adversary import HostileServer

pytestmark = pytest.mark.anyio

NOWHERE = ["/no/such/command"]


def the_cached_file(state: Path) -> Path:
    [path] = (state / "cache").glob("o-*/*")
    return path


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def replace_by_link(path: Path) -> None:
    secret = path.parent.parent.parent / "secret"
    secret.write_text("the person's own")
    path.unlink()
    path.symlink_to(secret)


def replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: dict[str, Callable[[Path], Any]] = {
    "a bit": flip,
    "cut short": lambda path: os.truncate(path, 10),
    "a link": replace_by_link,
    "a folder": replace_by_folder,
}


@rule("C1", "V1")
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
async def test_a_damaged_file_in_the_cache_is_fetched_again(
    server: HostileServer, state: Path, damage: Callable[[Path], Any]
) -> None:
    """Bytes leave only if they hash to what was approved; nobody is asked anew."""
    person = Person()
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
        damage(the_cached_file(state))
        assert "Do it." in (await host.load("flat")).text
        assert server.read_uris() == ["skill://flat/SKILL.md"] * 2
        assert host.cache is not None
        assert host.cache.verify() == []
        assert the_cached_file(state).read_bytes() == skill_md("flat")
    assert person.kinds == ["load"]


@rule("C1", "V1")
async def test_a_damaged_file_in_the_cache_is_not_used_while_its_server_is_away(
    server: HostileServer, state: Path
) -> None:
    """Rather nothing than something else."""
    async with hosting(state, {"one": server}, ask=Person()) as host:
        await host.load("flat")
    flip(the_cached_file(state))
    async with StagedHost.open(servers={"one": NOWHERE}, state=state) as host:
        await host.settle(SECONDS)
        assert reference(await host.load("flat")) == ("server-away", "C1")
        assert [approval.uri for approval in await host.store.approvals()] == ["skill://flat/SKILL.md"]


@rule("C1")
@pytest.mark.parametrize("damage", ["cleared", "opened to others"])
async def test_a_cache_that_cannot_be_used_costs_no_load(server: HostileServer, state: Path, damage: str) -> None:
    """Only time."""
    async with hosting(state, {"one": server}, ask=Person()) as host:
        await host.load("flat")
        if damage == "cleared":
            the_cached_file(state).unlink()
            (state / "cache" / "o-one").rmdir()
            (state / "cache").rmdir()
        else:
            (state / "cache").chmod(0o777)
        assert not (await host.load("flat")).is_error
        assert len(server.read_uris()) == 2


@rule("C1")
async def test_a_full_disk_costs_no_load(
    server: HostileServer, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was verified is used, and not kept; when there is room again, it is kept again."""
    import skillwire.store.content_cache as cache

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    async with hosting(state, {"one": server}, ask=Person()) as host:
        assert host.cache is not None
        with monkeypatch.context() as patched:
            patched.setattr(cache, "_write", full)
            assert not (await host.load("flat")).is_error
            assert host.cache.usage().files == 0
        assert not (await host.load("flat")).is_error
        assert host.cache.usage().files == 1


@rule("C1", "C3")
async def test_what_killed_processes_left_is_cleared_away_when_a_host_starts(
    server: HostileServer, state: Path
) -> None:
    """Half a file of an hour ago, and an origin that was being removed; not what is being written now."""
    async with hosting(state, {"one": server}, ask=Person()) as host:
        await host.load("flat")
    cache = state / "cache"
    old, new, gone = cache / "o-one" / "tmp-old", cache / "o-one" / "tmp-new", cache / "gone-x"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    gone.mkdir()
    async with hosting(state, {"one": server}):
        with anyio.fail_after(SECONDS):
            while any(map(os.path.lexists, (old, gone))):
                await anyio.lowlevel.checkpoint()
        assert "tmp-new" in os.listdir(new.parent)


async def fill(host: StagedHost) -> None:
    """Let the database take what its pages hold, and not one page more."""
    connection: sqlite3.Connection = host.store.database._connection  # type: ignore[attr-defined]
    [pages] = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    for size in (3000, 300, 30, 1):
        for _ in range(1000):
            try:
                await host.store.log(LogLine("read", "", "x" * size, "", 0.0))
            except StoreError as error:
                assert error.reference == "store-full"  # noqa: PT017 - the end of the loop, not the test
                break


@rule("A1", "W1")
async def test_a_full_database_refuses_what_it_cannot_remember_and_loses_nothing(
    server: HostileServer, state: Path
) -> None:
    """A yes that cannot be written down is none; what was approved before still is."""
    server.add("other", {"SKILL.md": skill_md("other"), "a.md": b"a\n"})
    async with hosting(state, {"one": server}, ask=Person()) as host:
        await host.load("flat")
        await fill(host)
        for name in ("other", "flat"):
            result = await host.load(name)
            assert reference(result)[0] == "store-full"
            assert result.refusal is not None
            assert result.refusal.hint
        assert reference(await host.read("other", "a.md"))[0] == "skill-not-loaded"
        await host.relist("one")
        assert host.state("one") == "complete"
    async with hosting(state, {"one": server}) as host:
        assert [approval.uri for approval in await host.store.approvals()] == ["skill://flat/SKILL.md"]
        assert not (await host.load("flat")).is_error


def scribble(path: Path, begin: int, end: int) -> None:
    with open(path, "r+b") as file:
        file.seek(begin)
        file.write(b"\xa5" * (end - begin))


def put_back(path: Path, data: bytes) -> None:
    for name in os.listdir(path.parent):
        if name.startswith(f"{path.name}-"):
            os.remove(path.parent / name)
    path.write_bytes(data)


def make_foreign(path: Path) -> bytes:
    path.parent.mkdir(0o700)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE theirs (x)")
    connection.close()
    return path.read_bytes()


async def look_through(server: HostileServer, state: Path) -> None:
    """All that a host remembers."""
    async with hosting(state, {"one": server}, ask=Person()) as host:
        await host.skills()
        await host.lines()


CORRUPTIONS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no database": (
        lambda path: path.write_bytes(b"not a database, but long enough to be one " * 200),
        "store-damaged",
    ),
    "its pages": (lambda path: scribble(path, 4096, path.stat().st_size), "store-damaged"),
    "cut short": (lambda path: os.truncate(path, 6000), "store-damaged"),
}


@rule("A1")
@pytest.mark.parametrize(("corrupt", "expected"), CORRUPTIONS.values(), ids=CORRUPTIONS.keys())
async def test_a_damaged_database_is_said_to_be_and_left_alone(
    server: HostileServer, state: Path, corrupt: Callable[[Path], Any], expected: str
) -> None:
    """A clear word, not one byte touched, and with the file put back every yes is there."""
    async with hosting(state, {"one": server}, ask=Person()) as host:
        await host.load("flat")
    path = state / "host.sqlite3"
    good = path.read_bytes()
    corrupt(path)
    bad = path.read_bytes()
    assert bad != good
    with pytest.raises(StoreError) as caught:
        await look_through(server, state)
    assert caught.value.reference == expected
    assert "host.sqlite3" in caught.value.message
    assert str(state) not in str(caught.value)
    assert caught.value.hint
    assert path.read_bytes() == bad
    put_back(path, good)
    async with hosting(state, {"one": server}) as host:
        assert not (await host.load("flat")).is_error


@rule("A1")
async def test_a_database_of_another_program_is_not_touched(server: HostileServer, state: Path) -> None:
    """It is somebody's."""
    path = state / "host.sqlite3"
    before = make_foreign(path)
    with pytest.raises(StoreError) as caught:
        async with hosting(state, {"one": server}):
            pytest.fail("it was opened")
    assert caught.value.reference == "store-foreign"
    assert path.read_bytes() == before


@rule("A1", "A2", "C1")
@pytest.mark.parametrize("jump", [-1e9, 1e9], ids=["back", "forward"])
async def test_a_clock_that_jumps_changes_no_decision(
    server: HostileServer, state: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """Nothing that was approved depends on the time; the log keeps its order."""
    person = Person()
    async with hosting(state, {"one": server}, ask=person) as host:
        await host.load("flat")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    async with hosting(state, {"one": server}, ask=person) as host:
        assert not (await host.load("flat")).is_error
        assert not (await host.read("flat", "notes.md")).is_error
        assert await host.happened() == ["approved", "loaded", "loaded", "read"]
        assert person.kinds == ["load"]
        assert host.cache is not None
        assert host.cache.usage().files == 2
        await host.revoke("flat")
    monkeypatch.undo()
    async with hosting(state, {"one": server}, policy=ALLOW) as host:
        assert list(await host.store.approvals()) == []
        assert (await host.happened())[-1] == "revoked"
