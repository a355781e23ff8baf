"""Where a store is: in a file, or in a PostgreSQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.store.database import DEFAULT_PATIENCE
from skillwire.store.sqlite import SqliteDatabase

if TYPE_CHECKING:
    import os

    from skillwire.store.database import Database, Schema


def is_url(place: object) -> bool:
    """Whether ``place`` is the URL of a PostgreSQL database, and not a path."""
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


async def open_database(
    place: str | os.PathLike[str], schema: Schema, *, patience: float = DEFAULT_PATIENCE
) -> Database:
    """Open the database at a path or a URL, and migrate it; ``StoreError`` if it cannot be used or trusted."""
    if isinstance(place, str) and is_url(place):
        from skillwire.store.postgres import PostgresDatabase  # late: it needs an extra

        return await PostgresDatabase.open(place, schema, patience=patience)
    return await SqliteDatabase.open(place, schema, patience=patience)
