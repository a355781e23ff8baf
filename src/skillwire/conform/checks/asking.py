"""What every family of checks works with: the conversation, the ledger, the entries. And listings, page by page.

A page that is wrong is held against one rule, a cursor that is wrong against another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.skill.uri import parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.conform.evidence import Exchange
    from skillwire.conform.outcome import Ledger
    from skillwire.conform.session import Bounds, Session
    from skillwire.skill import SkillEntry
    from skillwire.skill.uri import SkillUri

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
RESOURCE_NOT_FOUND = -32002  # what the handshake era's specification says of resources
NOWHERE = "skill://skillwire-conform-asks-for-nothing/SKILL.md"
NO_CURSOR = "skillwire-conform: no listing gave this"


class Listed(NamedTuple):
    """An entry that can be worked with: as it was parsed, as it came, and how."""

    entry: SkillEntry
    raw: dict[str, Any]
    exchange: Exchange

    @property
    def root(self) -> SkillUri:
        """The skill's directory."""
        return skill_root(parse_uri(self.entry.uri))


@dataclass(slots=True)
class Run:
    """One era of one server."""

    session: Session
    ledger: Ledger
    bounds: Bounds
    capabilities: dict[str, Any]
    entries: list[Listed] = field(default_factory=list[Listed])
    written: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])  # by SKILL.md

    async def ask(self, method: str, **params: Any) -> Exchange:
        """One request."""
        return await self.session.ask(method, **params)


class Paged(NamedTuple):
    """What a listing gave: each item with the exchange it came in, and the cursors that led on."""

    items: list[tuple[Any, Exchange]]
    cursors: list[tuple[str, Exchange]]  # each with the exchange that it led to
    is_whole: bool


async def walk(run: Run, rule: str, cursor_rule: str, method: str, key: str, **params: Any) -> Paged:
    """Every page of a listing, as far as the bounds go. What is wrong with a page is held against ``rule``."""
    items: list[tuple[Any, Exchange]] = []
    cursors: list[tuple[str, Exchange]] = []
    cursor: Any = None
    for page in range(run.bounds.pages):
        given = params if page == 0 else {**params, "cursor": cursor}
        exchange = await run.ask(method, **given)
        if page:
            cursors.append((cursor, exchange))
        found = (exchange.result or {}).get(key)
        refused = page > 0 and exchange.is_error
        message = (
            f"{method} refuses the cursor that it gave" if refused else f"{method} gave {_lacking(exchange, key)}"
        )
        if not run.ledger.expect(cursor_rule if refused else rule, isinstance(found, list), message, exchange):
            return Paged(items, cursors, False)
        items += [(item, exchange) for item in found or ()]
        cursor = (exchange.result or {}).get("nextCursor")
        if cursor is None:
            return Paged(items, cursors, True)
        if not isinstance(cursor, str):
            run.ledger.broken(rule, f"'nextCursor' of {method} is not text", exchange, cursor)
            return Paged(items, cursors, False)
        if any(cursor == seen for seen, _ in cursors):
            run.ledger.broken(cursor_rule, f"{method} gives a cursor a second time, for ever", exchange, cursor)
            return Paged(items, cursors, False)
        if len(items) > run.bounds.entries:
            break
    run.ledger.doubtful(
        cursor_rule, f"{method} had not ended after {len(items):,} items; nothing beyond them was looked at"
    )
    return Paged(items, cursors, False)


def _lacking(exchange: Exchange, key: str) -> str:
    return f"no list called '{key}'" if exchange.result is not None else exchange.said


async def expect_refusal(run: Run, rule: str, what: str, method: str, **params: Any) -> None:
    """The request has to be refused with -32602."""
    exchange = await run.ask(method, **params)
    run.ledger.expect(
        rule,
        exchange.code == INVALID_PARAMS,
        f"{method} with {what} gave {exchange.said} instead of the error {INVALID_PARAMS}",
        exchange,
    )
