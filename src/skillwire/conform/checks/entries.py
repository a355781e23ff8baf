"""Checks of ``skills/list``, ``skills/get`` and the entries in them (L1, L3, G1, E1-E6, U1, U3, U7, F2, F3).

An entry that breaks a rule counts against that rule and is not used further, so that one fault is one finding.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from skillwire.client.shapes import as_list, as_object
from skillwire.conform.checks.context import NO_CURSOR, NOWHERE, ListedSkill, expect_refusal, walk
from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.skill.entry import parse_entry
from skillwire.skill.frontmatter import SkillDocument, check_frontmatter
from skillwire.skill.uri import SKILL_MD, is_within, parse_uri, skill_root
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST

if TYPE_CHECKING:
    from skillwire.conform.checks.context import PagedList, ServerRun
    from skillwire.conform.report import Exchange, Ledger
    from skillwire.skill import SkillEntry

_URI = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+\Z")  # RFC 3986
_ENTRY_RULES = ("E1", "E2", "U1", "U3")  # an entry that can be parsed keeps these rules
_FILE_RULES = ("E3", "E4")


async def check_listing(run: ServerRun) -> None:
    """Fetch the whole list, check it, and set ``run.entries`` to the valid entries."""
    paged = await walk(run, "L1", "L3", SKILLS_LIST, "skills")
    uris = Counter(json.dumps(as_object(item).get("uri")) for item, _ in paged.items)
    twice = [uri for uri, count in uris.items() if count > 1]
    if paged.items:
        run.ledger.expect("L3", not twice, f"skills/list returns an entry twice: {', '.join(twice):.300}")
    run.entries = check_entries(run, paged.items)
    if run.ledger.includes("L3"):
        await _check_cursors(run, paged)
    if not paged.items and paged.is_whole:
        run.ledger.not_checked(
            ("E1", "E2", "E3", "E4", "U1", "U3", "F1", "F2", "G1", "R1", "R2"),
            "the list is empty; serve a skill and run again",
        )


async def _check_cursors(run: ServerRun, paged: PagedList) -> None:
    if paged.cursors:
        cursor, first = paged.cursors[0]
        again = await run.ask(SKILLS_LIST, cursor=cursor)
        before, now = ((page.result or {}).get("skills") for page in (first, again))
        run.ledger.expect("L3", before == now, "the same cursor returned another page the second time", again)
    await expect_refusal(run, "L3", "an unknown cursor", SKILLS_LIST, cursor=NO_CURSOR)
    await expect_refusal(run, "L3", "a number as the cursor", SKILLS_LIST, cursor=42)


async def check_get(run: ServerRun) -> None:
    """Get every listed skill, then check that everything else is refused."""
    for skill in run.entries[: run.bounds.files]:
        await _check_get(run, skill)
    await expect_refusal(run, "G1", "an unknown URI", SKILLS_GET, uri=NOWHERE)
    await expect_refusal(run, "G1", "no 'uri'", SKILLS_GET)
    await expect_refusal(run, "G1", "a number as the 'uri'", SKILLS_GET, uri=42)
    supporting = _supporting(run.entries)
    if supporting is not None:
        await expect_refusal(run, "G1", "the URI of a supporting file", SKILLS_GET, uri=supporting)


async def _check_get(run: ServerRun, skill: ListedSkill) -> None:
    exchange = await run.ask(SKILLS_GET, uri=skill.entry.uri)
    got = (exchange.result or {}).get("skill")
    if got is None:
        run.ledger.failed(
            "G1", f"{skill.entry.uri!r:.300} is listed, but skills/get returned {exchange.summary}", exchange
        )
        return
    paged = "nextCursor" in (exchange.result or {})
    run.ledger.expect("G1", not paged, "skills/get returns a 'nextCursor', but one skill has no pages", exchange)
    run.ledger.expect(
        "G1",
        got == skill.raw,
        f"{skill.entry.uri!r:.300} differs between skills/list and skills/get",
        exchange,
        {"listed": skill.raw, "got": got},
    )


def _supporting(entries: list[ListedSkill]) -> str | None:
    """The URI of a file that is not a ``SKILL.md``."""
    files = (file.uri for skill in entries for file in skill.entry.files)
    return next((uri for uri in files if not uri.endswith(f"/{SKILL_MD}")), None)


def check_entries(run: ServerRun, items: list[tuple[Any, Exchange]]) -> list[ListedSkill]:
    """Check every item of a list, and return the valid ones."""
    listed = [found for item, exchange in items if (found := _check_entry(run.ledger, item, exchange)) is not None]
    _check_nested(run.ledger, listed)
    return listed


def _check_entry(ledger: Ledger, item: Any, exchange: Exchange) -> ListedSkill | None:
    try:
        entry, kept = parse_entry(item), (*_ENTRY_RULES, "E2b")
    except FormatError as error:
        older = _older(item)
        if older is None:
            ledger.failed(error.rule, f"{_named(item)}: {error.message}", exchange, item)
            return None
        ledger.failed("E2b", f"{_named(item)} has no sizes", exchange, item)
        entry, kept = older, _ENTRY_RULES
    for rule in (*kept, *(_FILE_RULES if not entry.is_dynamic else ())):
        ledger.passed(rule, exchange)
    _check_format(ledger, entry, exchange)
    _check_uris(ledger, entry, exchange)
    _check_size(ledger, entry, exchange)
    return ListedSkill(entry, as_object(item), exchange)


def _older(item: Any) -> SkillEntry | None:
    """E2b: an entry of the older generation, whose files have digests but no sizes."""
    if any("size" in as_object(file) for file in as_list(as_object(item).get("resources"))):
        return None
    try:
        return parse_entry(item, sized=False)
    except FormatError:
        return None


def _check_format(ledger: Ledger, entry: SkillEntry, exchange: Exchange) -> None:
    """A violation of F2 is a failure, one of F3 a warning."""
    document = SkillDocument(entry.frontmatter, "", 1, {})
    problems = list(check_frontmatter(document, skill_root(parse_uri(entry.uri)).segments[-1], entry.uri))
    for problem in problems:
        record = ledger.failed if problem.refuses else ledger.warned
        record(problem.rule, f"{entry.uri!r:.300}: {problem.message}", exchange, dict(entry.frontmatter))
    for rule in {"F2", "F3"} - {problem.rule for problem in problems}:
        ledger.passed(rule, exchange)


def _check_uris(ledger: Ledger, entry: SkillEntry, exchange: Exchange) -> None:
    bad = [uri for uri in (entry.uri, *(file.uri for file in entry.files)) if not _URI.match(uri)]
    ledger.expect(
        "U7",
        not bad,
        f"{', '.join(map(repr, bad)):.300} has unencoded characters",
        exchange,
        bad or None,
    )


def _check_size(ledger: Ledger, entry: SkillEntry, exchange: Exchange) -> None:
    if entry.is_dynamic:
        return
    files, size = len(entry.files), sum(file.size or 0 for file in entry.files)
    if files > DEFAULT_LIMITS.skill_resources or size > DEFAULT_LIMITS.skill_bytes:
        ledger.warned(
            "E6",
            f"{entry.uri!r:.300} has {files:,} files and {size / MIB:.1f} MiB: hosts may decline it",
            exchange,
        )
    else:
        ledger.passed("E6", exchange)


def _check_nested(ledger: Ledger, listed: list[ListedSkill]) -> None:
    """E4: an entry also lists the files of the skills nested in it."""
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
