"""A store in one SQLite file, for as many processes as like to use it.

- Each call is one transaction. WAL: readers do not wait for a writer, and one killed half-way leaves no trace.
- ``synchronous = FULL``: what was acknowledged survives a power cut too. With NORMAL, the last commits might be
  undone by one. A lost approval only asks a person twice; a lost revocation would let a skill act again that a
  person had stopped (A2), and a lost line is a hole in the log. It costs one flush of the disk for each write.
- Whoever can write the file can approve skills. Folder and file are made for this user alone (0700, 0600); those
  that others can write, or that another user owns, are refused.
- What SQLite and the disk say becomes ``StoreError`` here: busy, full, read-only, damaged. Nothing is deleted or
  repaired by us, ever, and no message names a place on the machine beyond the name of the file.

All SQL runs in a worker thread, on one connection, one call at a time. One event loop uses a store.
"""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread

from skillwire.errors import StoreError
from skillwire.skill.approval import fingerprint
from skillwire.store import questions, rows
from skillwire.store.contract import DECISIONS, KEPT_SECONDS, MOST_QUESTIONS, Answered, Store
from skillwire.store.failures import explained, readable
from skillwire.store.migrations import migrate, read_version, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from skillwire.skill import SkillEntry
    from skillwire.skill.approval import Approval, Contents
    from skillwire.store.contract import LogLine, Question, SeenEntries, StoredOrigin

T = TypeVar("T")
Statement: TypeAlias = tuple[str, tuple[Any, ...]]

DEFAULT_PATIENCE: Final = 5.0
"""Seconds to wait for another writer."""

_PAUSE = 0.02
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_BESIDE = ("", "-wal", "-shm", "-journal")  # what SQLite writes; each takes the mode of the first
# Closing any descriptor of a file drops the locks this process holds on it, SQLite's too. So a file is only ever
# opened here while it is new, and nobody else in the process can have found it yet.
_CREATING = threading.Lock()


