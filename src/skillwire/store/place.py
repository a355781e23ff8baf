"""Where a store is: in a file of the state folder, or in a PostgreSQL database.

``state_folder`` decides where the user's state is, for code and for the command line.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard
from urllib.parse import unquote, urlsplit, urlunsplit

from skillwire.store.database import DEFAULT_PATIENCE

if TYPE_CHECKING:
    from skillwire.store.database import Database, Schema

USER = "user"
"""The state folder of the user, which ``skillwire`` uses on the command line."""


def is_url(place: object) -> TypeGuard[str]:
    """Whether ``place`` is the URL of a PostgreSQL database, and not a path."""
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


def has_password(url: str) -> bool:
    """Whether the URL of a database contains a password."""
    parts = urlsplit(url)
    return bool(parts.password) or any(map(_is_password, parts.query.split("&")))


def without_password(url: str) -> str:
    """The URL of a database for messages, and for commands that a user can repeat."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    query = "&".join(each for each in parts.query.split("&") if not _is_password(each))
    return urlunsplit(parts._replace(netloc=user.partition(":")[0] + at + host, query=query))


def without_place(url: str) -> str:
    """The URL with nothing but the name of the database, for clients of a server."""
    return f"postgresql:///{urlsplit(url).path.lstrip('/')}"


def expanded(path: str | Path) -> Path:
    """A path with ``~`` replaced."""
    return Path(os.path.expanduser(path))


def state_folder(state: str | Path = USER) -> Path:
    """The state folder: the given one, or for ``"user"`` that of the user (``$XDG_STATE_HOME/skillwire``).

    A state in a database has that of the user, too: verified content stays on the machine that fetched it.
    """
    if state != USER and not is_url(state):
        return expanded(state)
    base = os.environ.get("XDG_STATE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "state") / "skillwire"


def expanded_state(state: str | Path) -> str | Path:
    """A state folder with ``~`` replaced, or the URL of a database."""
    return state if is_url(state) else expanded(state)


async def open_database(
    place: str | os.PathLike[str], schema: Schema, *, patience: float = DEFAULT_PATIENCE
) -> Database:
    """Open the database at a path or a URL, and migrate it; ``StoreError`` if it cannot be used or trusted."""
    if is_url(place):
        from skillwire.store.postgres import PostgresDatabase  # late: it needs an extra

        return await PostgresDatabase.open(place, schema, patience=patience)
    from skillwire.store.sqlite import SqliteDatabase

    return await SqliteDatabase.open(place, schema, patience=patience)


def _is_password(option: str) -> bool:
    return unquote(option.partition("=")[0]) in ("password", "sslpassword")
