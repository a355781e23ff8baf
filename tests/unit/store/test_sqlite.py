"""What only a store on disk can do wrong: places, rights, damage, a full disk, others who hold it."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from contextlib import asynccontextmanager, closing
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from rules import rule
from skillwire.errors import StoreError
from skillwire.skill.approval import Approval
from skillwire.skill.entry import Partial, Resource, SkillEntry
from skillwire.store import sqlite
from skillwire.store.records import LogLine, SeenEntries
from skillwire.store.schema import HOST_SCHEMA
from skillwire.store.sqlite import SqliteDatabase
from skillwire.store.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio

LINE = LogLine("approved", "acme", "skill://a/SKILL.md", "ada", 1.0)
APPROVAL = Approval("acme", "skill://a/SKILL.md", frozenset({("skill://a/SKILL.md", "sha256:0")}), "ada", 1.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "private-place" / "store.db"


@asynccontextmanager
async def opened(path: Path | str, patience: float = 60) -> AsyncIterator[Store]:
    store = await Store.open(path, patience=patience)
    try:
        yield store
    finally:
        await store.close()


def raw(path: Path) -> closing[sqlite3.Connection]:
    """The file as SQLite sees it, without us."""
    return closing(sqlite3.connect(path, isolation_level=None))


def put_file(path: Path, content: bytes = b"") -> None:
    """A file that we may trust, as far as its rights go."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)


def snapshot(path: Path) -> dict[str, bytes]:
    """The file and whatever is beside it."""
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


def connection_of(store: Store) -> sqlite3.Connection:
    assert isinstance(store.database, SqliteDatabase)
    connection = store.database._connection
    assert connection is not None
    return connection


async def refusal(path: Path, patience: float = 60) -> StoreError:
    """How opening is refused; no message names a place beyond the file."""
    with pytest.raises(StoreError) as caught:
        await Store.open(path, patience=patience)
    return without_places(caught.value, path)


def without_places(error: StoreError, path: Path) -> StoreError:
    assert path.parent.name not in str(error)
    assert error.hint
    return error


# How it is set up


async def test_what_was_remembered_is_there_after_opening_again(path: Path) -> None:
    async with opened(path) as store:
        await store.put_approval(APPROVAL, LINE)
    async with opened(path) as store:
        assert await store.approval("acme", APPROVAL.uri) == APPROVAL
        assert len(await store.lines()) == 1


@rule("A2")
async def test_commits_are_flushed_to_the_disk_and_readers_do_not_wait(path: Path) -> None:
    """A revocation survives a power cut."""
    async with opened(path, patience=12) as store:
        ask = connection_of(store).execute
        assert ask("PRAGMA journal_mode").fetchone() == ("wal",)
        assert ask("PRAGMA synchronous").fetchone() == (2,)
        assert ask("PRAGMA foreign_keys").fetchone() == (1,)
        assert ask("PRAGMA busy_timeout").fetchone() == (12000,)


async def test_reading_goes_on_while_another_writes(path: Path) -> None:
    async with opened(path, patience=0) as store:
        await store.put_approval(APPROVAL, LINE)
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            other.execute("DELETE FROM approvals")
            assert await store.approval("acme", APPROVAL.uri) == APPROVAL


async def test_news_logged_by_two_stores_at_once_is_added_once(path: Path) -> None:
    line = LogLine("served", "acme", "skill://flat/SKILL.md", "gateway", 1.0, {"fingerprint": "x"})
    async with opened(path) as one, opened(path) as other:
        added: list[int] = []

        async def note(store: Store) -> None:
            added.append(await store.log_news([line, line]))

        async with anyio.create_task_group() as group:
            for store in (one, other) * 5:
                group.start_soon(note, store)
        assert sorted(added) == [0] * 9 + [1]


async def test_tasks_may_open_a_new_store_at_once(tmp_path: Path) -> None:
    async def use(path: Path) -> None:
        async with opened(path) as store:
            await store.log(LINE)

    for n in range(2):
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(use, tmp_path / f"new-{n}" / "store.db")
        async with opened(tmp_path / f"new-{n}" / "store.db") as store:
            assert len(await store.lines()) == 4


