"""The store: the data of hosts and gateways that outlives a process.

- Each call is one transaction: it takes effect completely or not at all, even if the process is killed.
- Several processes may use one store at once. A writer waits for others for a limited time, then it raises
  ``StoreError``.
- The log is append-only.
- A store makes no decisions. Rules are in ``skill/``, choices in ``host/``.
- Times are seconds since 1970. They are passed in; a store reads no clock.

The same SQL runs on SQLite and on PostgreSQL (``database.py``). The tables are in ``schema.py``, and what is in
their rows is in ``records.py``. The tests are in ``tests/contracts``.
"""

from __future__ import annotations

import json
import sys
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, TypeVar, Unpack

from anyio import to_thread

from skillwire.errors import LimitError
from skillwire.skill.approval import fingerprint
from skillwire.store.database import DEFAULT_PATIENCE, placeholders
from skillwire.store.place import open_database
from skillwire.store.records import (
    DECISIONS,
    KEPT_SECONDS,
    MOST_QUESTIONS,
    Answered,
    LogFilter,
    LogLine,
    Question,
    SeenEntries,
    StoredOrigin,
    answer_from_text,
    answer_text,
    approval_from_row,
    approval_row,
    contents_text,
    entries_text,
    entry_from_text,
    entry_text,
    line_from_row,
    line_row,
    origin_from_row,
    question_from_row,
    question_row,
    seen_from_row,
)
from skillwire.store.schema import DECIDING, HOST_SCHEMA
from skillwire.store.sqlite import SqliteDatabase

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence

    from skillwire.skill.approval import Approval, Contents
    from skillwire.skill.entry import SkillEntry
    from skillwire.store.database import Database, Row, Session

T = TypeVar("T")
Statement: TypeAlias = tuple[str, tuple[Any, ...]]

LOG_PAGE: Final = 500
"""The number of lines that ``log_pages`` reads at once."""
_LARGEST_PAGE: Final = 8000
"""The number of lines that are searched at once for a part of a name."""

_PUT_ORIGIN = (
    "INSERT INTO origins (label, settings, added_at) VALUES (?, ?, ?)"
    " ON CONFLICT (label) DO UPDATE SET settings = excluded.settings, added_at = excluded.added_at"
)
_PUT_ENTRIES = (
    "INSERT INTO entries (label, entries, at, is_complete) VALUES (?, ?, ?, ?) ON CONFLICT (label)"
    " DO UPDATE SET entries = excluded.entries, at = excluded.at, is_complete = excluded.is_complete"
)
_REMOVE_ASKED = "DELETE FROM asked_entries WHERE label = ? AND uri = ?"
_PUT_ASKED = "INSERT INTO asked_entries (label, uri, entry) VALUES (?, ?, ?)"
_APPROVALS = "SELECT origin, uri, contents, who, at, grants FROM approvals"
_PUT_APPROVAL = "INSERT INTO approvals (origin, uri, contents, who, at, grants) VALUES (?, ?, ?, ?, ?, ?)"
_REMOVE = "DELETE FROM approvals WHERE origin = ? AND uri = ?"
_REMOVE_CONTENTS = f"{_REMOVE} AND contents = ?"
_REMOVE_EXACTLY = f"{_REMOVE} AND contents = ? AND who = ? AND at = ? AND grants = ?"
_CHANGE_GRANTS = (
    "UPDATE approvals SET grants = ?"
    " WHERE origin = ? AND uri = ? AND contents = ? AND who = ? AND at = ? AND grants = ?"
)

_LINES = "SELECT what, origin, uri, who, at, facts, number FROM log"
_LOG = "INSERT INTO log (what, origin, uri, who, at, facts, kind) VALUES (?, ?, ?, ?, ?, ?, ?)"
_NEWEST_FACTS = "SELECT facts FROM log WHERE what = ? AND origin = ? AND uri = ? ORDER BY number DESC LIMIT 1"
_DECISION = f"{DECIDING} AND who != 'policy' AND kind IN ('', 'load', 'import')"
_NEWEST = "SELECT coalesce(max(number), 0) FROM log"
_NEWEST_DECISION = f"{_NEWEST} WHERE {_DECISION} AND origin = ? AND uri = ?"

