"""A store in one SQLite file, which several processes may use at once.

- Each call is one transaction. In WAL mode readers do not wait for a writer, and a transaction of a killed process
  leaves no trace.
- ``synchronous = FULL``: a committed write survives a power failure. With NORMAL, a power failure could undo the
  last commits. A lost approval only means that a user is asked twice. A lost revocation would let a skill act that
  a user had stopped (A2), and a lost log line is a gap in the log. The cost is one disk flush for each write.
- Nothing is ever deleted or repaired because of an error. ``sqlite_file.py`` opens the file and translates errors.

All SQL runs in a worker thread, on one connection, one call at a time. A store belongs to one event loop.
"""

from __future__ import annotations

import json
import sys
import weakref
from dataclasses import replace
from os.path import basename
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, Unpack

from anyio import CancelScope, CapacityLimiter, to_thread

from skillwire.catalog.listing import entry_to_document
from skillwire.errors import LimitError, StoreError
from skillwire.skill.approval import Approval, fingerprint
from skillwire.skill.entry import DYNAMIC, Partial, Resource, SkillEntry
from skillwire.skill.hidden import HiddenFind, HiddenKind
from skillwire.store.contract import (
    DECISIONS,
    KEPT_SECONDS,
    LARGEST_QUESTION,
    MOST_QUESTIONS,
    Answered,
    LogFilter,
    LogLine,
    Question,
    SeenEntries,
    Store,
    StoredOrigin,
)
from skillwire.store.sqlite_file import (
    decoding_rows,
    open_file,
    open_memory,
    read_version,
    transaction,
    translated_errors,
)

if TYPE_CHECKING:
    import os
    import sqlite3
    from collections.abc import Callable, Iterable, Sequence

    from skillwire.skill.approval import Contents

T = TypeVar("T")
Statement: TypeAlias = tuple[str, tuple[Any, ...]]

DEFAULT_PATIENCE: Final = 5.0
"""Seconds to wait for another writer."""

# Columns are listed in the order of the functions below the store, which turn values into rows and back.
_APPROVALS = "SELECT origin, uri, contents, who, at, grants FROM approvals"
_PUT_APPROVAL = (
    "INSERT OR REPLACE INTO approvals (origin, uri, contents, who, at, grants) VALUES (?, ?, ?, ?, ?, ?)"
)
_REMOVE = "DELETE FROM approvals WHERE origin = ? AND uri = ?"
_REMOVE_CONTENTS = f"{_REMOVE} AND contents = ?"
_REMOVE_EXACTLY = f"{_REMOVE} AND contents = ? AND who = ? AND at = ? AND grants = ?"
_CHANGE_GRANTS = (
    "UPDATE approvals SET grants = ?"
    " WHERE origin = ? AND uri = ? AND contents = ? AND who = ? AND at = ? AND grants = ?"
)
_PUT_ASKED = "INSERT OR REPLACE INTO asked_entries (label, uri, entry) VALUES (?, ?, ?)"

_LINES = "SELECT what, origin, uri, who, at, facts, number FROM log"
_LOG = "INSERT INTO log (what, origin, uri, who, at, facts) SELECT ?, ?, ?, ?, ?, ?"
_LOG_IF_CHANGED = f"{_LOG} WHERE changes() > 0"
_NEWEST_FACTS = "SELECT facts FROM log WHERE what = ? AND origin = ? AND uri = ? ORDER BY number DESC LIMIT 1"
DECIDING = "what IN ('approved', 'denied', 'revoked', 'enabled')"
"""The condition of the partial index ``log_of_decisions``; SQLite uses the index only for the same text."""
_DECISION = (
    f"{DECIDING} AND who != 'policy' AND coalesce(json_extract(facts, '$.kind'), 'load') IN ('load', 'import')"
)
_NEWEST = "SELECT coalesce(max(number), 0) FROM log"
_NEWEST_DECISION = f"{_NEWEST} WHERE {_DECISION} AND origin = ? AND uri = ?"

