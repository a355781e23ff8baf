"""What a store on disk says to SQLite: statements, and how values become rows and come back. JSON is ASCII."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillwire.catalog.listing import entry_to_document
from skillwire.skill.approval import Approval
from skillwire.skill.entry import DYNAMIC, Partial, Resource, SkillEntry
from skillwire.store.contract import LogLine, SeenEntries, StoredOrigin

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillwire.skill.approval import Contents

APPROVALS = "SELECT origin, uri, contents, who, at, grants FROM approvals"
PUT_APPROVAL = (
    "INSERT OR REPLACE INTO approvals (origin, uri, contents, who, at, grants) VALUES (?, ?, ?, ?, ?, ?)"
)
REMOVE = "DELETE FROM approvals WHERE origin = ? AND uri = ?"
REMOVE_CONTENTS = f"{REMOVE} AND contents = ?"
REMOVE_EXACTLY = f"{REMOVE} AND contents = ? AND who = ? AND at = ? AND grants = ?"
CHANGE_GRANTS = (
    "UPDATE approvals SET grants = ?"
    " WHERE origin = ? AND uri = ? AND contents = ? AND who = ? AND at = ? AND grants = ?"
)
LINES = "SELECT what, origin, uri, who, at, facts, number FROM log"
LOG = "INSERT INTO log (what, origin, uri, who, at, facts) SELECT ?, ?, ?, ?, ?, ?"
NEWEST_OF = (
    "SELECT what, origin, uri, who, at, facts, number FROM log WHERE number IN (SELECT max(number) FROM log"
)
DECIDING = "what IN ('approved', 'denied', 'revoked', 'enabled')"  # as an index has it, so that it is used
DECISION = (
    f"{DECIDING} AND who != 'policy' AND coalesce(json_extract(facts, '$.kind'), 'load') IN ('load', 'import')"
)
_NEWEST = "SELECT coalesce(max(number), 0) FROM log"
NEWEST_DECISION = f"{_NEWEST} WHERE {DECISION} AND origin = ? AND uri = ?"
NEWEST_FACTS = "SELECT facts FROM log WHERE what = ? AND origin = ? AND uri = ? ORDER BY number DESC LIMIT 1"
NEWS = "SELECT number FROM news"
MORE_NEWS = "UPDATE news SET number = number + 1"


def holds(text: str | bytes, part: str | bytes) -> bool:
    """Whether a column has this part, in capitals or not, as Python sees it: SQLite knows ASCII only."""
    return unbound(part).casefold() in unbound(text).casefold()


def bound(values: Sequence[Any]) -> tuple[Any, ...]:
    """What a hostile server calls a skill may be no Unicode; it is logged all the same, as bytes."""
    return tuple(
        value.encode(errors="surrogatepass") if isinstance(value, str) and not _is_unicode(value) else value
        for value in values
    )


def unbound(value: Any) -> Any:
    """What ``bound`` was given."""
    return value.decode(errors="surrogatepass") if isinstance(value, bytes) else value


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def values_of(approval: Approval) -> tuple[Any, ...]:
    """A row of ``approvals``."""
    contents, grants = contents_as_text(approval.contents), json.dumps(sorted(approval.grants))
    return approval.origin, approval.uri, contents, approval.by, approval.at, grants


def contents_as_text(contents: Contents) -> str:
    """A1: the same text for the same set."""
    return json.dumps(sorted(contents))


def values_of_line(line: LogLine) -> tuple[Any, ...]:
    """A row of ``log``; it gets its number there."""
    return line.what, line.origin, line.uri, line.by, line.at, json.dumps(dict(line.facts))


def to_origin(label: str, settings: str, added_at: float) -> StoredOrigin:
    """From a row of ``origins``."""
    return StoredOrigin(label, json.loads(settings), added_at)


def to_approval(origin: str, uri: str, contents: str, who: str, at: float, grants: str) -> Approval:
    """From a row of ``approvals``."""
    pairs = frozenset((file, digest) for file, digest in json.loads(contents))
    return Approval(origin, uri, pairs, who, at, frozenset(json.loads(grants)))


def to_line(what: Any, origin: str, uri: str, who: str, at: float, facts: str, number: int) -> LogLine:
    """From a row of ``log``."""
    return LogLine(what, origin, uri, who, at, json.loads(facts), number)


PUT_ASKED = "INSERT OR REPLACE INTO asked_entries (label, uri, entry) VALUES (?, ?, ?)"


def asked_values(label: str, entry: SkillEntry) -> tuple[str, str, str]:
    """A row of ``asked_entries``."""
    return label, entry.uri, json.dumps(entry_to_document(entry), separators=(",", ":"))


def to_asked(entry: str) -> SkillEntry:
    """From a row of ``asked_entries``."""
    return to_entry(json.loads(entry))


def entries_as_text(entries: Iterable[SkillEntry]) -> str:
    """A listing for its column."""
    return json.dumps([entry_to_document(entry) for entry in entries], separators=(",", ":"))


def to_seen(entries: str, at: float, is_complete: int) -> SeenEntries:
    """From a row of ``entries``."""
    return SeenEntries(tuple(map(to_entry, json.loads(entries))), at, bool(is_complete))


def to_entry(document: dict[str, Any]) -> SkillEntry:
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
