"""What SQLite and the disk say, in our words: busy, full, read-only, damaged.

No message names a place on the machine beyond the name of the file.
"""

from __future__ import annotations

import errno
import sqlite3
from contextlib import contextmanager
from typing import TYPE_CHECKING

from skillwire.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Generator

_BUSY = ("store-busy", "is held by another program", "try again, or end the other program")
_FULL = (
    "store-full",
    "cannot grow: the disk is full",
    "free some space; what was remembered before is still there",
)
_READONLY = ("store-readonly", "cannot be written", "make the file and its folder writable for you")
_DAMAGED = ("store-damaged", "is damaged, or no store", "move it aside and start again; nothing of it was deleted")
_UNOPENED = (
    "store-unusable",
    "cannot be opened, or no file can be made beside it",
    "free some space, and make the folder writable for you",
)
_FAILURES = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_PROTOCOL: _BUSY,
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: _FULL,  # no room for the index of the write-ahead log
    sqlite3.SQLITE_IOERR: ("store-unusable", "cannot be used: the disk reports an error", "look at the disk"),
    sqlite3.SQLITE_CANTOPEN: _UNOPENED,
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
def explained(name: str) -> Generator[None]:
    """What SQLite and the disk raise, as ``StoreError``. Their words may name places on the machine, ours not."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        known = _FAILURES.get(code) or _FAILURES.get(code & 0xFF)  # the rest of the code seldom matters
        raise _failure(name, known, getattr(error, "sqlite_errorname", type(error).__name__)) from error
    except OSError as error:
        raise _failure(name, _OS_FAILURES.get(error.errno or 0), error.strerror or type(error).__name__) from error


@contextmanager
def readable(name: str) -> Generator[None]:
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
