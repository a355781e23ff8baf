"""The tables of a registry, for both engines.

Each table is written once, in the types of SQLite, and translated for PostgreSQL (``_postgres``). Text is compared
byte by byte on both. What the two do not share is the index for the search and how a trigger is written.

- ``key`` is a namespace and a slash. Sorted by it, namespaces have the order of the paths of their skills.
- ``served`` is derived from the other tables: one row for each skill with a ``stable`` version, with the whole
  answer as JSON. So a page of a listing reads one row for each skill. ``skillwire registry fsck`` compares it.
- ``blob`` has bytes once for each namespace that uploaded them, and not once for all. Otherwise an upload would be
  quicker if another namespace had the same bytes, which would tell that it has them.
- ``served_words`` has the words of the listed skills, for the search: each as it is, for administrators, and once
  more with the namespace, or with that of all public ones. So a search never looks at words that are hidden from
  its caller, and takes the same time whether there are any.
- ``clock`` has one row. It counts changes, and is updated last in the transaction of a change. A sequence would
  not do: its numbers are taken in another order than that of the commits, and a reader would miss changes.
- Triggers refuse to change what never changes. They protect against defects of this package, not against the
  owner of the database.

A released migration is never edited. New ones are appended to both tuples.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from skillwire.store.database import Migration, Schema


class _Refusal(NamedTuple):
    """A trigger that refuses a change."""

    table: str
    change: str  # such as UPDATE OF name, key
    when: str = ""


_TABLES: Final = (
    "CREATE TABLE clock (one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1), number INTEGER NOT NULL)",
    # ``bytes``: of all blobs. ``skeleton``: what namespaces that look alike have in common.
    "CREATE TABLE namespace (key TEXT NOT NULL PRIMARY KEY, skeleton TEXT NOT NULL UNIQUE,"
    " public INTEGER NOT NULL, reviewed INTEGER NOT NULL, max_skills INTEGER NOT NULL, max_bytes INTEGER NOT NULL,"
    " max_versions INTEGER NOT NULL, bytes INTEGER NOT NULL)",
    "CREATE INDEX namespace_public ON namespace (key) WHERE public = 1",
    "CREATE TABLE role (principal TEXT NOT NULL, key TEXT NOT NULL REFERENCES namespace, role TEXT NOT NULL,"
    " PRIMARY KEY (principal, key))",
    "CREATE INDEX role_of_namespace ON role (key)",
    "CREATE TABLE skill (id {id}, key TEXT NOT NULL REFERENCES namespace, path TEXT NOT NULL UNIQUE,"
    " listed INTEGER NOT NULL, deprecated TEXT, instead TEXT)",
    "CREATE INDEX skill_of_namespace ON skill (key)",
    # ``approved``: it may be read by everyone who may read the namespace. ``publishers``: the principals that are
    # the person who published it, as JSON. ``yanked`` and ``deleted`` are reasons.
    "CREATE TABLE version (id {id}, skill_id INTEGER NOT NULL REFERENCES skill, version TEXT NOT NULL,"
    " digest TEXT NOT NULL, manifest BLOB NOT NULL, published_at REAL NOT NULL, published_by TEXT NOT NULL,"
    " publishers TEXT NOT NULL, source TEXT NOT NULL, approved INTEGER NOT NULL, yanked TEXT, deleted TEXT,"
    " UNIQUE (skill_id, version))",
    # ``at``: when the bytes were last uploaded, or asked for before an upload.
    "CREATE TABLE blob (key TEXT NOT NULL REFERENCES namespace, digest TEXT NOT NULL, at REAL NOT NULL,"
    " size INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (key, digest))",
    "CREATE INDEX blob_by_time ON blob (at)",
    "CREATE TABLE version_file (version_id INTEGER NOT NULL REFERENCES version, path TEXT NOT NULL,"
    " key TEXT NOT NULL, digest TEXT NOT NULL, PRIMARY KEY (version_id, path),"
    " FOREIGN KEY (key, digest) REFERENCES blob)",
    "CREATE INDEX version_file_of_blob ON version_file (digest, key)",
    # All files of a version as one zip file. It is made once, so every process has the same bytes, for ever.
    "CREATE TABLE archive (version_id INTEGER NOT NULL PRIMARY KEY REFERENCES version, digest TEXT NOT NULL,"
    " data BLOB NOT NULL)",
    "CREATE TABLE channel (skill_id INTEGER NOT NULL REFERENCES skill, name TEXT NOT NULL,"
    " version_id INTEGER NOT NULL REFERENCES version, PRIMARY KEY (skill_id, name))",
    "CREATE INDEX channel_of_version ON channel (version_id)",
    # ``state``: open, approved, declined, or replaced by a newer request or the end of the version.
    "CREATE TABLE review (number INTEGER NOT NULL PRIMARY KEY, key TEXT NOT NULL, skill_id INTEGER NOT NULL"
    " REFERENCES skill, channel TEXT NOT NULL, version_id INTEGER NOT NULL REFERENCES version,"
    " asked_by TEXT NOT NULL, askers TEXT NOT NULL, asked_at REAL NOT NULL, state TEXT NOT NULL, decided_by TEXT)",
    "CREATE INDEX review_open ON review (key, number) WHERE state = 'open'",
    "CREATE TABLE served (path TEXT NOT NULL PRIMARY KEY, key TEXT NOT NULL, skill_id INTEGER NOT NULL UNIQUE,"
    " name TEXT NOT NULL, description TEXT NOT NULL, public INTEGER NOT NULL, listed INTEGER NOT NULL,"
    " document BLOB NOT NULL)",
    "CREATE INDEX served_listed ON served (path) WHERE listed = 1",
    "CREATE INDEX served_public ON served (path) WHERE listed = 1 AND public = 1",
    "CREATE INDEX served_of_namespace ON served (key, path) WHERE listed = 1",
    "CREATE INDEX served_by_name ON served (name, path) WHERE listed = 1",
    "CREATE INDEX served_public_by_name ON served (name, path) WHERE listed = 1 AND public = 1",
    "CREATE INDEX served_of_namespace_by_name ON served (key, name, path) WHERE listed = 1",
    "CREATE TABLE token (id TEXT NOT NULL PRIMARY KEY, secret_digest TEXT NOT NULL UNIQUE, name TEXT NOT NULL,"
    " subject TEXT NOT NULL, key TEXT, actions TEXT, expires_at REAL, created_by TEXT NOT NULL,"
    " created_at REAL NOT NULL, last_used REAL, is_admin INTEGER NOT NULL)",
    "CREATE INDEX token_of_subject ON token (subject)",
    "CREATE INDEX token_by_end ON token (expires_at)",
    "CREATE TABLE publisher (number INTEGER NOT NULL PRIMARY KEY, key TEXT NOT NULL REFERENCES namespace,"
    " issuer TEXT NOT NULL, claims TEXT NOT NULL, role TEXT NOT NULL)",
    "CREATE INDEX publisher_of_issuer ON publisher (issuer)",
    "CREATE TABLE change (number INTEGER NOT NULL PRIMARY KEY, at REAL NOT NULL, actor TEXT NOT NULL,"
    " address TEXT NOT NULL, what TEXT NOT NULL, key TEXT NOT NULL, path TEXT NOT NULL, version TEXT NOT NULL,"
    " facts TEXT NOT NULL)",
    "CREATE INDEX change_of_namespace ON change (key, number)",
    "INSERT INTO clock (one, number) VALUES (1, 0)",
)

_REFUSALS: Final = (
    _Refusal("change", "UPDATE"),
    _Refusal("change", "DELETE"),
    _Refusal("clock", "DELETE"),
    _Refusal("clock", "UPDATE", "NEW.number <= OLD.number"),
    _Refusal("namespace", "DELETE"),
    _Refusal("namespace", "UPDATE OF key, skeleton"),
    _Refusal("skill", "DELETE"),
    _Refusal("skill", "UPDATE OF id, key, path"),
    _Refusal("version", "DELETE"),
    _Refusal("version", "UPDATE OF id, skill_id, version, digest, published_at, published_by, publishers, source"),
    _Refusal("version", "UPDATE OF manifest", "OLD.deleted IS NOT NULL OR NEW.deleted IS NULL"),
    _Refusal("version", "UPDATE OF deleted", "OLD.deleted IS NOT NULL"),
    _Refusal("version", "UPDATE OF approved", "NEW.approved < OLD.approved"),
    _Refusal("version_file", "UPDATE"),
    _Refusal(
        "version_file",
        "DELETE",
        "{function}EXISTS (SELECT 1 FROM version WHERE id = OLD.version_id AND deleted IS NULL)",
    ),
    _Refusal("blob", "UPDATE OF key, digest, data"),
    _Refusal("archive", "UPDATE"),
    _Refusal(
        "archive",
        "DELETE",
        "{function}EXISTS (SELECT 1 FROM version WHERE id = OLD.version_id AND deleted IS NULL)",
    ),
    _Refusal("review", "UPDATE", "OLD.state != 'open'"),
    _Refusal("review", "DELETE"),
)
# In SQLite, INSERT OR REPLACE removes a row without a trigger for DELETE.
_KEYS: Final = {
    "change": "number = NEW.number",
    "clock": "one = NEW.one",
    "namespace": "key = NEW.key",
    "skill": "id = NEW.id OR path = NEW.path",
    "version": "id = NEW.id OR (skill_id = NEW.skill_id AND version = NEW.version)",
    "version_file": "version_id = NEW.version_id AND path = NEW.path",
    "archive": "version_id = NEW.version_id",
    "review": "number = NEW.number",
}


# Who signed in to the pages, by the digest of the secret in the cookie. A session ends with its token.
_SESSIONS: Final = (
    "CREATE TABLE browser_session (secret_digest TEXT NOT NULL PRIMARY KEY,"
    " token_id TEXT NOT NULL REFERENCES token ON DELETE CASCADE, expires_at REAL NOT NULL)",
    "CREATE INDEX browser_session_of_token ON browser_session (token_id)",
    "CREATE INDEX browser_session_by_end ON browser_session (expires_at)",
)


def _sqlite() -> Migration:
    triggers = [
        f"CREATE TRIGGER {refusal.table}_refusal_{number} BEFORE {refusal.change} ON {refusal.table} FOR EACH ROW"
        + (f" WHEN {refusal.when.replace('{function}', '')}" if refusal.when else "")
        + f" BEGIN SELECT RAISE(ABORT, 'a {refusal.table} does not change'); END"
        for number, refusal in enumerate(_REFUSALS)
    ]
    triggers += [
        f"CREATE TRIGGER {table}_is_not_replaced BEFORE INSERT ON {table}"
        f" WHEN EXISTS (SELECT 1 FROM {table} WHERE {key})"
        f" BEGIN SELECT RAISE(ABORT, 'a {table} does not change'); END"
        for table, key in _KEYS.items()
    ]
    return (
        *(table.replace("{id}", "INTEGER PRIMARY KEY AUTOINCREMENT") for table in _TABLES),
        # The words come separated by spaces and without accents; ``@`` and ``-`` occur in names of namespaces.
        "CREATE VIRTUAL TABLE served_words USING fts5 (words, detail = none, columnsize = 0,"
        " tokenize = \"unicode61 remove_diacritics 0 categories 'L* N* Co Mn Mc' tokenchars '@-'\")",
        *triggers,
    )


def _postgres() -> Migration:
    tables = [_postgres_types(table) for table in _TABLES]
    functions = [
        "CREATE FUNCTION registry_refuse() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'this row does not change'; END $$"
    ]
    triggers: list[str] = []
    for number, (table, change, when) in enumerate(_REFUSALS):
        function = "registry_refuse"
        if when.startswith("{function}"):  # a condition of a trigger cannot contain a query
            function = f"registry_refuse_{number}"
            functions.append(
                f"CREATE FUNCTION {function}() RETURNS trigger LANGUAGE plpgsql AS"
                f" $$ BEGIN IF {when.removeprefix('{function}')} THEN RAISE EXCEPTION 'this row does not change';"
                " END IF; RETURN OLD; END $$"
            )
            when = ""
        triggers.append(
            f"CREATE TRIGGER {table}_refusal_{number} BEFORE {change} ON {table} FOR EACH ROW"
            + (f" WHEN ({when})" if when else "")
            + f" EXECUTE FUNCTION {function}()"
        )
    triggers += [
        f"CREATE TRIGGER {table}_is_not_emptied BEFORE TRUNCATE ON {table} EXECUTE FUNCTION registry_refuse()"
        for table in sorted({refusal.table for refusal in _REFUSALS})
    ]
    return (
        *tables,
        "CREATE TABLE served_words (rowid BIGINT NOT NULL PRIMARY KEY, words TSVECTOR NOT NULL)",
        # With fast updates, a search would read all words since the last VACUUM one by one.
        "CREATE INDEX served_words_index ON served_words USING GIN (words) WITH (fastupdate = off)",
        *functions,
        *triggers,
    )


_TYPES = {
    "{id}": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    "TEXT": 'TEXT COLLATE "C"',
    "INTEGER": "BIGINT",
    "REAL": "DOUBLE PRECISION",
    "BLOB": "BYTEA",
}


def _postgres_types(table: str) -> str:
    return re.sub(r"\{id\}|\b(?:TEXT|INTEGER|REAL|BLOB)\b", lambda match: _TYPES[match[0]], table)


SCHEMA: Final = Schema(
    "registry", b"skwg", (_sqlite(), _SESSIONS), (_postgres(), tuple(_postgres_types(each) for each in _SESSIONS))
)
"""Opened with ``SqliteDatabase`` or ``PostgresDatabase``."""