_OPEN_QUESTIONS = (
    "SELECT id, kind, origin, question, asked_at, waits_until FROM questions"
    " WHERE answer IS NULL AND waits_until > ? ORDER BY asked_at, id"
)
_PUT_QUESTION = (
    "INSERT OR IGNORE INTO questions (id, kind, origin, uri, content, question, asked_at, waits_until)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_ANSWER = "UPDATE questions SET answer = ? WHERE id = ? AND answer IS NULL AND waits_until > ?"
_ANSWER_ALL = (
    "UPDATE questions SET answer = ?"
    " WHERE answer IS NULL AND kind = 'load' AND origin = ? AND uri = ? AND content IN (?, '')"
)
_ANSWER_OF = "SELECT answer FROM questions WHERE id = ? AND answer IS NOT NULL"
_REMOVE_EXPIRED = "DELETE FROM questions WHERE waits_until <= ? AND (answer IS NULL OR waits_until <= ?)"


class SqliteStore(Store):
    """Open with ``await SqliteStore.open(path)``, and end with ``await store.close()``."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection: sqlite3.Connection | None = connection
        self._name = name
        self._turn = CapacityLimiter(1)  # works as a lock on the connection
        connection.create_function("holds", 2, _holds, deterministic=True)

    @classmethod
    async def open(cls, path: str | os.PathLike[str], *, patience: float = DEFAULT_PATIENCE) -> SqliteStore:
        """Open the store at ``path``, or create it; ``StoreError`` if it cannot be used or trusted."""
        return cls(await to_thread.run_sync(open_file, path, patience), basename(path))

    async def put_origin(self, origin: StoredOrigin) -> None:
        """Add or replace an origin."""
        values = (origin.label, json.dumps(dict(origin.settings)), origin.added_at)
        await self._write(("INSERT OR REPLACE INTO origins (label, settings, added_at) VALUES (?, ?, ?)", values))

    async def remove_origin(self, label: str) -> bool:
        """Remove an origin, its entries and its approvals; whether it existed. The log stays."""
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
        """All origins, sorted by label."""
        found = await self._read(_origin_from_row, "SELECT label, settings, added_at FROM origins")
        return sorted(found, key=lambda origin: origin.label)

    async def put_entries(self, label: str, seen: SeenEntries) -> None:
        """Store the listing of an origin, and replace the earlier one."""
        text = await to_thread.run_sync(_entries_to_text, seen.entries)
        values = (label, text, seen.at, seen.is_complete)
        await self._write(
            ("INSERT OR REPLACE INTO entries (label, entries, at, is_complete) VALUES (?, ?, ?, ?)", values),
            ("DELETE FROM asked_entries WHERE label = ?", (label,)),
            *((_PUT_ASKED, (label, entry.uri, _entry_to_text(entry))) for entry in seen.asked),
        )

    async def add_entry(self, label: str, entry: SkillEntry) -> None:
        """Add a requested entry to the listing of an origin."""
        await self._write((_PUT_ASKED, (label, entry.uri, _entry_to_text(entry))))

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
        return await self._write(
            (_CHANGE_GRANTS, (json.dumps(sorted(grants)), *_approval_to_row(approval))),
            (_LOG_IF_CHANGED, _line_to_row(line)),
        )

    async def remove_approval(self, origin: str, uri: str, line: LogLine, *, only: Approval | None = None) -> bool:
        """Remove an approval and its grants, and log it; whether it existed (A2)."""
        which: Statement = (_REMOVE, (origin, uri))
        if only is not None:
            which = (_REMOVE_EXACTLY, _approval_to_row(only))
        return await self._write(which, (_LOG_IF_CHANGED, _line_to_row(line)))

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

        def work(connection: sqlite3.Connection) -> int:
            return sum(_log_if_new(connection, line) for line in lines)

        return await self._change(work)

    async def lines(self, *, limit: int = 100, **wanted: Unpack[LogFilter]) -> Sequence[LogLine]:
        """The newest of the wanted lines, newest first."""
        conditions = {
            "origin = ?": wanted.get("origin"),
            "uri = ?": wanted.get("uri"),
            "number < ?": wanted.get("before"),
            "holds(who, ?)": wanted.get("by") or None,
            "holds(uri, ?)": wanted.get("about") or None,
        }
        given = {test: value for test, value in conditions.items() if value is not None}
        tests, values, what = list(given), list[Any](given.values()), wanted.get("what")
        if what is not None:
            tests += [f"what IN ({', '.join('?' * len(what))})"]
            tests += [DECIDING] if set(what) <= set(DECISIONS) else []
            values += what
        which = f" WHERE {' AND '.join(tests)}" if tests else ""
        query = f"{_LINES}{which} ORDER BY number DESC LIMIT ?"
        return await self._read(_line_from_row, query, *values, max(0, min(limit, sys.maxsize)))

    async def decisions(self, origin: str | None = None, uri: str | None = None) -> Sequence[LogLine]:
        """The newest decision about each skill, sorted by origin and URI."""
        given = {"origin = ?": origin, "uri = ?": uri}
        tests = [_DECISION, *(test for test, value in given.items() if value is not None)]
        newest = f"{_NEWEST} WHERE {' AND '.join(tests)} GROUP BY origin, uri"
        values = [value for value in given.values() if value is not None]
        found = await self._read(_line_from_row, f"{_LINES} WHERE number IN ({newest})", *values)
        return sorted(found, key=lambda line: (line.origin, line.uri))

    async def put_question(self, question: Question) -> None:
        """Add a question, and remove those that expired."""
        text = await to_thread.run_sync(question_to_text, question)
        now, values = question.asked_at, _bound(_question_to_row(question, text))

        def work(connection: sqlite3.Connection) -> None:
            connection.execute(_REMOVE_EXPIRED, (now, now - KEPT_SECONDS))
            [unanswered] = connection.execute("SELECT count(*) FROM questions WHERE answer IS NULL").fetchone()
            if unanswered >= MOST_QUESTIONS:
                raise too_many_questions()
            connection.execute(_PUT_QUESTION, values)

        await self._change(work)

    async def renew_question(self, key: str, until: float) -> bool:
        """Extend the time that a question waits; whether it still exists."""
        return await self._write(
            ("UPDATE questions SET waits_until = ? WHERE id = ?", (until, key)), is_news=False
        )

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

        def work(connection: sqlite3.Connection) -> Answered | None:
            found = connection.execute(_ANSWER_OF, (key,)).fetchone()
            connection.execute("DELETE FROM questions WHERE id = ?", (key,))
            with decoding_rows(self._name):
                return None if found is None else _answer_from_text(*found)

        return await self._change(work)

    async def version(self) -> int:
        """A number that differs after every change: each change increments it in its own transaction."""
        [number] = await self._read(int, "SELECT number FROM news")
        return number

    async def close(self) -> None:
        """Close the file after the current call. Later calls raise ``StoreError``."""
        with CancelScope(shield=True):
            await to_thread.run_sync(self._close, limiter=self._turn)

    async def _read(self, decode: Callable[..., T], query: str, *values: Any) -> list[T]:
        def work(connection: sqlite3.Connection) -> list[T]:
            found = connection.execute(query, _bound(values)).fetchall()
            with decoding_rows(self._name):
                return [decode(*map(_unbound, row)) for row in found]

        return await to_thread.run_sync(self._run, work, limiter=self._turn)

    async def _decide(self, line: LogLine, after: int | None, *statements: Statement) -> bool:
        """Run all statements, unless the newest decision about the line's skill is another than ``after``."""

        def work(connection: sqlite3.Connection) -> bool:
            place = _bound((line.origin, line.uri))
            if after is not None and connection.execute(_NEWEST_DECISION, place).fetchone()[0] != after:
                return False
            for text, values in statements:
                connection.execute(text, _bound(values))
            return True

        return await self._change(work)

    async def _write(self, *statements: Statement, is_news: bool = True) -> bool:
        """Run all statements or none; whether the first one changed anything."""

        def work(connection: sqlite3.Connection) -> bool:
            counts = [connection.execute(text, _bound(values)).rowcount for text, values in statements]
            return counts[0] > 0

        return await self._change(work, is_news=is_news)

    async def _change(self, work: Callable[[sqlite3.Connection], T], *, is_news: bool = True) -> T:
        """Run ``work`` in a transaction."""

        def change(connection: sqlite3.Connection) -> T:
            with transaction(connection):
                read_version(connection)  # a newer skillwire may have migrated the file since it was opened
                before = connection.total_changes
                done = work(connection)
                if is_news and connection.total_changes != before:
                    connection.execute("UPDATE news SET number = number + 1")
                return done

        return await to_thread.run_sync(self._run, change, limiter=self._turn)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            raise StoreError("store-closed", f"the store {self._name!r:.100} is closed", "open it again")
        with translated_errors(self._name):
            return work(self._connection)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class MemoryStore(SqliteStore):
    """A store without a file, for tests and for a host that must not write to the disk."""

    def __init__(self) -> None:
        connection = open_memory()
        super().__init__(connection, "memory")
        weakref.finalize(self, connection.close)  # it may not be closed, and nothing is lost


def _log_if_new(connection: sqlite3.Connection, line: LogLine) -> bool:
    about = _bound((line.what, line.origin, line.uri))
    newest = connection.execute(_NEWEST_FACTS, about).fetchone()
    values = _line_to_row(line)
    if newest is not None and newest[0] == values[-1]:  # compared as text, so that a damaged row does not raise
        return False
    connection.execute(_LOG, _bound(values))
    return True


def _answer_all(line: LogLine, contents: Contents, grants: frozenset[str] | None = None) -> Statement:
    """The statement that answers open questions about ``contents``: approved with ``grants``, else declined."""
    note = str(line.facts.get("note", ""))
    yes = grants is not None
    answered = Answered(yes, line.by, line.at, grants or frozenset(), note=note, recorded=True)
    values = (_answer_to_text(answered), line.origin, line.uri, fingerprint(contents))
    return _ANSWER_ALL, values


def _holds(text: str | bytes, part: str | bytes) -> bool:
    """Whether a column contains ``part``, ignoring case. SQLite itself folds only ASCII."""
    return _unbound(part).casefold() in _unbound(text).casefold()


def _bound(values: Sequence[Any]) -> tuple[Any, ...]:
    """Values for SQLite. A name from a hostile server may not be valid Unicode; it is stored as bytes."""
    return tuple(
        value.encode(errors="surrogatepass") if isinstance(value, str) and not _is_unicode(value) else value
        for value in values
    )


def _unbound(value: Any) -> Any:
    """The inverse of ``_bound``."""
    return value.decode(errors="surrogatepass") if isinstance(value, bytes) else value


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


# Rows and values. The JSON text is ASCII.


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
    return line.what, line.origin, line.uri, line.by, line.at, json.dumps(dict(line.facts))


def _line_from_row(what: Any, origin: str, uri: str, who: str, at: float, facts: str, number: int) -> LogLine:
    """A log line, from its columns."""
    return LogLine(what, origin, uri, who, at, json.loads(facts), number)


def _entries_to_text(entries: Iterable[SkillEntry]) -> str:
    """A whole listing."""
    return json.dumps([entry_to_document(entry) for entry in entries], separators=(",", ":"))


def _seen_from_row(entries: str, at: float, is_complete: int) -> SeenEntries:
    """A listing, from its columns."""
    return SeenEntries(tuple(map(_entry_from_document, json.loads(entries))), at, bool(is_complete))


def _entry_to_text(entry: SkillEntry) -> str:
    """One entry."""
    return json.dumps(entry_to_document(entry), separators=(",", ":"))


def _entry_from_text(text: str) -> SkillEntry:
    """The entry that ``_entry_to_text`` wrote."""
    return _entry_from_document(json.loads(text))


def _entry_from_document(document: dict[str, Any]) -> SkillEntry:
    # Not ``entry_from_document``: that function checks untrusted files, which takes most of the time, and rewrites
    # URIs. Stored entries were checked when they were received, and a program that can change them can also change
    # approvals.
    whole = "frontmatter" not in document["notPromised"]
    if document["resources"] == DYNAMIC:
        return SkillEntry(document["uri"], document["frontmatter"], DYNAMIC, whole_frontmatter=whole)
    files = tuple(Resource(file["uri"], file.get("digest"), file.get("size")) for file in document["resources"])
    resources = files if document["complete"] else Partial(files)
    return SkillEntry(document["uri"], document["frontmatter"], resources, whole_frontmatter=whole)


def question_to_text(question: Question) -> str:
    """The parts of a question that have no column; ``LimitError`` if they are too large."""
    document = {
        "entry": entry_to_document(question.entry),
        "by": question.by,
        "target": question.target,
        "hidden": question.hidden,
        "diff": question.diff,
        "lasts": question.lasts,
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
    entry, diff = _entry_from_document(document["entry"]), tuple(document["diff"])
    by, target = document["by"], document["target"]
    finds = tuple(HiddenFind(HiddenKind(find), place, shown) for find, place, shown in document["hidden"])
    return Question(key, kind, origin, entry, by, asked_at, waits_until, target, finds, diff, document["lasts"])


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
