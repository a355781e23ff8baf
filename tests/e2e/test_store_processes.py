"""A store and real processes: killed while they write, several at once, and users that it does not belong to.

Run as a program, this file is one of those processes; ``main`` says what it can do.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from rules import rule
from skillwire.errors import StoreError
from skillwire.skill.approval import Approval
from skillwire.skill.entry import build_entry
from skillwire.store.contract import Answered, LogLine, Question, SeenEntries
from skillwire.store.migrations import MIGRATIONS, migrate
from skillwire.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

PATIENCE = 60
NOBODY = 65534
FILES = 200  # enough that an approval is several pages of the file
LATER = (*MIGRATIONS, *((f"INSERT INTO origins VALUES ('migration-{n}', '{{}}', {n})",) for n in range(5)))


def approval(worker: str, n: int) -> Approval:
    uri = f"skill://{worker}/{n}/SKILL.md"
    contents = frozenset((f"skill://{worker}/{n}/{file}", f"sha256:{n:064}") for file in range(FILES))
    return Approval("acme", uri, contents, worker, float(n), frozenset({"execute"}))


def line(what: Any, worker: str, n: int) -> LogLine:
    return LogLine(what, "acme", approval(worker, n).uri, worker, float(n))


# What a process does


def say(text: object) -> None:
    print(text, flush=True)


async def write(path: str, worker: str, count: str) -> None:
    """Approve, and take every third approval back. Whatever was said has been acknowledged."""
    store = await SqliteStore.open(path, patience=PATIENCE)
    say("ready")
    sys.stdin.readline()
    for n in range(int(count)):
        await store.put_approval(approval(worker, n), line("approved", worker, n))
        say(f"approved {n}")
        if n % 3 == 0:
            await store.remove_approval("acme", approval(worker, n).uri, line("revoked", worker, n))
            say(f"revoked {n}")
    await store.close()


async def write_by_half(path: str, what: str, statement: str) -> None:
    """Begin to approve or to revoke, and stop before ``statement``."""

    def halt(begun: str) -> None:
        if begun.startswith(statement):
            say("ready")
            sys.stdin.readline()

    store = await SqliteStore.open(path)
    assert store._connection is not None
    store._connection.set_trace_callback(halt)
    if what == "approve":
        await store.put_approval(approval("ada", 1), line("approved", "ada", 1))
    else:
        await store.remove_approval("acme", approval("ada", 0).uri, line("revoked", "ada", 0))


async def open_each() -> None:
    """Open, use and close the store at each path that comes in."""
    say("ready")
    for path in sys.stdin:
        try:
            store = await SqliteStore.open(path.strip(), patience=PATIENCE)
            await store.log(LogLine("read", "acme", "", str(os.getpid()), 1.0))
            await store.close()
            say("used")
        except StoreError as error:
            say(error)


async def answer_each(path: str, who: str) -> None:
    """Answer each question whose id comes in, and say whether that was the answer."""
    store = await SqliteStore.open(path, patience=PATIENCE)
    say("ready")
    for key in sys.stdin:
        say(await store.answer_question(key.strip(), Answered(yes=True, by=who, at=1.0)))
    await store.close()


async def migrate_each() -> None:
    """Bring the store at each path that comes in to a version that is still to come."""
    say("ready")
    for path in sys.stdin:
        with closing(sqlite3.connect(path.strip(), isolation_level=None, timeout=PATIENCE)) as connection:
            migrate(connection, LATER)
        say("migrated")


async def migrate_by_half(path: str) -> None:
    """Stop in the middle of a migration."""

    def halt() -> int:
        say("ready")
        sys.stdin.readline()
        return 0

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_function("halt", 0, halt)
        half = ("CREATE TABLE half (x)", "INSERT INTO half VALUES (1)", "INSERT INTO half SELECT halt()")
        migrate(connection, (*MIGRATIONS, half))


async def use(path: str, user: str = "") -> None:
    """Open, read, write, and say how far it went; as another user, if asked."""
    if user:
        os.setgroups([])
        os.setgid(int(user))
        os.setuid(int(user))
    try:
        store = await SqliteStore.open(path, patience=1)
        try:
            say(f"{len(await store.approvals())} approvals")
            await store.log(LogLine("read", "acme", "", "ada", 1.0))
            say("written")
        finally:
            await store.close()
    except StoreError as error:
        say(str(error).replace("\n", " "))
    say("end")


TASKS: dict[str, Callable[..., Awaitable[None]]] = {
    each.__name__: each
    for each in (write, write_by_half, open_each, answer_each, migrate_each, migrate_by_half, use)
}


def main() -> None:
    name, *words = sys.argv[1:]
    anyio.run(TASKS[name], *words)


# The tests


class Process:
    """This file, running; its talk is read line by line, with a bound."""

    def __init__(self, *words: str) -> None:
        self.popen = subprocess.Popen(
            [sys.executable, __file__, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self._unread = b""

    def hear(self) -> str:
        """The next line; empty when it has ended."""
        assert self.popen.stdout is not None
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self.popen.stdout], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"waited for a line; heard {self._unread!r}"
            data = os.read(self.popen.stdout.fileno(), 65536)
            if not data:
                return ""
            self._unread += data
        text, _, self._unread = self._unread.partition(b"\n")
        return text.decode()

    def hear_all(self) -> list[str]:
        return list(iter(self.hear, ""))

    def tell(self, text: str) -> None:
        assert self.popen.stdin is not None
        self.popen.stdin.write(f"{text}\n".encode())

    def kill(self) -> None:
        self.popen.send_signal(signal.SIGKILL)
        self.popen.wait(PATIENCE)

    def close(self) -> None:
        self.kill()
        for stream in (self.popen.stdin, self.popen.stdout):
            assert stream is not None
            stream.close()


@contextmanager
def running(*words: str) -> Iterator[Process]:
    process = Process(*words)
    try:
        yield process
    finally:
        process.close()


@contextmanager
def several(count: int, *words: str) -> Iterator[list[Process]]:
    """Processes that are all ready."""
    with ExitStack() as stack:
        processes = [stack.enter_context(running(*words)) for _ in range(count)]
        assert {process.hear() for process in processes} == {"ready"}
        yield processes


def look(path: Path) -> tuple[list[Approval], list[LogLine]]:
    """All approvals and all lines, by a process that comes later."""

    async def ask() -> tuple[list[Approval], list[LogLine]]:
        store = await SqliteStore.open(path)
        try:
            return list(await store.approvals()), list(await store.lines(limit=100_000))
        finally:
            await store.close()

    return anyio.run(ask)


def query(path: Path, text: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute(text)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own" / "store.db"


@pytest.fixture
def made(path: Path) -> Path:
    """A store with one approval."""

    async def make() -> None:
        store = await SqliteStore.open(path)
        await store.put_approval(approval("ada", 0), line("approved", "ada", 0))
        await store.put_entries("acme", SeenEntries((), 1.0))
        await store.close()

    anyio.run(make)
    return path


@rule("A1", "A2")
@pytest.mark.parametrize("heard", [2, 25])
def test_a_process_killed_while_it_writes_leaves_whole_approvals_and_all_that_it_acknowledged(
    path: Path, heard: int
) -> None:
    """A yes and a no both stand from the moment they were acknowledged; there is no half of either."""
    acknowledged: set[str] = set()
    for worker in ("first", "second", "third"):
        with running("write", str(path), worker, "100000") as process:
            assert process.hear() == "ready"
            process.tell("go")
            told = [process.hear() for _ in range(heard)]
            process.kill()
            told += process.hear_all()  # what it said while we were about to kill it
        acknowledged |= {f"{worker} {text}" for text in told}

        approvals, lines = look(path)
        assert approvals == sorted(
            (approval(each.by, int(each.at)) for each in approvals), key=lambda each: (each.origin, each.uri)
        )
        logged = {f"{each.by} {each.what} {int(each.at)}" for each in lines}
        assert acknowledged <= logged
        assert len(logged - acknowledged) <= 3  # at most the last step of each process was not yet told
        revoked = {text.replace("revoked", "approved") for text in logged if "revoked" in text}
        standing = {f"{each.by} approved {int(each.at)}" for each in approvals}
        assert standing == {text for text in logged if "approved" in text} - revoked
        assert query(path, "PRAGMA integrity_check") == ["ok"]


@rule("A1", "A2")
@pytest.mark.parametrize("what", ["approve", "revoke"])
@pytest.mark.parametrize("statement", ["INSERT INTO log", "COMMIT"])
def test_a_process_killed_between_an_approval_and_its_line_leaves_neither(
    made: Path, what: str, statement: str
) -> None:
    """It is stopped where it would hurt most, so that no luck is needed."""
    before = look(made)
    with running("write_by_half", str(made), what, statement) as process:
        assert process.hear() == "ready"
        assert look(made) == before  # nor does anybody see half of it meanwhile
        process.kill()
    assert look(made) == before
    with running("use", str(made)) as process:
        assert process.hear_all() == ["1 approvals", "written", "end"]


def test_of_processes_that_answer_at_once_one_is_first_and_others_notice(path: Path) -> None:
    """The asker learns the answer of the one who was told that theirs is it."""

    async def ask_all(processes: list[Process]) -> None:
        store = await SqliteStore.open(path)
        entry = build_entry("flat", {"name": "flat", "description": "x"}, [("SKILL.md", f"sha256:{0:064}", 1)])
        for number in range(20):
            await store.put_question(Question(str(number), "load", "acme", entry, "test", 0.0, 2.0))
            version = await store.version()
            for process in processes:
                process.tell(str(number))
            told = [process.hear() for process in processes]
            assert sorted(told) == ["False", "False", "True"]
            assert await store.version() != version
            assert await store.withdraw_question(str(number)) == Answered(
                yes=True, by=str(told.index("True")), at=1.0
            )
        await store.close()

    with ExitStack() as stack:
        processes = [stack.enter_context(running("answer_each", str(path), str(who))) for who in range(3)]
        assert {process.hear() for process in processes} == {"ready"}
        anyio.run(ask_all, processes)


def test_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    workers, count = ["a", "b", "c"], 40
    with ExitStack() as stack:
        processes = [stack.enter_context(running("write", str(path), each, str(count))) for each in workers]
        assert {process.hear() for process in processes} == {"ready"}
        for process in processes:
            process.tell("go")
        for process in processes:
            assert len(process.hear_all()) == count + (count + 2) // 3
            assert process.popen.wait(PATIENCE) == 0
    approvals, lines = look(path)
    expected = {approval(each, n) for each in workers for n in range(count) if n % 3}
    assert set(approvals) == expected
    assert len(approvals) == len(expected)
    assert len(lines) == len(workers) * (count + (count + 2) // 3)
    assert [each.number for each in lines] == list(range(len(lines), 0, -1))
    for worker in workers:  # each process's lines stand in the order in which it wrote them
        assert [each.at for each in reversed(lines) if each.by == worker and each.what == "approved"] == [
            *range(count)
        ]


def test_processes_may_make_a_new_store_at_once(tmp_path: Path) -> None:
    with several(4, "open_each") as processes:
        for n in range(12):
            path = tmp_path / f"new-{n}" / "store.db"
            for process in processes:
                process.tell(str(path))
            assert [process.hear() for process in processes] == ["used"] * 4
            assert query(path, "PRAGMA user_version") == [len(MIGRATIONS)]
            assert len(query(path, "SELECT number FROM log")) == 4
            assert path.stat().st_mode & 0o777 == 0o600
            assert path.parent.stat().st_mode & 0o777 == 0o700


def test_processes_may_migrate_an_old_store_at_once_and_each_step_is_made_once(made: Path) -> None:
    with several(4, "migrate_each") as processes:
        for n in range(8):
            old = made.with_name(f"old-{n}.db")
            shutil.copy(made, old)
            for process in processes:
                process.tell(str(old))
            assert [process.hear() for process in processes] == ["migrated"] * 4
            assert query(old, "PRAGMA user_version") == [len(LATER)]
            assert query(old, "SELECT label FROM origins") == [f"migration-{step}" for step in range(5)]
            assert query(old, "SELECT uri FROM approvals") == [approval("ada", 0).uri]


def test_a_process_killed_in_the_middle_of_a_migration_leaves_the_old_store(made: Path) -> None:
    before = look(made)
    with running("migrate_by_half", str(made)) as process:
        assert process.hear() == "ready"
        process.kill()
    assert query(made, "PRAGMA user_version") == [len(MIGRATIONS)]
    assert query(made, "SELECT name FROM sqlite_master WHERE name = 'half'") == []
    assert look(made) == before


def test_a_damaged_store_is_told_of_left_alone_and_replaced_once_it_was_moved_aside(made: Path) -> None:
    data = b"\0" * 4096 + made.read_bytes()[4096:]
    made.write_bytes(data)
    with running("use", str(made)) as process:
        told = " ".join(process.hear_all())
    assert "the store 'store.db' is damaged" in told
    assert "[store-damaged]" in told
    assert "move it aside" in told
    assert str(made.parent) not in told
    assert made.read_bytes() == data
    made.rename(made.with_name("aside.db"))
    with running("use", str(made)) as process:
        assert process.hear_all() == ["0 approvals", "written", "end"]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def test_the_store_of_another_user_is_refused(place: Path) -> None:
    """Whoever can write a store approves skills for whoever reads it."""
    if os.geteuid() == 0:
        own = place / "theirs"
        own.mkdir(mode=0o755)
        os.chown(own, NOBODY, NOBODY)
        path = own / "store.db"
    else:
        path = Path("/store.db")  # the folder is root's
    with running("use", str(path)) as process:
        told = " ".join(process.hear_all())
    assert "belongs to another user" in told
    assert "[store-unsafe]" in told
    assert not path.exists()


def test_a_store_that_may_only_be_read_can_be_read(place: Path) -> None:
    """Root may write everything, so that another user has to try."""
    words = ["use", str(place / "own" / "store.db")]
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
        words.append(str(NOBODY))
    with running(*words) as process:
        assert process.hear_all() == ["0 approvals", "written", "end"]
    Path(words[1]).chmod(0o400)
    with running(*words) as process:
        approvals, told, _ = process.hear_all()
    assert approvals == "0 approvals"
    assert "[store-readonly]" in told


def test_a_store_cannot_be_made_where_nothing_may_be_written(place: Path) -> None:
    words = ["use", str(place / "own" / "store.db")]
    if os.geteuid() == 0:
        words.append(str(NOBODY))
    place.chmod(0o555)
    with running(*words) as process:
        told = " ".join(process.hear_all())
    place.chmod(0o755)
    assert "[store-readonly]" in told
    assert str(place) not in told


if __name__ == "__main__":
    main()