async def test_the_newest_lines_come_off_an_index_without_sorting(path: Path) -> None:
    indexes = {"": "", "origin": "log_of_origin", "uri": "log_of_uri", "origin uri": "log_of_uri"}
    async with opened(path) as store:
        for filters, index in indexes.items():
            asked: list[str] = []
            connection_of(store).set_trace_callback(asked.append)
            await store.lines(**dict.fromkeys(filters.split(), "a"))
            connection_of(store).set_trace_callback(None)
            plan = " ".join(row[3] for row in connection_of(store).execute(f"EXPLAIN QUERY PLAN {asked[0]}"))
            assert "TEMP B-TREE" not in plan
            if index:
                assert f"SEARCH log USING INDEX {index}" in plan
            else:
                assert plan == "SCAN log"  # backwards, by number


async def test_a_listing_written_by_the_first_version_can_still_be_read(path: Path) -> None:
    """The form of a stored entry is a promise to every store out there."""
    stored = (
        '[{"uri":"skill://a/SKILL.md","frontmatter":{"name":"a"},"resources":'
        '[{"uri":"skill://a/SKILL.md","digest":"sha256:0","size":3}],"complete":true,"notPromised":[]},'
        '{"uri":"skill://b/SKILL.md","frontmatter":{},"resources":[{"uri":"skill://b/SKILL.md"}],"complete":false,'
        '"notPromised":["digest","frontmatter","manifest","size"]},'
        '{"uri":"skill://c/SKILL.md","frontmatter":{},"resources":"dynamic","complete":false,'
        '"notPromised":["digest","manifest","size"]}]'
    )
    expected = (
        SkillEntry("skill://a/SKILL.md", {"name": "a"}, (Resource("skill://a/SKILL.md", "sha256:0", 3),)),
        SkillEntry(
            "skill://b/SKILL.md",
            {},
            Partial((Resource("skill://b/SKILL.md", None, None),)),
            whole_frontmatter=False,
        ),
        SkillEntry("skill://c/SKILL.md", {}, "dynamic"),
    )
    async with opened(path) as store:
        with raw(path) as other:
            other.execute("INSERT INTO entries VALUES ('acme', ?, 1.0, 1)", (stored,))
            assert await store.entries("acme") == SeenEntries(expected, 1.0)
            await store.put_entries("again", SeenEntries(expected, 1.0))
            (again,) = other.execute("SELECT entries FROM entries WHERE label = 'again'").fetchone()
        assert again == stored


async def test_a_closed_store_refuses(path: Path) -> None:
    store = await Store.open(path)
    await store.close()
    for call in (store.origins, lambda: store.log(LINE)):
        with pytest.raises(StoreError) as caught:
            await call()
        assert caught.value.reference == "store-closed"


async def test_closing_waits_for_the_call_under_way_even_if_cancelled(path: Path) -> None:
    store = await Store.open(path)
    async with anyio.create_task_group() as group:
        group.start_soon(store.log, LINE)
        await anyio.lowlevel.checkpoint()  # it has begun
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.close()
    with pytest.raises(StoreError) as caught:
        await store.origins()
    assert caught.value.reference == "store-closed"
    async with opened(path) as store:
        assert len(await store.lines()) == 1


# The log


async def test_the_log_only_grows(path: Path) -> None:
    """Whoever speaks to the file directly is held to it too."""
    async with opened(path) as store:
        await store.log(LINE)
    for attempt in (
        "UPDATE log SET who = 'eve'",
        "DELETE FROM log",
        "INSERT OR REPLACE INTO log VALUES (1, 'read', 'a', 'b', 'eve', 1, '{}', '')",
        "REPLACE INTO log SELECT * FROM log",
        "INSERT INTO log VALUES (1, 'read', 'a', 'b', 'eve', 1, '{}', '') ON CONFLICT DO UPDATE SET who = 'eve'",
    ):
        with raw(path) as other, pytest.raises(sqlite3.IntegrityError) as caught:
            other.execute(attempt)
        assert caught.value.sqlite_errorname == "SQLITE_CONSTRAINT_TRIGGER"
    async with opened(path) as store:
        assert [line.by for line in await store.lines()] == ["ada"]
        await store.log(LINE)
        assert [line.number for line in await store.lines()] == [2, 1]


