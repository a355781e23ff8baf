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

import errno
import json
import os
import sqlite3
import stat
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

from anyio import CancelScope, CapacityLimiter, to_thread

from skillwire.catalog.listing import entry_to_document
from skillwire.errors import StoreError
from skillwire.skill.approval import Approval
from skillwire.skill.entry import DYNAMIC, Partial, Resource, SkillEntry
from skillwire.store.contract import LogLine, SeenEntries, Store, StoredOrigin
from skillwire.store.migrations import migrate, read_version, transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

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
            ("DELETE FROM approvals WHERE origin = ?", (label,)),
        )

    async def origins(self) -> Sequence[StoredOrigin]:
        """Every origin, by label."""
        found = await self._read(_origin, "SELECT label, settings, added_at FROM origins")
        return sorted(found, key=lambda origin: origin.label)

    async def put_entries(self, label: str, seen: SeenEntries) -> None:
        """Remember what an origin lists."""
        text = await to_thread.run_sync(_entries_as_text, seen)
        values = (label, text, seen.at, seen.is_complete)
        await self._write(
            ("INSERT OR REPLACE INTO entries (label, entries, at, is_complete) VALUES (?, ?, ?, ?)", values)
        )

    async def entries(self, label: str) -> SeenEntries | None:
        """What an origin listed last, if it was ever asked."""
        found = await self._read(_seen, "SELECT entries, at, is_complete FROM entries WHERE label = ?", label)
        return found[0] if found else None

    async def put_approval(self, approval: Approval, line: LogLine) -> None:
        """Remember an approval, in place of an earlier one for the same skill, and log it: one step (A1, A4)."""
        await self._write((_PUT_APPROVAL, _values_of(approval)), (_LOG, _values_of_line(line)))

    async def change_grants(self, approval: Approval, grants: frozenset[str], line: LogLine) -> bool:
        """Give exactly ``approval`` other grants; whether it was still there (A4, A5)."""
        return await self._write(
            (_CHANGE_GRANTS, (json.dumps(sorted(grants)), *_values_of(approval))),
            (f"{_LOG} WHERE changes() > 0", _values_of_line(line)),
        )

    async def remove_approval(self, origin: str, uri: str, line: LogLine, *, only: Approval | None = None) -> bool:
        """Forget an approval and its grants; whether there was one. Only then is there anything to log (A2)."""
        statement = (_REMOVE, (origin, uri)) if only is None else (_REMOVE_EXACTLY, _values_of(only))
        return await self._write(
            statement,
            (f"{_LOG} WHERE changes() > 0", _values_of_line(line)),
        )

    async def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval of one skill."""
        found = await self._read(_approval, f"{_APPROVALS} WHERE origin = ? AND uri = ?", origin, uri)
        return found[0] if found else None

    async def approvals(self, origin: str | None = None) -> Sequence[Approval]:
        """Every approval, by origin and URI."""
        which = ("", ()) if origin is None else (" WHERE origin = ?", (origin,))
        found = await self._read(_approval, _APPROVALS + which[0], *which[1])
        return sorted(found, key=lambda approval: (approval.origin, approval.uri))

    async def log(self, line: LogLine) -> None:
        """Add a line."""
        await self._write((_LOG, _values_of_line(line)))

    async def lines(
        self, *, limit: int = 100, origin: str | None = None, uri: str | None = None
    ) -> Sequence[LogLine]:
        """The newest lines, newest first."""
        wanted = {"origin = ?": origin, "uri = ?": uri}
        given = {test: value for test, value in wanted.items() if value is not None}
        which = f" WHERE {' AND '.join(given)}" if given else ""
        query = f"{_LINES}{which} ORDER BY number DESC LIMIT ?"
        return await self._read(_line, query, *given.values(), max(0, min(limit, sys.maxsize)))

    async def close(self) -> None:
        """Let go of the file. A call that is under way ends first; later ones are refused."""
        with CancelScope(shield=True):
            await to_thread.run_sync(self._close, limiter=self._turn)

    async def _read(self, decode: Callable[..., T], query: str, *values: Any) -> list[T]:
        def work(connection: sqlite3.Connection) -> list[T]:
            rows = connection.execute(query, _bound(values)).fetchall()
            with _readable(self._name):
                return [decode(*map(_unbound, row)) for row in rows]

        return await to_thread.run_sync(self._run, work, limiter=self._turn)

    async def _write(self, *statements: Statement) -> bool:
        """All statements or none; whether the first one changed anything."""

        def work(connection: sqlite3.Connection) -> bool:
            with transaction(connection):
                read_version(connection)  # a newer skillwire may have changed the shape since we opened it
                counts = [connection.execute(text, _bound(values)).rowcount for text, values in statements]
                return counts[0] > 0

        return await to_thread.run_sync(self._run, work, limiter=self._turn)

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        if self._connection is None:
            raise StoreError("store-closed", f"the store {self._name!r:.100} was closed", "open it again")
        with _explained(self._name):
            return work(self._connection)

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


# Opening


def _open(named: str | os.PathLike[str], patience: float) -> sqlite3.Connection:
    path = Path(os.path.realpath(named))  # SQLite puts its other files beside the real one
    with _explained(path.name):
        _prepare(path)
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=patience, isolation_level=None, check_same_thread=False
        )
        try:
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


# What went wrong, in our words

_BUSY = ("store-busy", "is held by another program", "try again, or end the other program")
_FULL = (
    "store-full",
    "cannot grow: the disk is full",
    "free some space; what was remembered before is still there",
)
_READONLY = ("store-readonly", "cannot be written", "make the file and its folder writable for you")
_DAMAGED = ("store-damaged", "is damaged, or no store", "move it aside and start anew; nothing of it was deleted")
_FAILURES = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_PROTOCOL: _BUSY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_READONLY: _READONLY,
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
}
_OS_FAILURES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EROFS: _READONLY,
    errno.EACCES: _READONLY,
    errno.EPERM: _READONLY,
}


@contextmanager
def _explained(name: str) -> Generator[None]:
    """What SQLite and the disk raise, as ``StoreError``. Their words may name places on the machine, ours not."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        known = _FAILURES.get(code & 0xFF)  # the rest of the code says more than anybody acts on
        raise _failure(name, known, getattr(error, "sqlite_errorname", type(error).__name__)) from error
    except OSError as error:
        raise _failure(name, _OS_FAILURES.get(error.errno or 0), error.strerror or type(error).__name__) from error