class SqliteStore(Store):
    """``await SqliteStore.open(path)``, and ``await store.close()`` in the end."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection: sqlite3.Connection | None = connection
        self._name = name
        self._turn = CapacityLimiter(1)  # the lock: whoever holds its only token has the connection

    @classmethod
    async def open(cls, path: str | os.PathLike[str], *, patience: float = DEFAULT_PATIENCE) -> SqliteStore:
        """The store at ``path``, made if it is not there; ``StoreError`` if it cannot be used or trusted."""
        return cls(await to_thread.run_sync(_open, path, patience), os.path.basename(path))

    async def put_origin(self, origin: StoredOrigin) -> None:
        """Add or replace an origin."""
        values = (origin.label, json.dumps(dict(origin.settings)), origin.added_at)
        await self._write(("INSERT OR REPLACE INTO origins (label, settings, added_at) VALUES (?, ?, ?)", values))

    async def remove_origin(self, label: str) -> bool:
        """Forget an origin, what it listed and what was approved of it; whether there was one. The log stays."""
        return await self._write(
            ("DELETE FROM origins WHERE label = ?", (label,)),
            ("DELETE FROM entries WHERE label = ?", (label,)),
            ("DELETE FROM entries WHERE substr(label, 1, ?) = ?", (len(label) + 1, f"{label}#")),
            ("DELETE FROM asked_entries WHERE label = ?", (label,)),
            ("DELETE FROM asked_entries WHERE substr(label, 1, ?) = ?", (len(label) + 1, f"{label}#")),
            ("DELETE FROM approvals WHERE origin = ?", (label,)),
            ("DELETE FROM approvals WHERE substr(origin, 1, ?) = ?", (len(label) + 1, f"{label}#")),
        )

    async def origins(self) -> Sequence[StoredOrigin]:
        """Every origin, by label."""
        found = await self._read(rows.to_origin, "SELECT label, settings, added_at FROM origins")
        return sorted(found, key=lambda origin: origin.label)

    async def put_entries(self, label: str, seen: SeenEntries) -> None:
        """Remember what an origin lists, in place of everything that was remembered about it."""
        text = await to_thread.run_sync(rows.entries_as_text, seen.entries)
        values = (label, text, seen.at, seen.is_complete)
        await self._write(
            ("INSERT OR REPLACE INTO entries (label, entries, at, is_complete) VALUES (?, ?, ?, ?)", values),
            ("DELETE FROM asked_entries WHERE label = ?", (label,)),
            *((rows.PUT_ASKED, rows.asked_values(label, entry)) for entry in seen.asked),
        )

    async def add_entry(self, label: str, entry: SkillEntry) -> None:
        """Add the fuller entry of one skill."""
        await self._write((rows.PUT_ASKED, rows.asked_values(label, entry)))

    async def entries(self, label: str) -> SeenEntries | None:
        """What an origin listed last, if it was ever asked."""
        found = await self._read(
            rows.to_seen, "SELECT entries, at, is_complete FROM entries WHERE label = ?", label
        )
        if not found:
            return None
        asked = await self._read(rows.to_asked, "SELECT entry FROM asked_entries WHERE label = ?", label)
        return replace(found[0], asked=tuple(asked))

    async def put_approval(self, approval: Approval, line: LogLine, *, after: int | None = None) -> bool:
        """Remember an approval, in place of an earlier one for the same skill, and log it: one step (A1, A4)."""
        return await self._decide(
            line,
            after,
            (rows.PUT_APPROVAL, rows.values_of(approval)),
            (rows.LOG, rows.values_of_line(line)),
            _answering(line, approval.contents, approval.grants),
        )

    async def put_denial(self, contents: Contents, line: LogLine, *, after: int | None = None) -> bool:
        """Log a person's no to exactly this content; an approval of it goes, and whoever asks is answered (A2)."""
        return await self._decide(
            line,
            after,
            (rows.REMOVE_CONTENTS, (line.origin, line.uri, rows.contents_as_text(contents))),
            (rows.LOG, rows.values_of_line(line)),
            _answering(line, contents),
        )

    async def change_grants(self, approval: Approval, grants: frozenset[str], line: LogLine) -> bool:
        """Give exactly ``approval`` other grants; whether it was still there (A4, A5)."""
        return await self._write(
            (rows.CHANGE_GRANTS, (json.dumps(sorted(grants)), *rows.values_of(approval))),
            (f"{rows.LOG} WHERE changes() > 0", rows.values_of_line(line)),
        )

    async def remove_approval(self, origin: str, uri: str, line: LogLine, *, only: Approval | None = None) -> bool:
        """Forget an approval and its grants; whether there was one. Only then is there anything to log (A2)."""
        statement = (rows.REMOVE, (origin, uri)) if only is None else (rows.REMOVE_EXACTLY, rows.values_of(only))
        return await self._write(
            statement,
            (f"{rows.LOG} WHERE changes() > 0", rows.values_of_line(line)),
        )

    async def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval of one skill."""
        found = await self._read(rows.to_approval, f"{rows.APPROVALS} WHERE origin = ? AND uri = ?", origin, uri)
        return found[0] if found else None

    async def approvals(self, origin: str | None = None) -> Sequence[Approval]:
        """Every approval, by origin and URI."""
        which = ("", ()) if origin is None else (" WHERE origin = ?", (origin,))
        found = await self._read(rows.to_approval, rows.APPROVALS + which[0], *which[1])
        return sorted(found, key=lambda approval: (approval.origin, approval.uri))

    async def log(self, line: LogLine) -> None:
        """Add a line."""
        await self._write((rows.LOG, rows.values_of_line(line)))

    async def log_news(self, lines: Sequence[LogLine]) -> int:
        """Add the lines that are news, all in one transaction; how many."""

        def work(connection: sqlite3.Connection) -> int:
            return sum(_log_if_new(connection, line) for line in lines)

        return await self._change(work)

    async def lines(
        self,
        *,
        limit: int = 100,
        origin: str | None = None,
        uri: str | None = None,
        what: Collection[str] | None = None,
        by: str = "",
        about: str = "",
        before: int | None = None,
    ) -> Sequence[LogLine]:
        """The newest lines, newest first."""
        wanted = {
            "origin = ?": origin,
            "uri = ?": uri,
            "number < ?": before,
            "holds(who, ?)": by or None,
            "holds(uri, ?)": about or None,
        }
        given = {test: value for test, value in wanted.items() if value is not None}
        tests, values = list(given), list[Any](given.values())
        if what is not None:
            tests += [f"what IN ({', '.join('?' * len(what))})"]
            tests += [rows.DECIDING] if set(what) <= set(DECISIONS) else []
            values += what
        which = f" WHERE {' AND '.join(tests)}" if tests else ""
        query = f"{rows.LINES}{which} ORDER BY number DESC LIMIT ?"
        return await self._read(rows.to_line, query, *values, max(0, min(limit, sys.maxsize)))

    async def decisions(self, origin: str | None = None, uri: str | None = None) -> Sequence[LogLine]:
        """The newest decision about each skill, by origin and URI."""
        given = {"origin = ?": origin, "uri = ?": uri}
        tests = [rows.DECISION, *(test for test, value in given.items() if value is not None)]
        query = f"{rows.NEWEST_OF} WHERE {' AND '.join(tests)} GROUP BY origin, uri)"
        values = [value for value in given.values() if value is not None]
        found = await self._read(rows.to_line, query, *values)
        return sorted(found, key=lambda line: (line.origin, line.uri))

    async def put_question(self, question: Question) -> None:
        """Ask, if there is room."""
        text = await to_thread.run_sync(questions.question_as_text, question)
        now, values = question.asked_at, rows.bound(questions.values_of(question, text))

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(questions.FORGET, (now, now - KEPT_SECONDS))
            if connection.execute(questions.COUNT).fetchone()[0] >= MOST_QUESTIONS:
                raise questions.too_many()
            connection.execute(questions.PUT, values)

        await self._change(work)

    async def renew_question(self, key: str, until: float) -> bool:
        """The asker still waits; whether the question is still there."""
        return await self._write((questions.RENEW, (until, key)), is_news=False)

    async def questions(self, now: float) -> Sequence[Question]:
        """What is open, and whose asker is alive, in the order of asking."""
        return await self._read(questions.to_question, questions.OPEN_QUESTIONS, now)

    async def answer_question(self, key: str, answered: Answered) -> bool:
        """Answer; whether that was the answer: the first counts."""
        return await self._write((questions.ANSWER, (questions.answer_as_text(answered), key, answered.at)))

    async def answer_to(self, key: str) -> Answered | None:
        """What was answered, if anything."""
        found = await self._read(questions.to_answered, questions.GIVEN, key)
        return found[0] if found else None

    async def withdraw_question(self, key: str) -> Answered | None:
        """Take a question back; the answer, if it had one."""

        def work(connection: sqlite3.Connection) -> Answered | None:
            found = connection.execute(questions.GIVEN, (key,)).fetchone()
            connection.execute(questions.WITHDRAW, (key,))
            with readable(self._name):
                return None if found is None else questions.to_answered(*found)

        return await self._change(work)

    async def version(self) -> int:
        """Another number if anything changed: every change counts itself, in the same transaction."""
        [number] = await self._read(int, rows.NEWS)
        return number

    async def close(self) -> None:
        """Let go of the file. A call that is under way ends first; later ones are refused."""
        with CancelScope(shield=True):
            await to_thread.run_sync(self._close, limiter=self._turn)

    async def _read(self, decode: Callable[..., T], query: str, *values: Any) -> list[T]:
        def work(connection: sqlite3.Connection) -> list[T]:
            found = connection.execute(query, rows.bound(values)).fetchall()
            with readable(self._name):
                return [decode(*map(rows.unbound, row)) for row in found]

        return await to_thread.run_sync(self._run, work, limiter=self._turn)

    async def _decide(self, line: LogLine, after: int | None, *statements: Statement) -> bool:
        """All statements, unless somebody decided about the line's skill since the decision ``after``."""

        def work(connection: sqlite3.Connection) -> bool:
            place = rows.bound((line.origin, line.uri))
            if after is not None and connection.execute(rows.NEWEST_DECISION, place).fetchone()[0] != after:
                return False
            for text, values in statements:
                connection.execute(text, rows.bound(values))
            return True

        return await self._change(work)

    async def _write(self, *statements: Statement, is_news: bool = True) -> bool:
        """All statements or none; whether the first one changed anything."""

        def work(connection: sqlite3.Connection) -> bool:
            counts = [connection.execute(text, rows.bound(values)).rowcount for text, values in statements]
            return counts[0] > 0

        return await self._change(work, is_news=is_news)

    async def _change(self, work: Callable[[sqlite3.Connection], T], *, is_news: bool = True) -> T:
        """All of ``work`` or nothing."""

        def change(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                read_version(connection)  # a newer skillwire may have changed the shape since we opened it
                before = connection.total_changes
                done = work(connection)
                if is_news and connection.total_changes != before:
                    connection.execute(rows.MORE_NEWS)
                return done

        return await to_thread.run_sync(self._run, change, limiter=self._turn)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            raise StoreError("store-closed", f"the store {self._name!r:.100} was closed", "open it again")
        with explained(self._name):
            return work(self._connection)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _log_if_new(connection: sqlite3.Connection, line: LogLine) -> bool:
    about = rows.bound((line.what, line.origin, line.uri))
    newest = connection.execute(rows.NEWEST_FACTS, about).fetchone()
    values = rows.values_of_line(line)
    if newest is not None and newest[0] == values[-1]:  # as text: what is damaged there is other facts
        return False
    connection.execute(rows.LOG, rows.bound(values))
    return True


def _answering(line: LogLine, contents: Contents, grants: frozenset[str] | None = None) -> Statement:
    """A decision about a content answers whoever asks about it; without ``grants`` it is a no."""
    note = str(line.facts.get("note", ""))
    yes = grants is not None
    answered = Answered(yes, line.by, line.at, grants or frozenset(), note=note, recorded=True)
    values = (questions.answer_as_text(answered), line.origin, line.uri, fingerprint(contents))
    return questions.ANSWER_ALL, values


# Opening


def _open(named: str | os.PathLike[str], patience: float) -> sqlite3.Connection:
    path = Path(os.path.realpath(named))  # SQLite puts its other files beside the real one
    with explained(path.name):
        _prepare(path)
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
        )
        try:
            connection.create_function("holds", 2, rows.holds, deterministic=True)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")  # off by default, and only this connection's
            migrate(connection)
            _use_wal(connection, patience)
        except BaseException:
            connection.close()
            raise
        return connection


