"""``skills/get``: every skill that is listed, and a refusal of everything else (G1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.conform.checks.asking import NOWHERE, expect_refusal
from skillwire.skill.uri import SKILL_MD
from skillwire.wire.extension import SKILLS_GET

if TYPE_CHECKING:
    from skillwire.conform.checks.asking import Listed, Run


async def check_getting(run: Run) -> None:
    """Get what is listed, then what is not there."""
    for skill in run.entries[: run.bounds.files]:
        await _check_get(run, skill)
    await expect_refusal(run, "G1", "an unknown URI", SKILLS_GET, uri=NOWHERE)
    await expect_refusal(run, "G1", "no 'uri'", SKILLS_GET)
    await expect_refusal(run, "G1", "a number as its 'uri'", SKILLS_GET, uri=42)
    supporting = _supporting(run.entries)
    if supporting is not None:
        await expect_refusal(run, "G1", "the URI of a supporting file", SKILLS_GET, uri=supporting)


async def _check_get(run: Run, skill: Listed) -> None:
    exchange = await run.ask(SKILLS_GET, uri=skill.entry.uri)
    got = (exchange.result or {}).get("skill")
    if got is None:
        run.ledger.broken(
            "G1", f"{skill.entry.uri!r:.300} is listed, and getting it gave {exchange.said}", exchange
        )
        return
    paged = "nextCursor" in (exchange.result or {})
    run.ledger.expect("G1", not paged, "skills/get gives a 'nextCursor': one skill has no pages", exchange)
    run.ledger.expect(
        "G1",
        got == skill.raw,
        f"{skill.entry.uri!r:.300} is listed as one thing and got as another",
        exchange,
        {"listed": skill.raw, "got": got},
    )


def _supporting(entries: list[Listed]) -> str | None:
    """A file that is no ``SKILL.md``."""
    files = (file.uri for skill in entries for file in skill.entry.files)
    return next((uri for uri in files if not uri.endswith(f"/{SKILL_MD}")), None)
