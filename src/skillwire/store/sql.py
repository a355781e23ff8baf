"""A store in a database, which several processes may use at once. Each call is one transaction.

The same SQL runs on SQLite and on PostgreSQL. The tables are in ``schema.py``.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, Unpack

from anyio import to_thread

from skillwire.catalog.listing import entry_to_document, trusted_entry
from skillwire.errors import LimitError
from skillwire.skill.approval import Approval, fingerprint
from skillwire.skill.hidden import HiddenFind, HiddenKind
from skillwire.store.contract import (
    DECISIONS,
    KEPT_SECONDS,
    LARGEST_QUESTION,
    LOG_PAGE,
    MOST_QUESTIONS,
    Answered,
    LogFilter,
    LogLine,
    Question,
    SeenEntries,
    Store,
    StoredOrigin,
)
from skillwire.store.database import DEFAULT_PATIENCE, placeholders
from skillwire.store.place import open_database
from skillwire.store.schema import DECIDING, HOST_SCHEMA
from skillwire.store.sqlite import SqliteDatabase

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from skillwire.skill.approval import Contents
    from skillwire.skill.entry import SkillEntry
    from skillwire.store.database import Database, Row, Session

T = TypeVar("T")
Statement: TypeAlias = tuple[str, tuple[Any, ...]]

_LARGEST_PAGE: Final = 8000
"""The number of lines that are searched at once for a part of a name."""

# Columns are listed in the order of the functions below the store, which turn values into rows and back.
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


class SqlStore(Store):
    """A store on a ``Database``, which it closes at its end. Open one with ``await SqlStore.open(path)``."""

    def __init__(self, database: Database) -> None:
        self.database = database

    @classmethod
    async def open(cls, place: str | os.PathLike[str], *, patience: float = DEFAULT_PATIENCE) -> SqlStore:
        """Open the store in a file or a database, or create it; ``StoreError`` if it cannot be used or trusted.

        ``place`` is a path, or the URL of a PostgreSQL database.
        """
        return cls(await open_database(place, HOST_SCHEMA, patience=patience))

    async def put_origin(self, origin: StoredOrigin) -> None:
        """Add or replace an origin."""
        values = (origin.label, json.dumps(dict(origin.settings)), origin.added_at)
        await self._write((_PUT_ORIGIN, values))

    async def remove_origin(self, label: str) -> bool:
        """Remove an origin, its entries and its approvals; whether it existed. The log stays."""
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
        found = await self._read(_origin_from_row, "SELECT label, settings, added_at FROM origins")
        return sorted(found, key=lambda origin: origin.label)

    async def put_entries(self, label: str, seen: SeenEntries) -> None:
        """Store the listing of an origin, and replace the earlier one."""
        text = await to_thread.run_sync(_entries_to_text, seen.entries)
        values = (label, text, seen.at, seen.is_complete)
        await self._write(
            (_PUT_ENTRIES, values),
            ("DELETE FROM asked_entries WHERE label = ?", (label,)),
            *_put_asked(label, seen.asked),
        )

    async def add_entry(self, label: str, entry: SkillEntry) -> None:
        """Add a requested entry to the listing of an origin."""
        await self._write(*_put_asked(label, [entry]))

    async def entries(self, label: str) -> SeenEntries | None:
        """The last listing of an origin, if there is one."""
        found = await self._read(
            _seen_from_row, "SELECT entries, at, is_complete FROM entries WHERE label = ?", label
        )
        if not found:
            return None
        asked = await self._read(_entry_from_text, "SELECT entry FROM asked_entries WHERE label = ?", label)
        return replace(found[0], asked=tuple(asked))

    async def put_approval(self, approval: Approval, line: LogLine, *, after: int | None = None) -> bool:
        """Store an approval, replace the earlier one of the same skill, and log it (A1, A4)."""
        return await self._decide(
            line,
            after,
            (_REMOVE, (approval.origin, approval.uri)),
            (_PUT_APPROVAL, _approval_to_row(approval)),
            (_LOG, _line_to_row(line)),
            _answer_all(line, approval.contents, approval.grants),
        )

    async def put_denial(self, contents: Contents, line: LogLine, *, after: int | None = None) -> bool:
        """Log that a user declined this content, remove its approval, and answer open questions about it (A2)."""
        return await self._decide(
            line,
            after,
            (_REMOVE_CONTENTS, (line.origin, line.uri, _contents_to_text(contents))),
            (_LOG, _line_to_row(line)),
            _answer_all(line, contents),
        )

    async def change_grants(self, approval: Approval, grants: frozenset[str], line: LogLine) -> bool:
        """Replace the grants of ``approval``; whether it was still stored (A4, A5)."""
        values = (json.dumps(sorted(grants)), *_approval_to_row(approval))
        return await self._log_if_done((_CHANGE_GRANTS, values), line)

    async def remove_approval(self, origin: str, uri: str, line: LogLine, *, only: Approval | None = None) -> bool:
        """Remove an approval and its grants, and log it; whether it existed (A2)."""
        which: Statement = (_REMOVE, (origin, uri))
        if only is not None:
            which = (_REMOVE_EXACTLY, _approval_to_row(only))
        return await self._log_if_done(which, line)

    async def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval of one skill."""
        found = await self._read(_approval_from_row, f"{_APPROVALS} WHERE origin = ? AND uri = ?", origin, uri)
        return found[0] if found else None

    async def approvals(self, origin: str | None = None) -> Sequence[Approval]:
        """All approvals, sorted by origin and URI."""
        which = ("", ()) if origin is None else (" WHERE origin = ?", (origin,))
        found = await self._read(_approval_from_row, _APPROVALS + which[0], *which[1])
        return sorted(found, key=lambda approval: (approval.origin, approval.uri))

    async def log(self, line: LogLine) -> None:
        """Append a line."""
        await self._write((_LOG, _line_to_row(line)))

    async def log_news(self, lines: Sequence[LogLine]) -> int:
        """Append the lines that differ from the newest of their kind, in one transaction; how many."""

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
        return await self._read(_line_from_row, query, *values, limit)

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

        return self._decoded(_line_from_row, await self.database.read(work))

    async def decisions(self, origin: str | None = None, uri: str | None = None) -> Sequence[LogLine]:
        """The newest decision about each skill, sorted by origin and URI."""
        given = {"origin = ?": origin, "uri = ?": uri}
        tests = [_DECISION, *(test for test, value in given.items() if value is not None)]
        newest = f"{_NEWEST}{_where(tests)} GROUP BY origin, uri"
        values = [value for value in given.values() if value is not None]
        found = await self._read(_line_from_row, f"{_LINES} WHERE number IN ({newest})", *values)
        return sorted(found, key=lambda line: (line.origin, line.uri))

    async def put_question(self, question: Question) -> None:
        """Add a question, and remove those that expired."""
        text = await to_thread.run_sync(question_to_text, question)
        now, values = question.asked_at, _question_to_row(question, text)

        def work(session: Session) -> None:
            session.run(_REMOVE_EXPIRED, now, now - KEPT_SECONDS)
            [[unanswered]] = session.rows("SELECT count(*) FROM questions WHERE answer IS NULL")
            if unanswered >= MOST_QUESTIONS:
                raise too_many_questions()
            session.run(_PUT_QUESTION, *values)

        await self._change(work)

    async def renew_question(self, key: str, until: float) -> bool:
        """Extend the time that a question waits; whether it still exists."""

        def work(session: Session) -> bool:
            return session.run("UPDATE questions SET waits_until = ? WHERE id = ?", until, key) > 0

        return await self.database.write(work)  # no news

    async def questions(self, now: float) -> Sequence[Question]:
        """The open questions that have not expired, the oldest first."""
        return await self._read(_question_from_row, _OPEN_QUESTIONS, now)

    async def answer_question(self, key: str, answered: Answered) -> bool:
        """Answer a question; whether this was its first answer."""
        return await self._write((_ANSWER, (_answer_to_text(answered), key, answered.at)))

    async def answer_to(self, key: str) -> Answered | None:
        """The answer to a question, if there is one."""
        found = await self._read(_answer_from_text, _ANSWER_OF, key)
        return found[0] if found else None

    async def withdraw_question(self, key: str) -> Answered | None:
        """Remove a question; its answer, if it had one."""

        def work(session: Session) -> list[Row]:
            found = session.rows(_ANSWER_OF, key)
            session.run("DELETE FROM questions WHERE id = ?", key)
            return found

        found = self._decoded(_answer_from_text, await self._change(work))
        return found[0] if found else None

    async def version(self) -> int:
        """A number that differs after every change: each change increments it in its own transaction."""
        [number] = await self._read(int, "SELECT number FROM news")
        return number

    async def close(self) -> None:
        """Close the database after the current call. Later calls raise ``StoreError``."""
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
            session.run(_LOG, *_line_to_row(line))
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