def _prepare(path: Path) -> None:
    """Folder and file, made for this user alone; ``StoreError`` where somebody else could change them."""
    with _CREATING:
        for folder in reversed([folder for folder in path.parents if not folder.exists()]):
            with suppress(FileExistsError):  # another process was first
                os.mkdir(folder, 0o700)
        _refuse_if_shared(os.stat(path.parent), f"the folder of the store {path.name!r:.100}")
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for ending in _BESIDE:
        with suppress(FileNotFoundError):
            _refuse_if_shared(os.stat(f"{path}{ending}"), f"the store {path.name + ending!r:.100}")


def _refuse_if_shared(status: os.stat_result, what: str) -> None:
    if status.st_uid != os.geteuid():
        raise StoreError(
            "store-unsafe",
            f"{what} belongs to another user, who could approve skills in your name",
            "name a file in a folder of your own",
        )
    if status.st_mode & _OTHERS_MAY_WRITE:
        raise StoreError(
            "store-unsafe",
            f"{what} can be written by others, who could approve skills in your name",
            "take that right away (chmod go-w), after a look at what is approved",
        )


def _use_wal(connection: sqlite3.Connection, patience: float) -> None:
    """Switch to WAL, which the file remembers. SQLite does not always wait for others here, so we do."""
    deadline = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE)