# Rights


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask() -> Any:
    before = os.umask(0)
    yield
    os.umask(before)


async def test_what_is_made_is_for_this_user_alone(tmp_path: Path, open_umask: None) -> None:
    path = tmp_path / "a" / "b" / "store.db"
    async with opened(path) as store:
        await store.log(LINE)
        made = sorted(path.parent.iterdir())
        assert [file.name for file in made] == ["store.db", "store.db-shm", "store.db-wal"]
        assert {mode_of(file) for file in made} == {0o600}
    assert mode_of(path.parent) == mode_of(path.parent.parent) == 0o700


@pytest.mark.parametrize("right", [0o020, 0o002], ids=["group", "others"])
async def test_a_folder_that_others_can_write_is_refused_and_stays_empty(path: Path, right: int) -> None:
    """Who can write here can approve."""
    path.parent.mkdir()
    path.parent.chmod(0o700 | right)
    error = await refusal(path)
    assert error.reference == "store-unsafe"
    assert "store.db" in error.message
    assert list(path.parent.iterdir()) == []


async def test_a_file_that_others_can_write_is_refused(path: Path) -> None:
    async with opened(path):
        pass
    for ending in ("", "-wal", "-shm", "-journal"):
        beside = path.with_name(path.name + ending)
        beside.touch()
        beside.chmod(0o660)
        error = await refusal(path)
        assert error.reference == "store-unsafe"
        assert beside.name in error.message
        beside.chmod(0o600)


async def test_a_folder_or_file_of_another_user_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path):
        pass
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert (await refusal(path)).reference == "store-unsafe"


async def test_a_link_is_judged_by_what_it_leads_to(path: Path, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    for folder, mode in ((path.parent, 0o700), (shared, 0o777)):
        folder.mkdir()
        folder.chmod(mode)
    os.symlink(shared / "real.db", path)
    error = await refusal(path)
    assert error.reference == "store-unsafe"
    assert "real.db" in error.message
    assert list(shared.iterdir()) == []
    shared.chmod(0o700)
    async with opened(path) as store:
        await store.log(LINE)
    assert mode_of(shared / "real.db") == 0o600


# What goes wrong


@pytest.mark.parametrize(
    "content",
    [b"this is no database" * 100, b"SQLite format 3\0" + b"\xff" * 4096, b"xy"],
    ids=["text", "header", "short"],
)
async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path, content: bytes) -> None:
    put_file(path, content)
    assert (await refusal(path)).reference == "store-damaged"
    assert snapshot(path) == {"store.db": content}


async def test_damage_in_the_middle_is_reported_when_it_is_read(path: Path) -> None:
    async with opened(path) as store:
        await store.put_entries("origin", SeenEntries((SkillEntry("u", {"x": "y" * 3000}, ()),), 1.0))
    with raw(path) as other:
        other.execute(
            "WITH RECURSIVE numbers(n) AS (VALUES (0) UNION ALL SELECT n + 1 FROM numbers WHERE n < 199) "
            "INSERT INTO entries SELECT 'origin-' || n, entries, at, is_complete FROM numbers, entries"
        )
    data = bytearray(snapshot(path)["store.db"])
    data[20 * 4096 : -4096] = b"\xee" * (len(data) - 21 * 4096)
    put_file(path, data)
    async with opened(path) as store:
        with pytest.raises(StoreError) as caught:
            await store.entries("origin-150")
        assert without_places(caught.value, path).reference == "store-damaged"
    assert snapshot(path) == {"store.db": data}


