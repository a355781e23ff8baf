"""What a process of ``test_store_processes.py`` does: ``store_worker.py TASK WORDS…``."""

from __future__ import annotations

import os
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from skillwire.errors import StoreError
from skillwire.skill.approval import Approval
from skillwire.store.records import Answered, LogLine
from skillwire.store.schema import HOST_SCHEMA
from skillwire.store.sqlite import SqliteDatabase, migrate
from skillwire.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

PATIENCE = 60
FILES = 200  # enough that an approval is several pages of the file
LATER = (*HOST_SCHEMA.sqlite, *((f"INSERT INTO origins VALUES ('migration-{n}', '{{}}', {n})",) for n in range(5)))


def approval(worker: str, n: int) -> Approval:
    uri = f"skill://{worker}/{n}/SKILL.md"
    contents = frozenset((f"skill://{worker}/{n}/{file}", f"sha256:{n:064}") for file in range(FILES))
    return Approval("acme", uri, contents, worker, float(n), frozenset({"execute"}))


def line(what: Any, worker: str, n: int) -> LogLine:
    return LogLine(what, "acme", approval(worker, n).uri, worker, float(n))


def say(text: object) -> None:
    print(text, flush=True)


async def write(path: str, worker: str, count: str) -> None:
    """Approve, and take every third approval back. Whatever was said has been acknowledged."""
    store = await Store.open(path, patience=PATIENCE)
    say("ready")
    sys.stdin.readline()
    for n in range(int(count)):
        await store.put_approval(approval(worker, n), line("approved", worker, n))
        say(f"approved {n}")
        if n % 3 == 0:
            await store.remove_approval("acme", approval(worker, n).uri, line("revoked", worker, n))
            say(f"revoked {n}")
    await store.close()


async def write_by_half(path: str, what: str, statement: str) -> None:
    """Begin to approve or to revoke, and stop before ``statement``."""

    def halt(begun: str) -> None:
        if begun.startswith(statement):
            say("ready")
            sys.stdin.readline()

    store = await Store.open(path)
    assert isinstance(store.database, SqliteDatabase)
    assert store.database._connection is not None
    store.database._connection.set_trace_callback(halt)
    if what == "approve":
        await store.put_approval(approval("ada", 1), line("approved", "ada", 1))
    else:
        await store.remove_approval("acme", approval("ada", 0).uri, line("revoked", "ada", 0))


async def open_each() -> None:
    """Open, use and close the store at each path that comes in."""
    say("ready")
    for path in sys.stdin:
        try:
            store = await Store.open(path.strip(), patience=PATIENCE)
            await store.log(LogLine("read", "acme", "", str(os.getpid()), 1.0))
            await store.close()
            say("used")
        except StoreError as error:
            say(error)


async def answer_each(path: str, who: str) -> None:
    """Answer each question whose id comes in, and say whether that was the answer."""
    store = await Store.open(path, patience=PATIENCE)
    say("ready")
    for key in sys.stdin:
        say(await store.answer_question(key.strip(), Answered(yes=True, by=who, at=1.0)))
    await store.close()


async def migrate_each() -> None:
    """Bring the store at each path that comes in to a version that is still to come."""
    say("ready")
    for path in sys.stdin:
        with closing(sqlite3.connect(path.strip(), isolation_level=None, timeout=PATIENCE)) as connection:
            migrate(connection, replace(HOST_SCHEMA, sqlite=LATER))
        say("migrated")


async def migrate_by_half(path: str) -> None:
    """Stop in the middle of a migration."""

    def halt() -> int:
        say("ready")
        sys.stdin.readline()
        return 0

    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_function("halt", 0, halt)
        half = ("CREATE TABLE half (x)", "INSERT INTO half VALUES (1)", "INSERT INTO half SELECT halt()")
        migrate(connection, replace(HOST_SCHEMA, sqlite=(*HOST_SCHEMA.sqlite, half)))


async def use(path: str, user: str = "") -> None:
    """Open, read, write, and say how far it went; as another user, if asked."""
    if user:
        os.setgroups([])
        os.setgid(int(user))
        os.setuid(int(user))
    try:
        store = await Store.open(path, patience=1)
        try:
            say(f"{len(await store.approvals())} approvals")
            await store.log(LogLine("read", "acme", "", "ada", 1.0))
            say("written")
        finally:
            await store.close()
    except StoreError as error:
        say(str(error).replace("\n", " "))
    say("end")


TASKS: dict[str, Callable[..., Awaitable[None]]] = {
    each.__name__: each
    for each in (write, write_by_half, open_each, answer_each, migrate_each, migrate_by_half, use)
}


def main() -> None:
    name, *words = sys.argv[1:]
    anyio.run(TASKS[name], *words)


if __name__ == "__main__":
    main()
