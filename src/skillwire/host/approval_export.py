"""Export and import of approvals as a JSON document (A1).

An imported document is untrusted. All of it is checked, including the fingerprints, before any of it is stored. An
approval is stored only for the origin, the skill and the content that it was given for. An import does not
override a decision that was made here about the same content: a denial, a revocation, or a revoked grant.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from skillwire.amounts import utc_text
from skillwire.errors import FormatError, SkillwireError
from skillwire.host.approvals import ASKED_TO, note_facts
from skillwire.skill.approval import Approval, file_digests, fingerprint, frontmatter_digest, make_contents
from skillwire.skill.entry import is_digest, parse_entry
from skillwire.skill.uri import root_of
from skillwire.store.records import DECISIONS, LogLine
from skillwire.store.store import newest_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillwire.skill.approval import Contents
    from skillwire.store.store import Store

LARGEST_EXPORT = 64 * 1024 * 1024
_FORMAT = 2
_LATEST = 4_102_444_800  # the year 2100


class SkippedApproval(NamedTuple):
    """An approval that was not imported, and the reason."""

    approval: Approval
    reason: str


def approvals_as_document(approvals: Iterable[Approval]) -> dict[str, Any]:
    """The export of ``approvals``."""
    return {"version": _FORMAT, "approvals": [_document(approval) for approval in approvals]}


def parse_approvals(data: bytes) -> Sequence[Approval]:
    """The approvals of an export; ``FormatError`` if anything in it is invalid."""
    try:
        document: Any = json.loads(data) if len(data) <= LARGEST_EXPORT else None
        if document["version"] != _FORMAT:
            raise _invalid("unknown version")
        return [_parse(item) for item in cast("list[Any]", document["approvals"])]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _invalid("it does not have the JSON structure of an export") from error


async def import_approvals(
    store: Store, wanted: Iterable[Approval], *, by: str, note: str = "", user: str = ""
) -> list[SkippedApproval]:
    """Store each approval for the same origin, skill and content; returns those that were skipped.

    The log records ``by`` and ``user``, who imported it, and the person who approved it originally.
    """
    facts = note_facts(note, user)
    known, skipped = {origin.label for origin in await store.origins()}, list[SkippedApproval]()
    for approval in wanted:
        if approval.origin not in known and await store.entries(approval.origin) is None:
            reason = "unknown origin"
        else:
            reason = await _import(store, approval, by, facts)
        if reason:
            skipped.append(SkippedApproval(approval, reason))
    return skipped


def _document(approval: Approval) -> dict[str, Any]:
    return {
        "origin": approval.origin,
        "uri": approval.uri,
        "by": approval.by,
        "at": approval.at,
        "when": utc_text(approval.at),
        "fingerprint": approval.fingerprint,
        "grants": sorted(approval.grants),
        "frontmatter": frontmatter_digest(approval.contents),
        "contents": [
            {"uri": uri, "digest": digest} for uri, digest in sorted(file_digests(approval.contents).items())
        ],
    }


async def _import(store: Store, approval: Approval, by: str, more: Mapping[str, str]) -> str:
    """Store an approval; returns the reason if it is skipped, and an empty text if not."""
    # Read first, so that ``put_approval`` notices every decision that is made after this.
    decided = await store.decisions(approval.origin, approval.uri)
    before = await store.approval(approval.origin, approval.uri)
    facts = {
        "kind": "import",
        "from": approval.by,
        "fingerprint": approval.fingerprint,
        "grants": sorted(approval.grants),
        **more,
    }
    line = LogLine("approved", approval.origin, approval.uri, by, time.time(), facts)
    if before is None:
        return await _approve(store, approval, line, decided[0].number if decided else 0)
    if before.contents != approval.contents:
        return "other content is approved here"
    if before.grants >= approval.grants:
        return ""
    return await _grant(store, before, approval.grants, replace(line, what="granted"))


async def _approve(store: Store, approval: Approval, line: LogLine, after: int) -> str:
    """Store an approval, unless this content was declined or revoked here, or a decision came after ``after``."""
    newest = await newest_line(
        store,
        lambda known: _is_about(known, approval.fingerprint),
        origin=approval.origin,
        uri=approval.uri,
        what=DECISIONS,
    )
    if newest is not None and newest.what in ("denied", "revoked"):
        word = "declined" if newest.what == "denied" else "revoked"
        return f"this content was {word} here, by {newest.by!r:.80}"
    stored = await store.put_approval(approval, line, after=after)
    return "" if stored else "another decision was made here meanwhile"


async def _grant(store: Store, before: Approval, grants: frozenset[str], line: LogLine) -> str:
    """Add the imported grants to an approval, unless one of them was revoked here."""
    more = grants - before.grants
    taken = await newest_line(
        store,
        lambda known: not more.isdisjoint(known.facts.get("taken", ())),
        origin=before.origin,
        uri=before.uri,
        what=("granted",),
    )
    if taken is not None:
        grant = ", ".join(sorted(more.intersection(taken.facts["taken"])))
        return f"the grant {grant!r:.200} was revoked here, by {taken.by!r:.80}"
    changed = await store.change_grants(before, before.grants | grants, line)
    return "" if changed else "the approval here changed meanwhile"


def _is_about(line: LogLine, content: str) -> bool:
    """Whether a line is a person's decision about loading exactly this content."""
    facts = line.facts
    if line.by == "policy" or facts.get("kind", "load") not in ("load", "import"):
        return False
    if line.what != "revoked":
        return facts.get("fingerprint") == content
    if facts.get("why", ASKED_TO) != ASKED_TO:
        return False  # the host revoked it, because the content changed
    contents = facts.get("contents")  # older lines do not have it, so they may be about it
    return contents is None or fingerprint(frozenset(map(tuple, contents))) == content


def _parse(item: dict[str, Any]) -> Approval:
    grants = cast("list[str]", item["grants"] if isinstance(item["grants"], list) else [None])
    texts: list[Any] = [item["origin"], item["uri"], item["by"], *grants]
    if not all(isinstance(text, str) and text and text.isprintable() for text in texts):
        raise _invalid("a field is not a line of text")
    at = float(item["at"])
    if not (math.isfinite(at) and 0 <= at < _LATEST):
        raise _invalid("'at' is not a time")
    contents = _contents(item["uri"], item["contents"], item["frontmatter"])
    approval = Approval(item["origin"], item["uri"], contents, item["by"], at, frozenset(grants))
    if approval.fingerprint != item["fingerprint"]:
        raise _invalid(f"the contents of {approval.uri!r:.200} do not match its fingerprint")
    return approval


def _contents(uri: str, items: list[dict[str, Any]], frontmatter: object) -> Contents:
    """The files, checked like those of an entry: valid digests, all inside the skill, no duplicates."""
    if not is_digest(frontmatter):
        raise _invalid("'frontmatter' is not a digest")
    files = [{"uri": file["uri"], "digest": file["digest"]} for file in items]
    try:
        name = root_of(uri).segments[-1]
        entry = parse_entry(
            {"uri": uri, "frontmatter": {"name": name, "description": "-"}, "resources": files}, sized=False
        )
    except SkillwireError as error:
        raise _invalid(f"{uri!r:.200}: {error.message}") from error
    return make_contents(entry.uri, {file.uri: file.digest or "" for file in entry.files}, frontmatter)


def _invalid(reason: str) -> FormatError:
    return FormatError(
        "export-invalid",
        f"the file is not a valid export of approvals: {reason}; nothing was imported",
        "make an export: skillwire approvals list --json",
        rule="A1",
    )
