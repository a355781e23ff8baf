"""What holds for every answer, whatever was asked: JSON-RPC, the era's fields, the keys of ``_meta`` (BASE, R4).

The cache fields of ``skills/list``, ``skills/get`` and directories belong to their own rules (L1, G1, D1).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from skillwire.client.shapes import as_object, as_size
from skillwire.conform.checks.asking import INVALID_PARAMS, METHOD_NOT_FOUND, NOWHERE, RESOURCE_NOT_FOUND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire.conform.checks.asking import Run
    from skillwire.conform.evidence import Exchange, Message
    from skillwire.conform.outcome import Ledger

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
_AUTHORS = ("frontmatter", "inputSchema", "outputSchema")  # what is in there is nobody's _meta


def look(ledger: Ledger, exchange: Exchange, *, is_modern: bool, is_extension: bool) -> None:
    """Judge one exchange for what every answer has to be."""
    if exchange.problem:
        ledger.broken("BASE", f"{exchange.method}: {exchange.problem}", exchange)
        return
    problem = _envelope_problem(exchange)
    if problem:
        ledger.broken("BASE", f"the answer to {exchange.method} {problem}", exchange)
        return
    ledger.held("BASE", exchange)
    if exchange.result is not None:
        if is_modern:
            _check_stateless(ledger, exchange, exchange.result, is_extension=is_extension)
        else:
            _check_handshake(ledger, exchange, exchange.result)
        _check_meta(ledger, exchange, exchange.result)


def _envelope_problem(exchange: Exchange) -> str:
    answer = as_object(exchange.answer)
    if not answer:
        return "is not a JSON object"
    if answer.get("jsonrpc") != "2.0":
        return 'has no "jsonrpc": "2.0"'
    if type(answer.get("id")) is not int or answer["id"] != exchange.request["id"]:
        return f"has the id {answer.get('id')!r:.40}, the request has {exchange.request['id']}"
    if ("result" in answer) == ("error" in answer):
        return "has both a result and an error" if "result" in answer else "has neither a result nor an error"
    if "result" in answer:
        return "" if isinstance(answer["result"], dict) else "has a result that is not an object"
    error = as_object(answer["error"])
    if exchange.code is None:
        return "is an error whose code is not a whole number"
    return "" if isinstance(error.get("message"), str) else "is an error without a message"


def _check_stateless(ledger: Ledger, exchange: Exchange, result: Message, *, is_extension: bool) -> None:
    kind = result.get("resultType")
    ledger.expect("BASE", isinstance(kind, str), f"{exchange.method}: 'resultType' is missing", exchange)
    rule = _CACHEABLE.get(exchange.method) if is_extension or not exchange.method.startswith("skills/") else None
    if rule is None:
        return
    ledger.expect(
        rule,
        as_size(result.get("ttlMs")) is not None,
        f"{exchange.method}: 'ttlMs' is missing or not a whole number of milliseconds",
        exchange,
    )
    ledger.expect(
        rule,
        result.get("cacheScope") in ("public", "private"),
        f'{exchange.method}: \'cacheScope\' is neither "public" nor "private"',
        exchange,
    )


def _check_handshake(ledger: Ledger, exchange: Exchange, result: Message) -> None:
    there = [name for name in _STATELESS if name in result]
    ledger.expect(
        "BASE",
        not there,
        f"{exchange.method}: {', '.join(there)} came in the handshake era, which does not know it",
        exchange,
    )


def _check_meta(ledger: Ledger, exchange: Exchange, result: Message) -> None:
    for keys in _metas(result):
        bad = [key for key in keys if not _META_KEY.match(key)]
        ledger.expect(
            "R4",
            not bad,
            f"{exchange.method}: the _meta key {', '.join(map(repr, bad)):.200} has no reverse-domain prefix",
            exchange,
        )


def _metas(value: Any) -> Iterator[list[str]]:
    """The keys of every ``_meta`` in ``value``, as far as a bounded look goes."""
    waiting, seen = [value], 0
    while waiting and seen < _MAX_NODES:
        node, seen = waiting.pop(), seen + 1
        if isinstance(node, list):
            waiting += cast("list[Any]", node)
        elif isinstance(node, dict):
            fields = cast("dict[str, Any]", node)
            if isinstance(fields.get("_meta"), dict):
                yield list(cast("dict[str, Any]", fields["_meta"]))
            waiting += [item for key, item in fields.items() if key not in ("_meta", *_AUTHORS)]


async def check_messages(run: Run) -> None:
    """What a server says to what it does not know."""
    exchange = await run.ask("skillwire-conform/unknown")
    run.ledger.expect(
        "BASE",
        exchange.code == METHOD_NOT_FOUND,
        f"an unknown method gave {exchange.said} instead of the error {METHOD_NOT_FOUND}",
        exchange,
    )
    if "resources" in run.capabilities:
        exchange = await run.ask("resources/read", uri=NOWHERE)
        right = (INVALID_PARAMS,) if run.session.is_modern else (INVALID_PARAMS, RESOURCE_NOT_FOUND)
        run.ledger.expect(
            "BASE",
            exchange.code in right,
            f"an unknown resource gave {exchange.said} instead of the error {INVALID_PARAMS}",
            exchange,
        )
    if run.session.noise:
        run.ledger.broken("BASE", f"the server wrote to its stdout what is no message: {run.session.noise!r:.200}")