class MemoryStore(SqlStore):
    """A store without a file, for tests and for a host that must not write to the disk."""

    def __init__(self) -> None:
        super().__init__(SqliteDatabase.memory(HOST_SCHEMA))


def _where(tests: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(tests)}" if tests else ""


def _put_asked(label: str, entries: Iterable[SkillEntry]) -> Iterator[Statement]:
    for entry in entries:
        yield _REMOVE_ASKED, (label, entry.uri)
        yield _PUT_ASKED, (label, entry.uri, _entry_to_text(entry))


def _log_if_new(session: Session, line: LogLine) -> bool:
    newest = session.row(_NEWEST_FACTS, line.what, line.origin, line.uri)
    if newest == (_facts_to_text(line),):  # compared as text, so that a damaged row does not raise
        return False
    session.run(_LOG, *_line_to_row(line))
    return True


def _answer_all(line: LogLine, contents: Contents, grants: frozenset[str] | None = None) -> Statement:
    """The statement that answers open questions about ``contents``: approved with ``grants``, else declined."""
    note = str(line.facts.get("note", ""))
    yes = grants is not None
    answered = Answered(yes, line.by, line.at, grants or frozenset(), note=note, recorded=True)
    values = (_answer_to_text(answered), line.origin, line.uri, fingerprint(contents))
    return _ANSWER_ALL, values