_OPEN_QUESTIONS = (
    "SELECT id, kind, origin, question, asked_at, waits_until FROM questions"
    " WHERE answer IS NULL AND waits_until > ? ORDER BY asked_at, id"
)
_PUT_QUESTION = (
    "INSERT INTO questions (id, kind, origin, uri, content, question, asked_at, waits_until)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING"
)
_ANSWER = "UPDATE questions SET answer = ? WHERE id = ? AND answer IS NULL AND waits_until > ?"
_ANSWER_ALL = (
    "UPDATE questions SET answer = ?"
    " WHERE answer IS NULL AND kind = 'load' AND origin = ? AND uri = ? AND content IN (?, '')"
)
_ANSWER_OF = "SELECT answer FROM questions WHERE id = ? AND answer IS NOT NULL"
_REMOVE_EXPIRED = "DELETE FROM questions WHERE waits_until <= ? AND (answer IS NULL OR waits_until <= ?)"


class Store:
    """A store on ``database``, which it closes at its end. Open one with ``await Store.open(path)``."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    async def open(cls, place: str | os.PathLike[str], *, patience: float = DEFAULT_PATIENCE) -> Self:
        """Open the store in a file or a database, or create it; ``StoreError`` if it cannot be used or trusted.

        ``place`` is a path, or the URL of a PostgreSQL database.
        """
        return cls(await open_database(place, HOST_SCHEMA, patience=patience))

    @classmethod
    def memory(cls) -> Self:
        """A new store without a file, for tests and for a host that must not write to the disk."""
        return cls(SqliteDatabase.memory(HOST_SCHEMA))

    async def put_origin(self, origin: StoredOrigin) -> None:
        """Add or replace an origin."""
        values = (origin.label, json.dumps(dict(origin.settings)), origin.added_at)
        await self._write((_PUT_ORIGIN, values))

    async def remove_origin(self, label: str) -> bool:
        """Remove an origin, its entries and its approvals; whether it existed. The log stays.

        Entries and approvals under ``label#…`` are removed too: no label contains ``#``, so they belong to this
        origin.
        """
        below = f"{label}#"
        return await self._write(
            ("DELETE FROM origins WHERE label = ?", (label,)),
            ("DELETE FROM entries WHERE label = ? OR substr(label, 1, length(?)) = ?", (label, below, below)),
            (
                "DELETE FROM asked_entries WHERE label = ? OR substr(label, 1, length(?)) = ?",
                (label, below, below),
            ),
            ("DELETE FROM approvals WHERE origin = ? OR substr(origin, 1, length(?)) = ?", (label, below, below)),
        )

    async def origins(self) -> Sequence[StoredOrigin]:
        """All origins, sorted by label."""
        found = await self._read(origin_from_row, "SELECT label, settings, added_at FROM origins")
        return sorted(found, key=lambda origin: origin.label)

    async def put_entries(self, label: str, seen: SeenEntries) -> None:
        """Store the listing of an origin, and replace the earlier one."""
        text = await to_thread.run_sync(entries_text, seen.entries)
        values = (label, text, seen.at, seen.is_complete)
        await self._write(
            (_PUT_ENTRIES, values),
            ("DELETE FROM asked_entries WHERE label = ?", (label,)),
            *_put_asked(label, seen.asked),
        )

    async def add_entry(self, label: str, entry: SkillEntry) -> None:
        """Add a requested entry to ``asked`` of the last listing."""
        await self._write(*_put_asked(label, [entry]))

    async def entries(self, label: str) -> SeenEntries | None:
        """The last listing of an origin, if there is one."""
        found = await self._read(
            seen_from_row, "SELECT entries, at, is_complete FROM entries WHERE label = ?", label
        )
        if not found:
            return None
        asked = await self._read(entry_from_text, "SELECT entry FROM asked_entries WHERE label = ?", label)
        return replace(found[0], asked=tuple(asked))

    async def put_approval(self, approval: Approval, line: LogLine, *, after: int | None = None) -> bool:
        """Store an approval, replace the earlier one of the same skill, and log it; whether it was stored.

        The same transaction answers open questions of the kind ``load`` about this content, and about content that
        was unknown when the question was asked (V5).

        With ``after``, the approval is stored only if ``after`` is still the number of the skill's newest decision
        (0 if it has none), so that it does not overrule a later decision.
        """
        return await self._decide(
            line,
            after,
            (_REMOVE, (approval.origin, approval.uri)),
            (_PUT_APPROVAL, approval_row(approval)),
            (_LOG, line_row(line)),
            _answer_all(line, approval.contents, approval.grants),
        )

    async def put_denial(self, contents: Contents, line: LogLine, *, after: int | None = None) -> bool:
        """Log that a user declined this content of the line's skill, and remove an approval of the same content.

        Questions, ``after`` and the result are as in ``put_approval``.
        """
        return await self._decide(
            line,
            after,
            (_REMOVE_CONTENTS, (line.origin, line.uri, contents_text(contents))),
            (_LOG, line_row(line)),
            _answer_all(line, contents),
        )

    async def change_grants(self, approval: Approval, grants: frozenset[str], line: LogLine) -> bool:
        """Replace the grants of ``approval`` and log it; whether it was still stored.

        An approval that was revoked or replaced meanwhile is not restored.
        """
        values = (json.dumps(sorted(grants)), *approval_row(approval))
        return await self._log_if_done((_CHANGE_GRANTS, values), line)

    async def remove_approval(self, origin: str, uri: str, line: LogLine, *, only: Approval | None = None) -> bool:
        """Remove an approval and its grants, and log it; whether it existed.

        With ``only``, remove only this approval: a newer one of the same skill stays.
        """
        which: Statement = (_REMOVE, (origin, uri))
        if only is not None:
            which = (_REMOVE_EXACTLY, approval_row(only))
        return await self._log_if_done(which, line)

    async def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval of one skill."""
        found = await self._read(approval_from_row, f"{_APPROVALS} WHERE origin = ? AND uri = ?", origin, uri)
        return found[0] if found else None

    async def approvals(self, origin: str | None = None) -> Sequence[Approval]:
        """All approvals, sorted by origin and URI."""
        which = ("", ()) if origin is None else (" WHERE origin = ?", (origin,))
        found = await self._read(approval_from_row, _APPROVALS + which[0], *which[1])
        return sorted(found, key=lambda approval: (approval.origin, approval.uri))

    async def log(self, line: LogLine) -> None:
        """Append a line."""
        await self._write((_LOG, line_row(line)))

    async def log_news(self, lines: Sequence[LogLine]) -> int:
        """Append the lines whose facts differ from the newest line of the same kind and skill; how many.

        In one transaction, so that two processes do not log the same event twice.
        """

        def work(session: Session) -> int:
            return sum(_log_if_new(session, line) for line in lines)

        return await self._change(work)

    async def lines(self, *, limit: int = 100, **wanted: Unpack[LogFilter]) -> Sequence[LogLine]:
        """The newest of the wanted lines, newest first."""
        conditions = {
            "origin = ?": wanted.get("origin"),
            "uri = ?": wanted.get("uri"),
            "number < ?": wanted.get("before"),
        }
        given = {test: value for test, value in conditions.items() if value is not None}
        tests, values, what = list(given), list[Any](given.values()), wanted.get("what")
        if what is not None:
            tests += [f"what IN ({placeholders(len(what))})"] if what else ["1 = 0"]
            tests += [DECIDING] if set(what) <= set(DECISIONS) else []
            values += what
        limit = max(0, min(limit, sys.maxsize))
        by, about = wanted.get("by", "").casefold(), wanted.get("about", "").casefold()
        if by or about:
            return await self._lines_naming(by, about, tests, values, limit)
        query = f"{_LINES}{_where(tests)} ORDER BY number DESC LIMIT ?"
        return await self._read(line_from_row, query, *values, limit)

    async def _lines_naming(
        self, by: str, about: str, tests: Sequence[str], values: Sequence[Any], limit: int
    ) -> Sequence[LogLine]:
        """Those lines with parts of names. Engines fold case differently, so pages of lines are compared here."""

        def work(session: Session) -> list[Row]:
            found: list[Row] = []
            before, page = sys.maxsize, LOG_PAGE
            while len(found) < limit:
                query = f"{_LINES}{_where([*tests, 'number < ?'])} ORDER BY number DESC LIMIT ?"
                rows = session.rows(query, *values, before, page)
                found += [row for row in rows if by in str(row[3]).casefold() and about in str(row[2]).casefold()]
                if len(rows) < page:
                    break
                before, page = rows[-1][-1], min(2 * page, _LARGEST_PAGE)
            return found[:limit]

        return self._decoded(line_from_row, await self.database.read(work))

    async def decisions(self, origin: str | None = None, uri: str | None = None) -> Sequence[LogLine]:
        """The newest line of each skill that is ``approved``, ``denied``, ``revoked`` or ``enabled``.

        Sorted by origin and URI. Only decisions of users about loading a skill count, not those of a policy, about
        tools, or about other origins.
        """
        given = {"origin = ?": origin, "uri = ?": uri}
        tests = [_DECISION, *(test for test, value in given.items() if value is not None)]
        newest = f"{_NEWEST}{_where(tests)} GROUP BY origin, uri"
        values = [value for value in given.values() if value is not None]
        found = await self._read(line_from_row, f"{_LINES} WHERE number IN ({newest})", *values)
        return sorted(found, key=lambda line: (line.origin, line.uri))

    async def put_question(self, question: Question) -> None:
        """Add a question, and remove expired ones. A question with the same id is not replaced.

        ``LimitError`` if too many questions are open, or this one is too large.
        """
        values, now = await to_thread.run_sync(question_row, question), question.asked_at

        def work(session: Session) -> None:
            session.run(_REMOVE_EXPIRED, now, now - KEPT_SECONDS)
            [[unanswered]] = session.rows("SELECT count(*) FROM questions WHERE answer IS NULL")
            if unanswered >= MOST_QUESTIONS:
                raise LimitError(
                    "questions-too-many",
                    f"{MOST_QUESTIONS} questions are already waiting for an answer",
                    "answer some: skillwire ui, or skillwire approvals questions",
                )
            session.run(_PUT_QUESTION, *values)

        await self._change(work)

    async def renew_question(self, key: str, until: float) -> bool:
        """Let a question wait until ``until``; whether it still exists."""

        def work(session: Session) -> bool:
            return session.run("UPDATE questions SET waits_until = ? WHERE id = ?", until, key) > 0

        return await self.database.write(work)  # no news

    async def questions(self, now: float) -> Sequence[Question]:
        """The open questions that have not expired, the oldest first."""
        return await self._read(question_from_row, _OPEN_QUESTIONS, now)

    async def answer_question(self, key: str, answered: Answered) -> bool:
        """Answer a question; ``False`` if it does not exist any more, or already has an answer."""
        return await self._write((_ANSWER, (answer_text(answered), key, answered.at)))

    async def answer_to(self, key: str) -> Answered | None:
        """The answer to a question, if there is one."""
        found = await self._read(answer_from_text, _ANSWER_OF, key)
        return found[0] if found else None

    async def withdraw_question(self, key: str) -> Answered | None:
        """Remove a question, so that it can no longer be answered; its answer, if it had one."""

        def work(session: Session) -> list[Row]:
            found = session.rows(_ANSWER_OF, key)
            session.run("DELETE FROM questions WHERE id = ?", key)
            return found

        found = self._decoded(answer_from_text, await self._change(work))
        return found[0] if found else None

    async def version(self) -> int:
        """A number that differs after every change by any process. Cheap.

        ``renew_question`` does not count as a change: a program that shows questions checks ``waits_until``.
        """
        [number] = await self._read(int, "SELECT number FROM news")
        return number

    async def close(self) -> None:
        """Close files and connections."""
        await self.database.close()

    async def _read(self, decode: Callable[..., T], query: str, *values: Any) -> list[T]:
        return self._decoded(decode, await self.database.rows(query, *values))

    def _decoded(self, decode: Callable[..., T], rows: Iterable[Row]) -> list[T]:
        try:
            return [decode(*row) for row in rows]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise self.database.damaged() from error

    async def _decide(self, line: LogLine, after: int | None, *statements: Statement) -> bool:
        """Run all statements, unless the newest decision about the line's skill is another than ``after``."""

        def work(session: Session) -> bool:
            if after is not None:
                [[newest]] = session.rows(_NEWEST_DECISION, line.origin, line.uri)
                if newest != after:
                    return False
            for text, values in statements:
                session.run(text, *values)
            return True

        return await self._change(work)

    async def _log_if_done(self, statement: Statement, line: LogLine) -> bool:
        """Run a statement, and log it if it changed something; whether it did."""

        def work(session: Session) -> bool:
            text, values = statement
            if not session.run(text, *values):
                return False
            session.run(_LOG, *line_row(line))
            return True

        return await self._change(work)

    async def _write(self, *statements: Statement) -> bool:
        """Run all statements or none; whether the first one changed anything."""

        def work(session: Session) -> bool:
            counts = [session.run(text, *values) for text, values in statements]
            return counts[0] > 0

        return await self._change(work)

    async def _change(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` in a transaction, and count it as news if it changed something."""

        def change(session: Session) -> T:
            done = work(session)
            if session.changed:
                session.run("UPDATE news SET number = number + 1")
            return done

        return await self.database.write(change)


def _where(tests: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _put_asked(label: str, entries: Iterable[SkillEntry]) -> Iterator[Statement]:
    for entry in entries:
        yield _REMOVE_ASKED, (label, entry.uri)
        yield _PUT_ASKED, (label, entry.uri, entry_text(entry))


def _log_if_new(session: Session, line: LogLine) -> bool:
    what, origin, uri, _, _, facts, _ = row = line_row(line)
    if session.row(_NEWEST_FACTS, what, origin, uri) == (facts,):  # as text, so that a damaged row does not raise
        return False
    session.run(_LOG, *row)
    return True


def _answer_all(line: LogLine, contents: Contents, grants: frozenset[str] | None = None) -> Statement:
    """The statement that answers open questions about ``contents``: approved with ``grants``, else declined."""
    note = str(line.facts.get("note", ""))
    yes = grants is not None
    answered = Answered(yes, line.by, line.at, grants or frozenset(), note=note, recorded=True)
    values = (answer_text(answered), line.origin, line.uri, fingerprint(contents))
    return _ANSWER_ALL, values


async def log_pages(store: Store, **wanted: Unpack[LogFilter]) -> AsyncGenerator[Sequence[LogLine]]:
    """All wanted lines, newest first, page by page. No page is empty."""
    while lines := await store.lines(limit=LOG_PAGE, **wanted):
        yield lines
        if len(lines) < LOG_PAGE:
            return
        wanted["before"] = lines[-1].number


async def newest_line(
    store: Store, fits: Callable[[LogLine], bool], **wanted: Unpack[LogFilter]
) -> LogLine | None:
    """The newest of the wanted lines that fits."""
    async with aclosing(log_pages(store, **wanted)) as pages:
        async for lines in pages:
            for line in lines:
                if fits(line):
                    return line
    return None
