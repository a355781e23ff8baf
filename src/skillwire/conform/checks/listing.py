"""``skills/list``: its pages, its cursors, and its entries (L1, L3, and what ``entries.py`` looks at)."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING

from skillwire.client.shapes import as_object
from skillwire.conform.checks.asking import NO_CURSOR, expect_refusal, walk
from skillwire.conform.checks.entries import check_entries
from skillwire.wire.extension import SKILLS_LIST

if TYPE_CHECKING:
    from skillwire.conform.checks.asking import Paged, Run


async def check_listing(run: Run) -> None:
    """Walk the listing; ``run.entries`` are the entries that can be worked with."""
    paged = await walk(run, "L1", "L3", SKILLS_LIST, "skills")
    uris = Counter(json.dumps(as_object(item).get("uri")) for item, _ in paged.items)
    twice = [uri for uri, count in uris.items() if count > 1]
    if paged.items:
        run.ledger.expect("L3", not twice, f"skills/list has an entry twice: {', '.join(twice):.300}")
    run.entries = check_entries(run, paged.items)
    if run.ledger.wants("L3"):
        await _check_cursors(run, paged)
    if not paged.items and paged.is_whole:
        run.ledger.unchecked(
            ("E1", "E2", "E3", "E4", "U1", "U3", "F1", "F2", "G1", "R1", "R2"),
            "the listing is empty, which proves nothing; serve a skill and run again",
        )


async def _check_cursors(run: Run, paged: Paged) -> None:
    if paged.cursors:
        cursor, first = paged.cursors[0]
        again = await run.ask(SKILLS_LIST, cursor=cursor)
        before, now = ((page.result or {}).get("skills") for page in (first, again))
        run.ledger.expect("L3", before == now, "the same cursor gave another page the second time", again)
    await expect_refusal(run, "L3", "text that is no cursor", SKILLS_LIST, cursor=NO_CURSOR)
    await expect_refusal(run, "L3", "a number as its cursor", SKILLS_LIST, cursor=42)
