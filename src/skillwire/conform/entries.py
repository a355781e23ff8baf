"""Checks of ``skills/list``, ``skills/get`` and the entries in them (L1, L3, G1, E1-E6, U1, U3, U7, F2, F3).

An entry that breaks a rule counts against that rule and is not used further, so that one fault is one finding.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from skillwire.client.bounds import as_list, as_object
from skillwire.conform.server_run import NO_CURSOR, NOWHERE, ListedSkill
from skillwire.errors import FormatError
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.skill.entry import parse_entry
from skillwire.skill.frontmatter import SkillDocument, check_frontmatter
from skillwire.skill.uri import SKILL_MD, parse_uri
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST

if TYPE_CHECKING:
    from skillwire.conform.report import Exchange, Ledger
    from skillwire.conform.server_run import ServerRun
    from skillwire.skill import SkillEntry

_URI = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+\Z")  # RFC 3986
_ENTRY_RULES = ("E1", "E2", "U1", "U3")  # an entry that can be parsed keeps these rules
_FILE_RULES = ("E3", "E4")


async def check_listing(run: ServerRun) -> None:
    """Fetch the whole list, check it, and set ``run.entries`` to the valid entries."""
    ledger, paged = run.ledger, await run.walk("L1", SKILLS_LIST, "skills", cursor_rule="L3")
    uris = Counter(json.dumps(as_object(item).get("uri")) for item, _ in paged.items)
    twice = ", ".join(uri for uri, count in uris.items() if count > 1)
    if paged.items:
        ledger.expect("L3", not twice, f"skills/list returns an entry twice: {twice:.300}")
    checked = (_check_entry(ledger, item, exchange) for item, exchange in paged.items)
    run.entries = [skill for skill in checked if skill is not None]
    _check_nested(ledger, run.entries)
    if ledger.includes("L3"):
        if paged.cursors:
            cursor, first = paged.cursors[0]
            again = await run.ask(SKILLS_LIST, cursor=cursor)
            before, now = ((page.result or {}).get("skills") for page in (first, again))
            ledger.expect("L3", before == now, "the same cursor returned another page the second time", again)
        await run.expect_refusal("L3", "an unknown cursor", SKILLS_LIST, cursor=NO_CURSOR)
        await run.expect_refusal("L3", "a number as the cursor", SKILLS_LIST, cursor=42)
    if not paged.items and paged.is_whole:
        rules = ("E1", "E2", "E3", "E4", "U1", "U3", "F1", "F2", "G1", "R1", "R2")
        ledger.not_checked(rules, "the list is empty; serve a skill and run again")


async def check_get(run: ServerRun) -> None:
    """Get every listed skill, then check that everything else is refused."""
    for skill in run.entries[: run.bounds.files]:
        uri, exchange = skill.entry.uri, await run.ask(SKILLS_GET, uri=skill.entry.uri)
        result = exchange.result or {}
        got = result.get("skill")
        if got is None:
            message = f"{uri!r:.300} is listed, but skills/get returned {exchange.summary}"
            run.ledger.failed("G1", message, exchange)
            continue
        message = "skills/get returns a 'nextCursor', but one skill has no pages"
        run.ledger.expect("G1", "nextCursor" not in result, message, exchange)
        message = f"{uri!r:.300} differs between skills/list and skills/get"
        run.ledger.expect("G1", got == skill.raw, message, exchange, {"listed": skill.raw, "got": got})
    await run.expect_refusal("G1", "an unknown URI", SKILLS_GET, uri=NOWHERE)
    await run.expect_refusal("G1", "no 'uri'", SKILLS_GET)
    await run.expect_refusal("G1", "a number as the 'uri'", SKILLS_GET, uri=42)
    files = (file.uri for skill in run.entries for file in skill.entry.files)
    supporting = next((uri for uri in files if not uri.endswith(f"/{SKILL_MD}")), None)
    if supporting is not None:
        await run.expect_refusal("G1", "the URI of a supporting file", SKILLS_GET, uri=supporting)


def _check_entry(ledger: Ledger, item: Any, exchange: Exchange) -> ListedSkill | None:
    uri = as_object(item).get("uri")
    named = f"{uri!r:.300}" if isinstance(uri, str) else "an entry without a URI"
    try:
        entry, kept = parse_entry(item), (*_ENTRY_RULES, "E2b")
    except FormatError as error:
        older = _older(item)
        if older is None:
            ledger.failed(error.rule, f"{named}: {error.message}", exchange, item)
            return None
        ledger.failed("E2b", f"{named} has no sizes", exchange, item)
        entry, kept = older, _ENTRY_RULES
    for rule in (*kept, *(_FILE_RULES if not entry.is_dynamic else ())):
        ledger.passed(rule, exchange)
    _check_frontmatter(ledger, entry, exchange)
    bad = [uri for uri in (entry.uri, *(file.uri for file in entry.files)) if not _URI.match(uri)]
    message = f"{', '.join(map(repr, bad)):.300} has unencoded characters"
    ledger.expect("U7", not bad, message, exchange, bad or None)
    if not entry.is_dynamic:
        files, size = len(entry.files), sum(file.size or 0 for file in entry.files)
        if files > DEFAULT_LIMITS.skill_resources or size > DEFAULT_LIMITS.skill_bytes:
            message = f"{entry.uri!r:.300} has {files:,} files and {size / MIB:.1f} MiB: hosts may decline it"
            ledger.warned("E6", message, exchange)
        else:
            ledger.passed("E6", exchange)
    return ListedSkill(entry, as_object(item), exchange)


def _older(item: Any) -> SkillEntry | None:
    """E2b: an entry of the older generation, whose files have digests but no sizes."""
    if any("size" in as_object(file) for file in as_list(as_object(item).get("resources"))):
        return None
    try:
        return parse_entry(item, sized=False)
    except FormatError:
        return None


def _check_frontmatter(ledger: Ledger, entry: SkillEntry, exchange: Exchange) -> None:
    """A violation of F2 is a failure, one of F3 a warning."""
    document = SkillDocument(entry.frontmatter, "", 1, {})
    problems = list(check_frontmatter(document, entry.root.segments[-1], entry.uri))
    for problem in problems:
        record = ledger.failed if problem.refuses else ledger.warned
        record(problem.rule, f"{entry.uri!r:.300}: {problem.message}", exchange, dict(entry.frontmatter))
    for rule in {"F2", "F3"} - {problem.rule for problem in problems}:
        ledger.passed(rule, exchange)


def _check_nested(ledger: Ledger, listed: list[ListedSkill]) -> None:
    """E4: an entry also lists the files of the skills nested in it."""
    by_root = {skill.root: skill for skill in listed}
    for inner in listed:
        for root in inner.root.parent.upwards():
            outer = by_root.get(root)
            if outer is None or outer.entry.is_dynamic or inner.entry.is_dynamic:
                continue
            known = {parse_uri(file.uri) for file in outer.entry.files}
            missing = ", ".join(file.uri for file in inner.entry.files if parse_uri(file.uri) not in known)
            message = f"{outer.entry.uri!r:.200} does not list {missing:.300} of the skill inside it"
            ledger.expect("E4", not missing, message, outer.exchange, outer.raw)
