"""The entries of a listing as they came: their fields, files and URIs (E1-E6, U1, U3, U7, F2).

An entry that breaks a rule is held against that rule and not worked with any further, so that one fault is one
finding.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from skillwire.client.shapes import as_list, as_object
from skillwire.conform.checks.asking import Listed
from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.skill.frontmatter import SkillDocument, check_frontmatter
from skillwire.skill.received import parse_entry
from skillwire.skill.uri import is_within, parse_uri, skill_root

if TYPE_CHECKING:
    from skillwire.conform.checks.asking import Run
    from skillwire.conform.evidence import Exchange
    from skillwire.conform.outcome import Ledger
    from skillwire.skill import SkillEntry

_URI = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+\Z")  # RFC 3986
_HELD = ("E1", "E2", "U1", "U3")  # whatever can be parsed keeps these
_FILES_HELD = ("E3", "E4")


def check_entries(run: Run, items: list[tuple[Any, Exchange]]) -> list[Listed]:
    """Every item of a listing; those that can be worked with are returned."""
    listed = [found for item, exchange in items if (found := _check_entry(run.ledger, item, exchange)) is not None]
    _check_nested(run.ledger, listed)
    return listed


def _check_entry(ledger: Ledger, item: Any, exchange: Exchange) -> Listed | None:
    try:
        entry, held = parse_entry(item), (*_HELD, "E2b")
    except FormatError as error:
        older = _older(item)
        if older is None:
            ledger.broken(error.rule, f"{_named(item)}: {error.message}", exchange, item)
            return None
        ledger.broken("E2b", f"{_named(item)} has no sizes", exchange, item)
        entry, held = older, _HELD
    for rule in (*held, *(_FILES_HELD if not entry.is_dynamic else ())):
        ledger.held(rule, exchange)
    _check_format(ledger, entry, exchange)
    _check_uris(ledger, entry, exchange)
    _check_size(ledger, entry, exchange)
    return Listed(entry, as_object(item), exchange)


def _older(item: Any) -> SkillEntry | None:
    """E2b: an entry whose files have digests and no sizes; right otherwise."""
    if any("size" in as_object(file) for file in as_list(as_object(item).get("resources"))):
        return None
    try:
        return parse_entry(item, sized=False)
    except FormatError:
        return None


def _check_format(ledger: Ledger, entry: SkillEntry, exchange: Exchange) -> None:
    """F2 is a reason not to serve a skill, F3 one to tell its author."""
    document = SkillDocument(entry.frontmatter, "", 1, {})
    problems = list(check_frontmatter(document, skill_root(parse_uri(entry.uri)).segments[-1], entry.uri))
    for problem in problems:
        tell = ledger.broken if problem.refuses else ledger.doubtful
        tell(problem.rule, f"{entry.uri!r:.300}: {problem.message}", exchange, dict(entry.frontmatter))
    for rule in {"F2", "F3"} - {problem.rule for problem in problems}:
        ledger.held(rule, exchange)


def _check_uris(ledger: Ledger, entry: SkillEntry, exchange: Exchange) -> None:
    bad = [uri for uri in (entry.uri, *(file.uri for file in entry.files)) if not _URI.match(uri)]
    ledger.expect(
        "U7", not bad, f"{', '.join(map(repr, bad)):.300} has characters that a URI encodes", exchange, bad or None
    )


def _check_size(ledger: Ledger, entry: SkillEntry, exchange: Exchange) -> None:
    if entry.is_dynamic:
        return
    files, size = len(entry.files), sum(file.size or 0 for file in entry.files)
    if files > DEFAULT_LIMITS.skill_resources or size > DEFAULT_LIMITS.skill_bytes:
        ledger.doubtful(
            "E6",
            f"{entry.uri!r:.300} has {files:,} files and {size / MIB:.1f} MiB: hosts may decline it",
            exchange,
        )
    else:
        ledger.held("E6", exchange)


def _check_nested(ledger: Ledger, listed: list[Listed]) -> None:
    """E4: what is below a skill's directory is the skill's, also if it is a skill of its own."""
    by_root = {skill.root: skill for skill in listed}
    for inner in listed:
        place = inner.root
        for depth in range(1, len(place.segments)):
            outer = by_root.get(type(place)(place.scheme, place.segments[:depth]))
            if outer is None or outer.entry.is_dynamic or inner.entry.is_dynamic:
                continue
            known = {parse_uri(file.uri) for file in outer.entry.files}
            missing = [file.uri for file in inner.entry.files if parse_uri(file.uri) not in known]
            ledger.expect(
                "E4",
                not missing and is_within(outer.root, place),
                f"{outer.entry.uri!r:.200} does not list {', '.join(missing):.300} of the skill inside it",
                outer.exchange,
                outer.raw,
            )


def _named(item: Any) -> str:
    uri = as_object(item).get("uri")
    return f"{uri!r:.300}" if isinstance(uri, str) else "an entry without a URI"