async def test_a_row_that_does_not_hold_what_we_write_is_damage(path: Path) -> None:
    damage = [("contents", "[1]"), ("contents", "{"), ("contents", "null"), ("grants", "7"), ("grants", b"\xff")]
    async with opened(path) as store:
        for column, value in damage:
            await store.put_approval(APPROVAL, LINE)
            with raw(path) as other:
                other.execute(f"UPDATE approvals SET {column} = ?", (value,))
            with pytest.raises(StoreError) as caught:
                await store.approval("acme", APPROVAL.uri)
            assert without_places(caught.value, path).reference == "store-damaged"


async def test_a_stored_listing_that_is_no_listing_is_damage(path: Path) -> None:
    async with opened(path) as store:
        for document in ('{"a": 1}', "[[]]", '[{"uri": "x"}]', "[null]"):
            with raw(path) as other:
                other.execute("INSERT OR REPLACE INTO entries VALUES ('acme', ?, 1.0, 1)", (document,))
            with pytest.raises(StoreError) as caught:
                await store.entries("acme")
            assert caught.value.reference == "store-damaged"


async def test_a_store_that_another_writer_holds_is_busy(path: Path) -> None:
    async with opened(path, patience=0.05) as store:
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreError) as caught:
                await store.put_approval(APPROVAL, LINE)
            assert without_places(caught.value, path).reference == "store-busy"
            other.execute("ROLLBACK")
        await store.put_approval(APPROVAL, LINE)
        assert len(await store.lines()) == 1


@pytest.mark.parametrize("mode", ["new", "made"])
async def test_a_store_that_another_holds_for_itself_cannot_be_opened(path: Path, mode: str) -> None:
    if mode == "made":
        async with opened(path):
            pass
    else:
        put_file(path)
    with raw(path) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        assert (await refusal(path, patience=0.05)).reference == "store-busy"


