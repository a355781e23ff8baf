"""Checks of every response and of the declared capabilities (BASE, R4, K1).

The cache fields of ``skills/list``, ``skills/get`` and directories belong to their own rules (L1, G1, D1).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from skillwire.client.shapes import as_list, as_object, as_size
from skillwire.conform.checks.context import INVALID_PARAMS, METHOD_NOT_FOUND, NOWHERE, RESOURCE_NOT_FOUND
from skillwire.wire.extension import DIRECTORY_READ, EXTENSION_ID, SKILLS_LIST

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire.conform.checks.context import ServerRun
    from skillwire.conform.report import Exchange, Ledger, Message

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


def check_message(ledger: Ledger, exchange: Exchange, *, is_modern: bool, is_extension: bool) -> None:
    """Check what holds for every response."""
    if exchange.problem:
        ledger.failed("BASE", f"{exchange.method}: {exchange.problem}", exchange)
        return
    problem = _envelope_problem(exchange)
    if problem:
        ledger.failed("BASE", f"the response to {exchange.method} {problem}", exchange)
        return
    ledger.passed("BASE", exchange)
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
        return "is an error whose code is not an integer"
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
        f"{exchange.method}: 'ttlMs' is missing or not an integer",
        exchange,
    )
    ledger.expect(
        rule,
        result.get("cacheScope") in ("public", "private"),
        f'{exchange.method}: \'cacheScope\' is neither "public" nor "private"',
        exchange,
    )


def _check_handshake(ledger: Ledger, exchange: Exchange, result: Message) -> None:
    present = [name for name in _STATELESS if name in result]
    ledger.expect(
        "BASE",
        not present,
        f"{exchange.method}: {', '.join(present)} is not part of the handshake era",
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
    """The keys of every ``_meta`` in ``value``, within a bound."""
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


async def check_messages(run: ServerRun) -> None:
    """Check the responses to unknown methods and resources, and the output of a process on stdout."""
    exchange = await run.ask("skillwire-conform/unknown")
    run.ledger.expect(
        "BASE",
        exchange.code == METHOD_NOT_FOUND,
        f"an unknown method returned {exchange.summary} instead of error {METHOD_NOT_FOUND}",
        exchange,
    )
    if "resources" in run.capabilities:
        exchange = await run.ask("resources/read", uri=NOWHERE)
        right = (INVALID_PARAMS,) if run.session.is_modern else (INVALID_PARAMS, RESOURCE_NOT_FOUND)
        run.ledger.expect(
            "BASE",
            exchange.code in right,
            f"an unknown resource returned {exchange.summary} instead of error {INVALID_PARAMS}",
            exchange,
        )
    if run.session.noise:
        run.ledger.failed("BASE", f"stdout has output that is not a message: {run.session.noise!r:.200}")


def declares_extension(capabilities: dict[str, object]) -> bool:
    """Whether the capabilities declare the extension."""
    return EXTENSION_ID in as_object(capabilities.get("extensions"))


async def check_declared(run: ServerRun, opening: Exchange) -> frozenset[str]:
    """Check the declaration, and return the declared methods that the server knows."""
    settings = as_object(run.capabilities.get("extensions"))[EXTENSION_ID]
    expect = run.ledger.expect
    expect("K1", isinstance(settings, dict), "the settings of the extension are not an object", opening, settings)
    directories = as_object(settings).get("directoryRead", False)
    expect("K1", isinstance(directories, bool), "'directoryRead' is not a boolean", opening, settings)
    unknown = sorted(as_object(settings).keys() - {"directoryRead"})
    names = ", ".join(map(repr, unknown))
    expect("K1", not unknown, f"the extension has no setting {names:.200}", opening, settings)
    expect(
        "K1",
        isinstance(run.capabilities.get("resources"), dict),
        "the extension is declared without 'resources'",
        opening,
    )
    known: set[str] = set()
    for method, params in ((SKILLS_LIST, {}), (DIRECTORY_READ, {"uri": NOWHERE})):
        if method == SKILLS_LIST or directories is True:
            exchange = await run.ask(method, **params)
            is_known = exchange.code != METHOD_NOT_FOUND
            if expect("K1", is_known, f"{method} is declared but unknown", exchange):
                known.add(method)
    return frozenset(known)


async def check_undeclared(run: ServerRun) -> None:
    """Check that a server without the declaration does not serve the extension."""
    exchange = await run.ask(SKILLS_LIST)
    skills = [as_object(item) for item in as_list((exchange.result or {}).get("skills"))]
    if any("uri" in skill and "frontmatter" in skill for skill in skills):
        run.ledger.failed("K1", "skills/list uses the extension, which is not declared", exchange)
