"""The log of changes, and the clock that numbers them.

``record`` comes last in a transaction with a change. Other writers then wait for the row of the clock, so changes
become visible in the order of their numbers.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from skillwire.registry import records
from skillwire.registry.visibility import key_of

if TYPE_CHECKING:
    from skillwire.registry.contract import AuditLine
    from skillwire.registry.model import Actor
    from skillwire.store.database import Session


def record(session: Session, actor: Actor, what: str, path: str, version: str = "", **facts: Any) -> int:
    """Append a line to the audit log; its number. ``path`` is a skill or a namespace, or empty."""
    number = tick(session)
    session.run(
        "INSERT INTO change (number, at, actor, address, what, key, path, version, facts)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        number,
        actor.at,
        actor.identity.name,
        actor.address,
        what,
        key_of(path) if path else "",
        path,
        version,
        records.to_json(facts),
    )
    return number


def clock(session: Session) -> int:
    """The number of the newest change."""
    [(number,)] = session.rows("SELECT number FROM clock")
    return number


def after(session: Session, number: int, limit: int) -> list[AuditLine]:
    """The changes after a number, the oldest first."""
    found = session.rows(
        f"SELECT {records.CHANGE_COLUMNS} FROM change WHERE number > ? ORDER BY number LIMIT ?", number, limit
    )
    return [records.change_from_row(*row) for row in found]


def before(session: Session, key: str | None, number: int | None, limit: int) -> list[AuditLine]:
    """The newest changes before a number, the newest first; of one namespace, or of all."""
    where = "number < ?"
    values: list[Any] = [(1 << 62) if number is None else number]
    if key is not None:
        where, values = f"key = ? AND {where}", [key, *values]
    found = session.rows(
        f"SELECT {records.CHANGE_COLUMNS} FROM change WHERE {where} ORDER BY number DESC LIMIT ?", *values, limit
    )
    return [records.change_from_row(*row) for row in found]


def new_number(session: Session, table: str) -> int:
    """A number for a row that its callers name by it.

    It is random: numbers in turn would tell how much happens in namespaces that a caller may not read.
    """
    while True:
        number = 100_000_000 + secrets.randbelow(900_000_000)
        if session.row(f"SELECT 1 FROM {table} WHERE number = ?", number) is None:
            return number


def tick(session: Session) -> int:
    """Advance the clock, and keep other writers waiting until this transaction ends."""
    session.run("UPDATE clock SET number = number + 1")
    return clock(session)
