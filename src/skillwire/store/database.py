"""One database layer for two engines, SQLite and PostgreSQL. All SQL of this project runs through it.

- ``read`` and ``write`` run a function in a worker thread, in one transaction. The function may run again, so it
  has no other effect. ``rows`` is a read of one statement.
- A read sees one snapshot.
- Writes of one schema run one at a time, also those of other processes, on both engines. So a write can look
  before it decides. ``write(work, concurrent=True)`` gives this up on PostgreSQL, for long writes that only add
  rows.
- A write that returned is on the disk. One that raised has changed nothing, except for ``store-uncertain``: the
  connection was lost during the commit.
- The SQL is the same text for both engines, with ``?`` for each value. What the engines do not share is in the
  tables of a ``Schema``, or is chosen by ``Session.dialect``.
- Any text can be stored and compared, also text that an engine refuses (see ``storable``). Truth values become 0
  and 1.

Errors of an engine are raised as ``StoreError``. A message names the database, and no path, user or password.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

from skillwire.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

T = TypeVar("T")
EngineName: TypeAlias = Literal["sqlite", "postgres"]
Row: TypeAlias = tuple[Any, ...]
Migration: TypeAlias = tuple[str, ...]
"""Statements, run in this order in one transaction."""

DEFAULT_PATIENCE: Final = 5.0
"""Seconds to wait for another writer, or for a server that restarts."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The tables of a store. A released migration is never edited; new ones are appended.

    ``name`` tells the schemas of one PostgreSQL database apart. ``application`` is written to the header of a
    SQLite file, so that the database of another program is not mistaken for a store.
    """

    name: str
    application: bytes  # four bytes
    sqlite: tuple[Migration, ...]
    postgres: tuple[Migration, ...] = ()


class EngineFailure(NamedTuple):
    """A way in which an engine fails. ``problem`` is the rest of a sentence about the database."""

    reference: str
    problem: str
    hint: str

    def error(self, label: str) -> StoreError:
        """The error about the database with this label."""
        return StoreError(self.reference, f"{label} {self.problem}", self.hint)


FULL: Final = EngineFailure(
    "store-full", "cannot grow: its disk is full", "free some space; everything stored earlier is intact"
)
BUSY: Final = EngineFailure("store-busy", "is in use by another program", "try again, or stop the other program")
DAMAGED: Final = EngineFailure(
    "store-damaged",
    "is damaged, or is not a store",
    "restore a backup, or move it away and start again; nothing was deleted from it",
)


class Session(ABC):
    """A transaction, as ``Database.read`` and ``Database.write`` pass it to a function. Use it only there."""

    dialect: EngineName
    changed: int = 0
    """The number of rows that ``run`` has changed in this transaction."""

    @abstractmethod
    def rows(self, sql: str, *values: Any) -> list[Row]:
        """The rows of a query."""

    @abstractmethod
    def run(self, sql: str, *values: Any) -> int:
        """Run a statement; the number of rows that it changed."""

    @abstractmethod
    def run_each(self, sql: str, values: Iterable[Sequence[Any]]) -> int:
        """Run a statement once for each sequence of values; the number of rows that it changed."""

    def row(self, sql: str, *values: Any) -> Row | None:
        """The first row of a query."""
        found = self.rows(sql, *values)
        return found[0] if found else None


class Database(ABC):
    """A database with the tables of one schema. It belongs to one event loop."""

    dialect: EngineName
    label: str
    """What messages call it, such as ``the store 'host.sqlite3'``."""

    @abstractmethod
    async def rows(self, sql: str, *values: Any) -> list[Row]:
        """The rows of one query."""

    @abstractmethod
    async def read(self, work: Callable[[Session], T]) -> T:
        """Run ``work`` on one snapshot."""

    @abstractmethod
    async def write(self, work: Callable[[Session], T], *, concurrent: bool = False) -> T:
        """Run ``work`` and commit, or roll back if it raises."""

    @abstractmethod
    def hold(self, name: str) -> AbstractAsyncContextManager[None]:
        """Wait until nothing else is inside ``hold(name)``, and keep others out for the duration of the block.

        If the process dies, another one gets in. If the lock is lost (the server restarted), the block is
        cancelled and ``StoreError`` is raised; enter again.
        """

    @abstractmethod
    async def wait_for_change(self, seconds: float) -> None:
        """Wait until something may have changed, but no longer than ``seconds``.

        A wake-up can be missed, and one can come without a change: ask the database afterwards in any case.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close it after the current calls. Later calls raise ``StoreError``."""

    def damaged(self) -> StoreError:
        """The error for a row that does not contain what was written."""
        return DAMAGED.error(self.label)


def newer_schema(version: int, known: int) -> StoreError:
    """The error for a database with more migrations than this version of skillwire has."""
    return StoreError(
        "store-newer",
        f"the store was written by a newer skillwire (store version {version}, known here: {known});"
        " nothing in it was changed",
        "update skillwire, and restart the processes that run the older version",
    )


def placeholders(count: int) -> str:
    """``?, ?, ?`` for ``IN (…)``."""
    return ", ".join("?" * count)


# PostgreSQL stores no NUL, and neither engine stores half of a surrogate pair. Servers may send both.
_ESCAPE = "\x1a"
_UNSTORABLE = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")


def storable(value: Any) -> Any:
    """A value for a statement. Different texts stay different, so that they can be compared in a query.

    A character that an engine refuses becomes U+001A and four hexadecimal digits.
    """
    if isinstance(value, str):
        if value.isascii() and "\x00" not in value and _ESCAPE not in value:
            return value
        return _UNSTORABLE.sub(lambda match: f"{_ESCAPE}{ord(match[0]):04x}", value)
    return int(value) if isinstance(value, bool) else value


def restored(row: Row) -> Row:
    """A row with the values that ``storable`` got."""
    if any(isinstance(value, str) and _ESCAPE in value for value in row):
        return tuple(
            _ESCAPED.sub(lambda match: chr(int(match[1], 16)), value) if isinstance(value, str) else value
            for value in row
        )
    return row
