"""The tables of the store of hosts and gateways, in each engine.

The log is append-only: triggers refuse to change or remove a line. They protect against defects in this package,
not against the owner of the database.

A released migration is never edited. New ones are appended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillwire.store.database import Schema

if TYPE_CHECKING:
    from skillwire.store.database import Migration

DECIDING: Final = "what IN ('approved', 'denied', 'revoked', 'enabled')"
"""The condition of the partial index ``log_of_decisions``; SQLite uses the index only for the same text."""

_SQLITE: tuple[Migration, ...] = (
    (
        "CREATE TABLE origins (label TEXT NOT NULL PRIMARY KEY, settings TEXT NOT NULL, added_at REAL NOT NULL)"
        " WITHOUT ROWID",
        # One row per origin: a listing is written and read completely, so rows per skill would be slower.
        "CREATE TABLE entries (label TEXT NOT NULL PRIMARY KEY, entries TEXT NOT NULL, at REAL NOT NULL,"
        " is_complete INTEGER NOT NULL)",
        # Requested entries, with more detail than the listed ones.
        "CREATE TABLE asked_entries (label TEXT NOT NULL, uri TEXT NOT NULL, entry TEXT NOT NULL,"
        " PRIMARY KEY (label, uri)) WITHOUT ROWID",
        # A1: the contents are one value. They are never searched, and a part of them would be another approval.
        "CREATE TABLE approvals (origin TEXT NOT NULL, uri TEXT NOT NULL, contents TEXT NOT NULL,"
        " who TEXT NOT NULL, at REAL NOT NULL, grants TEXT NOT NULL, PRIMARY KEY (origin, uri))",
        # AUTOINCREMENT: the number of a line is never used again. ``kind`` is that of the request that a decision
        # answers. It is not read from ``facts``: JSON functions differ between engines and fail for some texts.
        "CREATE TABLE log (number INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT NOT NULL, origin TEXT NOT NULL,"
        " uri TEXT NOT NULL, who TEXT NOT NULL, at REAL NOT NULL, facts TEXT NOT NULL, kind TEXT NOT NULL)",
        # An index entry ends with the number of the line, so the newest lines need no sorting.
        "CREATE INDEX log_of_origin ON log (origin)",
        "CREATE INDEX log_of_uri ON log (uri)",
        # For the newest decision about each skill: most lines of the log are reads.
        f"CREATE INDEX log_of_decisions ON log (origin, uri) WHERE {DECIDING}",
        "CREATE TRIGGER log_is_not_changed BEFORE UPDATE ON log"
        " BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
        "CREATE TRIGGER log_is_not_cut BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
        # INSERT OR REPLACE removes a row without firing the trigger above.
        "CREATE TRIGGER log_is_not_replaced BEFORE INSERT ON log"
        " WHEN EXISTS (SELECT 1 FROM log WHERE number = NEW.number)"
        " BEGIN SELECT RAISE(ABORT, 'the log only grows'); END",
        # An answer is in the row of its question, so that only the first one is stored. ``content`` is the
        # fingerprint that a decision about a skill must match; empty if nothing can be verified.
        "CREATE TABLE questions (id TEXT NOT NULL PRIMARY KEY, kind TEXT NOT NULL, origin TEXT NOT NULL,"
        " uri TEXT NOT NULL, content TEXT NOT NULL, question TEXT NOT NULL, asked_at REAL NOT NULL,"
        " waits_until REAL NOT NULL, answer TEXT)",
        # Counts changes. SQLite's own counter would also count renewed questions.
        "CREATE TABLE news (number INTEGER NOT NULL)",
        "INSERT INTO news (number) VALUES (0)",
    ),
)

# Column types and triggers differ, and indexes: a B-tree of PostgreSQL refuses long values, and a URI may have
# 4 KiB. Rows with a URI are unique because writes run one at a time and remove the earlier row.
_POSTGRES: tuple[Migration, ...] = (
    (
        'CREATE TABLE origins (label text COLLATE "C" PRIMARY KEY, settings text NOT NULL,'
        " added_at double precision NOT NULL)",
        'CREATE TABLE entries (label text COLLATE "C" PRIMARY KEY, entries text NOT NULL,'
        " at double precision NOT NULL, is_complete integer NOT NULL)",
        'CREATE TABLE asked_entries (label text COLLATE "C" NOT NULL, uri text COLLATE "C" NOT NULL,'
        " entry text NOT NULL)",
        "CREATE INDEX asked_entries_of_label ON asked_entries (label)",
        'CREATE TABLE approvals (origin text COLLATE "C" NOT NULL, uri text COLLATE "C" NOT NULL,'
        " contents text NOT NULL, who text NOT NULL, at double precision NOT NULL, grants text NOT NULL)",
        "CREATE INDEX approvals_of_origin ON approvals (origin)",
        "CREATE INDEX approvals_of_uri ON approvals USING hash (uri)",
        "CREATE TABLE log (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text NOT NULL,"
        ' origin text COLLATE "C" NOT NULL, uri text COLLATE "C" NOT NULL, who text NOT NULL,'
        " at double precision NOT NULL, facts text NOT NULL, kind text NOT NULL)",
        "CREATE INDEX log_of_origin ON log (origin, number)",
        "CREATE INDEX log_of_uri ON log USING hash (uri)",
        f"CREATE INDEX log_of_decisions ON log (number) WHERE {DECIDING}",
        f"CREATE INDEX log_of_decisions_about ON log USING hash (uri) WHERE {DECIDING}",
        "CREATE FUNCTION log_only_grows() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'the log only grows'; END $$",
        "CREATE TRIGGER log_is_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON log"
        " FOR EACH STATEMENT EXECUTE FUNCTION log_only_grows()",
        'CREATE TABLE questions (id text COLLATE "C" PRIMARY KEY, kind text NOT NULL,'
        ' origin text COLLATE "C" NOT NULL, uri text COLLATE "C" NOT NULL, content text NOT NULL,'
        " question text NOT NULL, asked_at double precision NOT NULL, waits_until double precision NOT NULL,"
        " answer text)",
        "CREATE TABLE news (number bigint NOT NULL)",
        "INSERT INTO news (number) VALUES (0)",
    ),
)

HOST_SCHEMA: Final = Schema("host", b"skwr", _SQLITE, _POSTGRES)