@contextmanager
def _readable(name: str) -> Generator[None]:
    """A row that does not hold what we write is damage too."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise _failure(name, _DAMAGED, "") from error


def _failure(name: str, known: tuple[str, str, str] | None, otherwise: str) -> StoreError:
    reference, what, hint = known or (
        "store-unusable",
        f"cannot be used ({otherwise})",
        "look at the disk and the folder it is in",
    )
    return StoreError(reference, f"the store {name!r:.100} {what}", hint)


# Values and rows. JSON is written as ASCII.

_APPROVALS = "SELECT origin, uri, contents, who, at, grants FROM approvals"
_PUT_APPROVAL = (
    "INSERT OR REPLACE INTO approvals (origin, uri, contents, who, at, grants) VALUES (?, ?, ?, ?, ?, ?)"
)
_REMOVE = "DELETE FROM approvals WHERE origin = ? AND uri = ?"
_REMOVE_EXACTLY = f"{_REMOVE} AND contents = ? AND who = ? AND at = ? AND grants = ?"
_CHANGE_GRANTS = (
    "UPDATE approvals SET grants = ?"
    " WHERE origin = ? AND uri = ? AND contents = ? AND who = ? AND at = ? AND grants = ?"
)
_LINES = "SELECT what, origin, uri, who, at, facts, number FROM log"
_LOG = "INSERT INTO log (what, origin, uri, who, at, facts) SELECT ?, ?, ?, ?, ?, ?"


def _bound(values: Sequence[Any]) -> tuple[Any, ...]:
    """What a hostile server calls a skill may be no Unicode; it is logged all the same, as bytes."""
    return tuple(
        value.encode(errors="surrogatepass") if isinstance(value, str) and not _is_unicode(value) else value
        for value in values
    )


def _unbound(value: Any) -> Any:
    return value.decode(errors="surrogatepass") if isinstance(value, bytes) else value


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _values_of(approval: Approval) -> tuple[Any, ...]:
    contents, grants = json.dumps(sorted(approval.contents)), json.dumps(sorted(approval.grants))
    return approval.origin, approval.uri, contents, approval.by, approval.at, grants


def _values_of_line(line: LogLine) -> tuple[Any, ...]:
    return line.what, line.origin, line.uri, line.by, line.at, json.dumps(dict(line.facts))


def _origin(label: str, settings: str, added_at: float) -> StoredOrigin:
    return StoredOrigin(label, json.loads(settings), added_at)


def _approval(origin: str, uri: str, contents: str, who: str, at: float, grants: str) -> Approval:
    pairs = frozenset((file, digest) for file, digest in json.loads(contents))
    return Approval(origin, uri, pairs, who, at, frozenset(json.loads(grants)))


def _line(what: Any, origin: str, uri: str, who: str, at: float, facts: str, number: int) -> LogLine:
    return LogLine(what, origin, uri, who, at, json.loads(facts), number)


def _entries_as_text(seen: SeenEntries) -> str:
    return json.dumps([entry_to_document(entry) for entry in seen.entries], separators=(",", ":"))


def _seen(entries: str, at: float, is_complete: int) -> SeenEntries:
    return SeenEntries(tuple(map(_entry, json.loads(entries))), at, bool(is_complete))


def _entry(document: dict[str, Any]) -> SkillEntry:
    """The entry that ``entry_to_document`` wrote, as it was.

    Not ``entry_from_document``: that checks a file from anywhere, which takes most of the time, and spells URIs
    anew. These were checked when they came, and whoever can write here can write approvals too.
    """
    whole = "frontmatter" not in document["notPromised"]
    if document["resources"] == DYNAMIC:
        return SkillEntry(document["uri"], document["frontmatter"], DYNAMIC, whole_frontmatter=whole)
    files = tuple(Resource(file["uri"], file.get("digest"), file.get("size")) for file in document["resources"])
    resources = files if document["complete"] else Partial(files)
    return SkillEntry(document["uri"], document["frontmatter"], resources, whole_frontmatter=whole)
