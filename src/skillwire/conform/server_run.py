"""One server in one era: requests, walks through paged lists, and the checks of every response (BASE, R4).

The cache fields of ``skills/list``, ``skills/get`` and directories belong to their own rules (L1, G1, D1).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from skillwire.client.bounds import as_object, as_size
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillwire.conform.report import Exchange, Ledger, Message
    from skillwire.conform.session import Bounds, RawSession
    from skillwire.skill import SkillEntry
    from skillwire.skill.uri import SkillUri

INVALID_PARAMS = -32602
METHOD_NOT_FOUND = -32601
NOWHERE = "skill://skillwire-conform-asks-for-nothing/SKILL.md"
NO_CURSOR = "skillwire-conform: not a cursor"

_CACHEABLE = {
    "skills/list": "L1",
    "skills/get": "G1",
    "resources/directory/read": "D1",
    "server/discover": "BASE",
    "resources/list": "BASE",
    "resources/read": "BASE",
    "resources/templates/list": "BASE",
    "tools/list": "BASE",
}
_STATELESS = ("resultType", "ttlMs", "cacheScope")
_META_KEY = re.compile(
    r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?)+/[A-Za-z0-9](?:.*)\Z"
)
_MAX_NODES = 20_000
_AUTHORS = ("frontmatter", "inputSchema", "outputSchema")  # authors choose the keys in these


class ListedSkill(NamedTuple):
    """A valid entry: parsed, raw, and the exchange it came in."""

    entry: SkillEntry
    raw: dict[str, Any]
    exchange: Exchange

    @property
    def root(self) -> SkillUri:
        """The directory of the skill."""
        return self.entry.root


class PagedList(NamedTuple):
    """All pages of a list: each item with its exchange, and the cursors that were followed."""

    items: list[tuple[Any, Exchange]]
    cursors: list[tuple[str, Exchange]]  # each with the exchange that used it
    is_whole: bool


@dataclass(slots=True)
class ServerRun:
    """The checks of one server in one era."""

    session: RawSession
    ledger: Ledger
    bounds: Bounds
    capabilities: dict[str, Any]
    entries: list[ListedSkill] = field(default_factory=list[ListedSkill])
    written: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, "Mapping[str, Any]"])  # by SKILL.md

    @property
    def settings(self) -> Any:
        """The declared settings of the extension; ``None`` if it is not declared."""
        return as_object(self.capabilities.get("extensions")).get(EXTENSION_ID)

    @property
    def is_extension(self) -> bool:
        """Whether the server declares the extension."""
        return EXTENSION_ID in as_object(self.capabilities.get("extensions"))

    async def ask(self, method: str, **params: Any) -> Exchange:
        """Send one request."""
        return await self.session.ask(method, **params)

    async def expect_refusal(self, rule: str, what: str, method: str, **params: Any) -> None:
        """Check that the server refuses the request with -32602."""
        exchange = await self.ask(method, **params)
        message = f"{method} with {what} returned {exchange.summary} instead of error {INVALID_PARAMS}"
        self.ledger.expect(rule, exchange.code == INVALID_PARAMS, message, exchange)

    async def walk(self, rule: str, method: str, key: str, *, cursor_rule: str = "", **params: Any) -> PagedList:
        """Fetch every page of a list within the bounds.

        A wrong page counts against ``rule``, a wrong cursor against ``cursor_rule`` if it is given.
        """
        cursor_rule = cursor_rule or rule
        paged = PagedList([], [], is_whole=False)
        cursor: Any = None
        for page in range(self.bounds.pages):
            exchange = await self.ask(method, **params, **({"cursor": cursor} if page else {}))
            if page:
                paged.cursors.append((cursor, exchange))
            result = exchange.result or {}
            found = result.get(key)
            if page and exchange.is_error:
                self.ledger.failed(cursor_rule, f"{method} refuses its own cursor", exchange)
                return paged
            lacking = f"no '{key}' list" if exchange.result is not None else exchange.summary
            if not self.ledger.expect(rule, isinstance(found, list), f"{method} returned {lacking}", exchange):
                return paged
            paged.items.extend((item, exchange) for item in found or ())
            cursor = result.get("nextCursor")
            if cursor is None:
                return paged._replace(is_whole=True)
            if not isinstance(cursor, str):
                self.ledger.failed(rule, f"'nextCursor' of {method} is not a string", exchange, cursor)
                return paged
            if any(cursor == seen for seen, _ in paged.cursors):
                message = f"{method} returns the same cursor a second time"
                self.ledger.failed(cursor_rule, message, exchange, cursor)
                return paged
            if len(paged.items) > self.bounds.entries:
                break
        message = f"{method} did not end after {len(paged.items):,} items; the rest was not checked"
        self.ledger.warned(cursor_rule, message)
        return paged

    def check_message(self, exchange: Exchange) -> None:
        """Check what holds for every response."""
        problem = exchange.problem or _envelope_problem(exchange)
        method, result, ledger = exchange.method, exchange.result, self.ledger
        if not ledger.expect("BASE", not problem, f"{method}: {problem}", exchange) or result is None:
            return
        if self.session.is_modern:
            message = f"{method}: 'resultType' is missing"
            ledger.expect("BASE", isinstance(result.get("resultType"), str), message, exchange)
            if method in _CACHEABLE and (self.is_extension or not method.startswith("skills/")):
                rule, lifetime = _CACHEABLE[method], as_size(result.get("ttlMs"))
                message = f"{method}: 'ttlMs' is missing or not an integer"
                ledger.expect(rule, lifetime is not None, message, exchange)
                message = f'{method}: \'cacheScope\' is neither "public" nor "private"'
                ledger.expect(rule, result.get("cacheScope") in ("public", "private"), message, exchange)
        else:
            present = [name for name in _STATELESS if name in result]
            message = f"{method}: {', '.join(present)} is not part of the handshake era"
            ledger.expect("BASE", not present, message, exchange)
        for keys in _meta_keys(result):
            bad = ", ".join(repr(key) for key in keys if not _META_KEY.match(key))
            message = f"{method}: the _meta key {bad:.200} has no reverse-domain prefix"
            ledger.expect("R4", not bad, message, exchange)


def _envelope_problem(exchange: Exchange) -> str:
    answer = as_object(exchange.answer)
    if not answer:
        return "the response is not a JSON object"
    if answer.get("jsonrpc") != "2.0":
        return 'the response has no "jsonrpc": "2.0"'
    if type(answer.get("id")) is not int or answer["id"] != exchange.request["id"]:
        return f"the response has the id {answer.get('id')!r:.40}, the request has {exchange.request['id']}"
    if ("result" in answer) == ("error" in answer):
        has = "both a result and" if "result" in answer else "neither a result nor"
        return f"the response has {has} an error"
    if "result" in answer:
        return "" if exchange.result is not None else "the result is not an object"
    if exchange.code is None:
        return "the code of the error is not an integer"
    return "" if isinstance(as_object(answer["error"]).get("message"), str) else "the error has no message"


def _meta_keys(result: Message) -> Iterator[list[str]]:
    """The keys of every ``_meta`` in ``result``, within a bound."""
    waiting, seen = [cast("Any", result)], 0
    while waiting and seen < _MAX_NODES:
        node, seen = waiting.pop(), seen + 1
        if isinstance(node, list):
            waiting += cast("list[Any]", node)
        elif isinstance(node, dict):
            fields = cast("dict[str, Any]", node)
            if isinstance(fields.get("_meta"), dict):
                yield list(cast("dict[str, Any]", fields["_meta"]))
            waiting += [item for key, item in fields.items() if key not in ("_meta", *_AUTHORS)]
