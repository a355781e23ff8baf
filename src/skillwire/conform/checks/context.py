"""What every family of checks uses: the session, the ledger, the entries, and a walk through paged lists.

A wrong page counts against one rule, a wrong cursor against another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.skill.uri import parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skillwire.conform.report import Exchange, Ledger
    from skillwire.conform.session import Bounds, RawSession
    from skillwire.skill import SkillEntry
    from skillwire.skill.uri import SkillUri

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
RESOURCE_NOT_FOUND = -32002  # the code for resources in the specification of the handshake era
NOWHERE = "skill://skillwire-conform-asks-for-nothing/SKILL.md"
NO_CURSOR = "skillwire-conform: not a cursor"


class ListedSkill(NamedTuple):
    """A valid entry: parsed, raw, and the exchange it came in."""

    entry: SkillEntry
    raw: dict[str, Any]
    exchange: Exchange

    @property
    def root(self) -> SkillUri:
        """The directory of the skill."""
        return skill_root(parse_uri(self.entry.uri))


@dataclass(slots=True)
class ServerRun:
    """The checks of one server in one era."""

    session: RawSession
    ledger: Ledger
    bounds: Bounds
    capabilities: dict[str, Any]
    entries: list[ListedSkill] = field(default_factory=list[ListedSkill])
    written: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])  # by SKILL.md

    async def ask(self, method: str, **params: Any) -> Exchange:
        """Send one request."""
        return await self.session.ask(method, **params)


class PagedList(NamedTuple):
    """All pages of a list: each item with its exchange, and the cursors that were followed."""

    items: list[tuple[Any, Exchange]]
    cursors: list[tuple[str, Exchange]]  # each with the exchange that used it
    is_whole: bool


async def walk(run: ServerRun, rule: str, cursor_rule: str, method: str, key: str, **params: Any) -> PagedList:
    """Fetch every page of a list within the bounds. A wrong page counts against ``rule``."""
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
        message = f"{method} refuses its own cursor" if refused else f"{method} returned {_lacking(exchange, key)}"
        if not run.ledger.expect(cursor_rule if refused else rule, isinstance(found, list), message, exchange):
            return PagedList(items, cursors, False)
        items += [(item, exchange) for item in found or ()]
        cursor = (exchange.result or {}).get("nextCursor")
        if cursor is None:
            return PagedList(items, cursors, True)
        if not isinstance(cursor, str):
            run.ledger.failed(rule, f"'nextCursor' of {method} is not a string", exchange, cursor)
            return PagedList(items, cursors, False)
        if any(cursor == seen for seen, _ in cursors):
            run.ledger.failed(cursor_rule, f"{method} returns the same cursor a second time", exchange, cursor)
            return PagedList(items, cursors, False)
        if len(items) > run.bounds.entries:
            break
    run.ledger.warned(cursor_rule, f"{method} did not end after {len(items):,} items; the rest was not checked")
    return PagedList(items, cursors, False)


def _lacking(exchange: Exchange, key: str) -> str:
    return f"no '{key}' list" if exchange.result is not None else exchange.summary


async def expect_refusal(run: ServerRun, rule: str, what: str, method: str, **params: Any) -> None:
    """Check that the server refuses the request with -32602."""
    exchange = await run.ask(method, **params)
    run.ledger.expect(
        rule,
        exchange.code == INVALID_PARAMS,
        f"{method} with {what} returned {exchange.summary} instead of error {INVALID_PARAMS}",
        exchange,
    )