async def test_switching_to_wal_waits_for_others(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite gives up at once there if somebody is about to write; that must not spoil the opening."""
    put_file(path)
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    pauses: list[float] = []

    def hold(connection: sqlite3.Connection, patience: float) -> None:
        other.execute("BEGIN IMMEDIATE")
        use_wal(connection, patience)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            other.execute("COMMIT")

    use_wal = sqlite._use_wal
    monkeypatch.setattr(sqlite, "_use_wal", hold)
    monkeypatch.setattr(sqlite.time, "sleep", pause)
    with closing(other):
        async with opened(path) as store:
            assert connection_of(store).execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert len(pauses) == 3


@pytest.mark.parametrize("lock", ["DEFERRED", "IMMEDIATE"])
async def test_a_switch_to_wal_that_others_never_allow_ends_as_busy(
    path: Path, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    put_file(path)
    monkeypatch.setattr(sqlite, "migrate", lambda connection, schema: None)
    with raw(path) as other:
        other.execute("CREATE TABLE t (x)")
        other.execute(f"BEGIN {lock}")
        other.execute("SELECT * FROM t").fetchall()
        assert (await refusal(path, patience=0.05)).reference == "store-busy"


async def test_a_full_disk_keeps_what_was_there_and_takes_nothing_by_halves(path: Path) -> None:
    async with opened(path) as store:
        await store.put_approval(APPROVAL, LINE)
        (pages,) = connection_of(store).execute("PRAGMA page_count").fetchone()
        connection_of(store).execute(f"PRAGMA max_page_count = {pages}")
        many = Approval("acme", "big", frozenset((f"f{n}", "sha256:0") for n in range(1000)), "ada", 1.0)
        with pytest.raises(StoreError) as caught:
            await store.put_approval(many, LINE)
        assert without_places(caught.value, path).reference == "store-full"
        assert list(await store.approvals()) == [APPROVAL]
        assert len(await store.lines()) == 1
        connection_of(store).execute("PRAGMA max_page_count = 1000000")
        await store.put_approval(many, LINE)
        assert await store.approval("acme", "big") == many


async def test_a_write_to_a_readonly_store_is_refused(path: Path) -> None:
    async with opened(path) as store:
        await store.put_approval(APPROVAL, LINE)
        connection_of(store).execute("PRAGMA query_only = ON")
        with pytest.raises(StoreError) as caught:
            await store.remove_approval("acme", APPROVAL.uri, LINE)
        assert without_places(caught.value, path).reference == "store-readonly"
        assert list(await store.approvals()) == [APPROVAL]


async def test_an_error_of_the_disk_becomes_an_error_of_the_store(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    references = {
        errno.EACCES: "store-readonly",
        errno.EROFS: "store-readonly",
        errno.ENOSPC: "store-full",
        errno.EDQUOT: "store-full",
        errno.EIO: "store-unusable",
    }

    def failing(code: int) -> Callable[[object, int], None]:
        def fail(place: object, mode: int) -> None:
            raise OSError(code, os.strerror(code), str(place))

        return fail

    for code, reference in references.items():
        monkeypatch.setattr(sqlite.os, "mkdir", failing(code))
        assert (await refusal(path)).reference == reference


@pytest.mark.parametrize(
    ("code", "reference"),
    [
        ("SQLITE_FULL", "store-full"),
        ("SQLITE_IOERR_SHMSIZE", "store-full"),
        ("SQLITE_IOERR_WRITE", "store-unusable"),
        ("SQLITE_CANTOPEN", "store-unusable"),
    ],
)
def test_a_failure_of_the_disk_has_a_plain_message(code: str, reference: str) -> None:
    """A full disk has several codes, and none of them is shown."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode, error.sqlite_errorname = getattr(sqlite3, code), code
    with pytest.raises(StoreError) as caught, sqlite.translated_errors("host.sqlite3"):
        raise error
    assert caught.value.reference == reference
    assert caught.value.hint
    assert "SQLITE" not in str(caught.value)


async def test_a_folder_in_the_place_of_the_file_is_refused(path: Path) -> None:
    for folder in (path.parent, path):
        folder.mkdir(mode=0o700)
    error = await refusal(path)
    assert error.reference == "store-unusable"


async def test_a_file_in_the_place_of_the_folder_is_refused(path: Path) -> None:
    path.parent.write_text("not a folder")
    path.parent.chmod(0o600)
    assert (await refusal(path)).reference == "store-unusable"


async def test_a_path_with_characters_of_urls_is_a_plain_path(tmp_path: Path) -> None:
    path = tmp_path / "100% ?mode=memory#&ü" / ":memory:"
    async with opened(path) as store:
        await store.log(LINE)
    assert path.stat().st_size > 0


async def test_a_relative_path_starts_at_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with opened("here/store.db") as store:
        await store.log(LINE)
    assert (tmp_path / "here" / "store.db").stat().st_size > 0


# Versions


async def test_a_store_of_a_newer_version_is_refused_and_not_touched(path: Path) -> None:
    async with opened(path) as store:
        await store.put_approval(APPROVAL, LINE)
    with raw(path) as other:
        other.execute("ALTER TABLE approvals ADD COLUMN until REAL")
        other.execute(f"PRAGMA user_version = {len(HOST_SCHEMA.sqlite) + 1}")
    before = snapshot(path)
    assert (await refusal(path)).reference == "store-newer"
    assert snapshot(path) == before


async def test_a_store_made_newer_while_it_is_open_is_not_written_any_more(path: Path) -> None:
    """An old process that runs on beside an updated one must not write the old shape into the new."""
    async with opened(path) as store:
        await store.put_approval(APPROVAL, LINE)
        with raw(path) as other:
            other.execute(f"PRAGMA user_version = {len(HOST_SCHEMA.sqlite) + 1}")
        for call in (store.log(LINE), store.remove_approval("acme", APPROVAL.uri, LINE)):
            with pytest.raises(StoreError) as caught:
                await call
            assert caught.value.reference == "store-newer"
        assert list(await store.approvals()) == [APPROVAL]


async def test_the_database_of_another_program_is_refused_and_not_touched(path: Path) -> None:
    """Whatever it says its version is, also if that is newer than ours."""
    put_file(path)
    with raw(path) as other:
        other.execute("CREATE TABLE bookmarks (url)")
        other.execute("PRAGMA user_version = 99")
    before = snapshot(path)
    assert (await refusal(path)).reference == "store-foreign"
    assert snapshot(path) == before
