"""A store and real processes: killed while they write, several at once, and users that it does not belong to.

What the processes do is in ``store_worker.py``.
"""

from __future__ import annotations

import os
import select
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio
import pytest

from e2e.store_worker import LATER, approval, line
from e2e.talking import PATIENCE, kill_group
from rules import rule
from skillwire.skill.entry import build_entry
from skillwire.store.records import Answered, LogLine, Question, SeenEntries
from skillwire.store.schema import HOST_SCHEMA
from skillwire.store.store import Store
from starting import python_command

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire.skill.approval import Approval

WORKER = str(Path(__file__).with_name("store_worker.py"))
NOBODY = 65534


class Process:
    """The worker, running; its output is read line by line, with a bound. Use it as a context manager."""

    def __init__(self, *words: str, new: bool = False) -> None:
        command = [sys.executable] if new else python_command()
        self.popen = subprocess.Popen(
            [*command, WORKER, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._unread = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        kill_group(self.popen)

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

    def kill(self) -> list[str]:
        """Kill it: what it had said."""
        self.popen.kill()
        said = self.hear_all()  # its pipe is closed when it is dead
        self.popen.wait(PATIENCE)
        return said


@contextmanager
def several(count: int, *words: str) -> Iterator[list[Process]]:
    """Processes that are all ready."""
    with ExitStack() as stack:
        processes = [stack.enter_context(Process(*words)) for _ in range(count)]
        assert {process.hear() for process in processes} == {"ready"}
        yield processes


def look(path: Path) -> tuple[list[Approval], list[LogLine]]:
    """All approvals and all lines, by a process that comes later."""

    async def ask() -> tuple[list[Approval], list[LogLine]]:
        store = await Store.open(path)
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
        store = await Store.open(path)
        await store.put_approval(approval("ada", 0), line("approved", "ada", 0))
        await store.put_entries("acme", SeenEntries((), 1.0))
        await store.close()

    anyio.run(make)
    return path


@rule("A1", "A2")
def test_a_process_killed_while_it_writes_leaves_whole_approvals_and_all_that_it_acknowledged(
    path: Path,
) -> None:
    """A yes and a no both stand from the moment they were acknowledged; there is no half of either."""
    acknowledged: set[str] = set()
    for worker, heard in (("first", 2), ("second", 25)):
        with Process("write", str(path), worker, "100000", new=True) as process:
            assert process.hear() == "ready"
            process.tell("go")
            told = [process.hear() for _ in range(heard)]
            told += process.kill()
        acknowledged |= {f"{worker} {text}" for text in told}

        approvals, lines = look(path)
        assert approvals == sorted(
            (approval(each.by, int(each.at)) for each in approvals), key=lambda each: (each.origin, each.uri)
        )
        logged = {f"{each.by} {each.what} {int(each.at)}" for each in lines}
        assert acknowledged <= logged
        assert len(logged - acknowledged) <= 2  # at most the last step of each process was not yet told
        revoked = {text.replace("revoked", "approved") for text in logged if "revoked" in text}
        standing = {f"{each.by} approved {int(each.at)}" for each in approvals}
        assert standing == {text for text in logged if "approved" in text} - revoked
        assert query(path, "PRAGMA integrity_check") == ["ok"]


@rule("A1", "A2")
@pytest.mark.parametrize("what", ["approve", "revoke"])
@pytest.mark.parametrize("statement", ["INSERT INTO log", "COMMIT"], ids=["insert", "commit"])
def test_a_process_killed_between_an_approval_and_its_line_leaves_neither(
    made: Path, what: str, statement: str
) -> None:
    """It is stopped where it would hurt most, so that no luck is needed."""
    before = look(made)
    with Process("write_by_half", str(made), what, statement) as process:
        assert process.hear() == "ready"
        assert look(made) == before  # nor does anybody see half of it meanwhile
        process.kill()
    assert look(made) == before
    with Process("use", str(made)) as process:
        assert process.hear_all() == ["1 approvals", "written", "end"]


def test_of_processes_that_answer_at_once_one_is_first_and_others_notice(path: Path) -> None:
    """The asker learns the answer of the one who was told that theirs is it."""

    async def ask_all(processes: list[Process]) -> None:
        store = await Store.open(path)
        entry = build_entry("flat", {"name": "flat", "description": "x"}, [("SKILL.md", f"sha256:{0:064}", 1)])
        for number in range(8):
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
        processes = [stack.enter_context(Process("answer_each", str(path), str(who))) for who in range(3)]
        assert {process.hear() for process in processes} == {"ready"}
        anyio.run(ask_all, processes)


def test_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    workers, count = ["a", "b", "c"], 15
    with ExitStack() as stack:
        processes = [stack.enter_context(Process("write", str(path), each, str(count))) for each in workers]
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
    with several(3, "open_each") as processes:
        for n in range(8):
            path = tmp_path / f"new-{n}" / "store.db"
            for process in processes:
                process.tell(str(path))
            assert [process.hear() for process in processes] == ["used"] * 3
            assert query(path, "PRAGMA user_version") == [len(HOST_SCHEMA.sqlite)]
            assert len(query(path, "SELECT number FROM log")) == 3
            assert path.stat().st_mode & 0o777 == 0o600
            assert path.parent.stat().st_mode & 0o777 == 0o700


def test_processes_may_migrate_an_old_store_at_once_and_each_step_is_made_once(made: Path) -> None:
    with several(3, "migrate_each") as processes:
        for n in range(5):
            old = made.with_name(f"old-{n}.db")
            shutil.copy(made, old)
            for process in processes:
                process.tell(str(old))
            assert [process.hear() for process in processes] == ["migrated"] * 3
            assert query(old, "PRAGMA user_version") == [len(LATER)]
            assert query(old, "SELECT label FROM origins") == [f"migration-{step}" for step in range(5)]
            assert query(old, "SELECT uri FROM approvals") == [approval("ada", 0).uri]


def test_a_process_killed_in_the_middle_of_a_migration_leaves_the_old_store(made: Path) -> None:
    before = look(made)
    with Process("migrate_by_half", str(made)) as process:
        assert process.hear() == "ready"
        process.kill()
    assert query(made, "PRAGMA user_version") == [len(HOST_SCHEMA.sqlite)]
    assert query(made, "SELECT name FROM sqlite_master WHERE name = 'half'") == []
    assert look(made) == before


def test_a_damaged_store_is_told_of_left_alone_and_replaced_once_it_was_moved_aside(made: Path) -> None:
    data = b"\0" * 4096 + made.read_bytes()[4096:]
    made.write_bytes(data)
    with Process("use", str(made)) as process:
        told = " ".join(process.hear_all())
    assert "store.db" in told
    assert "[store-damaged]" in told
    assert str(made.parent) not in told
    assert made.read_bytes() == data
    made.rename(made.with_name("aside.db"))
    with Process("use", str(made)) as process:
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
    with Process("use", str(path)) as process:
        told = " ".join(process.hear_all())
    assert "[store-unsafe]" in told
    assert not path.exists()


def test_a_store_that_may_only_be_read_can_be_read(place: Path) -> None:
    """Root may write everything, so that another user has to try."""
    words = ["use", str(place / "own" / "store.db")]
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
        words.append(str(NOBODY))
    with Process(*words) as process:
        assert process.hear_all() == ["0 approvals", "written", "end"]
    Path(words[1]).chmod(0o400)
    with Process(*words) as process:
        approvals, told, _ = process.hear_all()
    assert approvals == "0 approvals"
    assert "[store-readonly]" in told


def test_a_store_cannot_be_made_where_nothing_may_be_written(place: Path) -> None:
    words = ["use", str(place / "own" / "store.db")]
    if os.geteuid() == 0:
        words.append(str(NOBODY))
    place.chmod(0o555)
    try:
        with Process(*words) as process:
            told = " ".join(process.hear_all())
    finally:
        place.chmod(0o755)
    assert "[store-readonly]" in told
    assert str(place) not in told