# Rows and values. The JSON text is ASCII. Entries are not checked again: they were when they were received, and a
# program that can change them here can also change approvals.


def _origin_from_row(label: str, settings: str, added_at: float) -> StoredOrigin:
    """An origin, from its label, its settings as JSON, and a time."""
    return StoredOrigin(label, json.loads(settings), added_at)


def _contents_to_text(contents: Contents) -> str:
    """The content of an approval. Equal sets give equal text, so that it can be compared in a query (A1)."""
    return json.dumps(sorted(contents))


def _approval_to_row(approval: Approval) -> tuple[Any, ...]:
    """The columns of an approval, in the order that ``_approval_from_row`` takes."""
    contents, grants = _contents_to_text(approval.contents), json.dumps(sorted(approval.grants))
    return approval.origin, approval.uri, contents, approval.by, approval.at, grants


def _approval_from_row(origin: str, uri: str, contents: str, who: str, at: float, grants: str) -> Approval:
    """An approval, from its columns."""
    pairs = frozenset((file, digest) for file, digest in json.loads(contents))
    return Approval(origin, uri, pairs, who, at, frozenset(json.loads(grants)))


def _line_to_row(line: LogLine) -> tuple[Any, ...]:
    """The columns of a log line, without its number, which the database assigns."""
    kind = str(line.facts.get("kind", ""))  # of the request that a decision answers
    return line.what, line.origin, line.uri, line.by, line.at, _facts_to_text(line), kind


def _facts_to_text(line: LogLine) -> str:
    """The facts of a log line."""
    return json.dumps(dict(line.facts))


def _line_from_row(what: Any, origin: str, uri: str, who: str, at: float, facts: str, number: int) -> LogLine:
    """A log line, from its columns."""
    return LogLine(what, origin, uri, who, at, json.loads(facts), number)


def _entries_to_text(entries: Iterable[SkillEntry]) -> str:
    """A whole listing."""
    return json.dumps([entry_to_document(entry) for entry in entries], separators=(",", ":"))


def _seen_from_row(entries: str, at: float, is_complete: int) -> SeenEntries:
    """A listing, from its columns."""
    return SeenEntries(tuple(map(trusted_entry, json.loads(entries))), at, bool(is_complete))


def _entry_to_text(entry: SkillEntry) -> str:
    """One entry."""
    return json.dumps(entry_to_document(entry), separators=(",", ":"))


def _entry_from_text(text: str) -> SkillEntry:
    """The entry that ``_entry_to_text`` wrote."""
    return trusted_entry(json.loads(text))


def question_to_text(question: Question) -> str:
    """The parts of a question that have no column; ``LimitError`` if they are too large."""
    document = {
        "entry": entry_to_document(question.entry),
        "by": question.by,
        "target": question.target,
        "hidden": question.hidden,
        "diff": question.diff,
        "lasts": question.lasts,
        "address": question.address,
    }
    text = json.dumps(document, separators=(",", ":"))
    if len(text) > LARGEST_QUESTION:
        raise LimitError(
            "question-too-large",
            f"{question.entry.uri!r:.300} is too large for a question in the store",
            "approve it with: skillwire approve",
        )
    return text


def _question_to_row(question: Question, text: str) -> tuple[Any, ...]:
    """The columns of a question; ``text`` is from ``question_to_text``."""
    values = (question.id, question.kind, question.origin, question.entry.uri, question.content, text)
    return (*values, question.asked_at, question.waits_until)


def _question_from_row(
    key: str, kind: str, origin: str, text: str, asked_at: float, waits_until: float
) -> Question:
    """A question, from its columns. Its URI and its content are also in ``text``."""
    document: dict[str, Any] = json.loads(text)
    entry, diff = trusted_entry(document["entry"]), tuple(document["diff"])
    by, target = document["by"], document["target"]
    finds = tuple(HiddenFind(HiddenKind(find), place, shown) for find, place, shown in document["hidden"])
    more = finds, diff, document["lasts"], document.get("address", "")  # older questions do not have it
    return Question(key, kind, origin, entry, by, asked_at, waits_until, target, *more)


def _answer_to_text(answered: Answered) -> str:
    """An answer."""
    fields = ("yes", "by", "at", "remember", "note", "recorded")
    values = {name: getattr(answered, name) for name in fields}
    return json.dumps({**values, "grants": sorted(answered.grants)})


def _answer_from_text(text: str) -> Answered:
    """The answer that ``_answer_to_text`` wrote."""
    answered = Answered(**json.loads(text))
    return replace(answered, grants=frozenset(answered.grants))


def too_many_questions() -> LimitError:
    """The error for a question above ``MOST_QUESTIONS``."""
    return LimitError(
        "questions-too-many",
        f"{MOST_QUESTIONS} questions are already waiting for an answer",
        "answer some: skillwire ui, or skillwire approvals questions",
    )
