"""A conformance run of a server: every family of checks in each era that the server speaks, and one report.

This file has the checks of the declared capabilities (K1), and of the responses to unknown methods and resources
(BASE).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skillwire.client.bounds import as_list, as_object
from skillwire.client.servers import UrlServer, without_secrets
from skillwire.conform.dialects import check_index, check_named
from skillwire.conform.entries import check_get, check_listing
from skillwire.conform.files import check_files
from skillwire.conform.report import Ledger, Redactor, Report, Section
from skillwire.conform.resources import check_directories, check_resources, check_templates
from skillwire.conform.rules import EXTENSION, NATIVE, SEP_2076, SERVER_RULES
from skillwire.conform.server_run import INVALID_PARAMS, METHOD_NOT_FOUND, NOWHERE, ServerRun
from skillwire.conform.session import ERAS, VERSIONS, Bounds, SessionEnded, open_session, speaks
from skillwire.errors import FormatError, UpstreamError
from skillwire.wire.extension import DIRECTORY_READ, SKILLS_LIST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillwire.client.servers import ServerPlace
    from skillwire.conform.report import Exchange
    from skillwire.conform.session import Era

Offered: TypeAlias = Literal["extension", "index", "sep-2076", "native"]
_FIRST_RULE: dict[Offered, str] = {"extension": "K1", "index": "I1", "sep-2076": "P1", "native": "M1"}
_RESOURCE_NOT_FOUND = -32002  # the code for resources in the specification of the handshake era


@dataclass(slots=True)
class _EraRun:
    """The outcome of one era, and the dialects that the server offers in it."""

    ledger: Ledger
    note: str = ""
    opening: Exchange | None = None  # None if the server does not speak the era
    offered: set[Offered] = field(default_factory=set[Offered])


async def check_server(
    place: ServerPlace,
    *,
    rules: Sequence[str] = (),
    eras: Sequence[Era] = ERAS,
    required: Offered | None = None,
    bounds: Bounds | None = None,
    on_request: Callable[[int], None] | None = None,
) -> Report:
    """Check the server at ``place``. ``UpstreamError`` if it speaks none of the eras."""
    unknown = [rule for rule in rules if rule not in SERVER_RULES]
    if unknown:
        raise FormatError("rule-unknown", f"unknown rule {unknown[0]!r:.40}", "list the rules with --list-rules")
    chosen = [rule for rule in SERVER_RULES.values() if not rules or rule.id in rules]
    runs: dict[Era, _EraRun] = {}
    for era in eras:
        runs[era] = _EraRun(Ledger(chosen, Redactor(_secrets_of(place))))
        await _check_era(runs[era], place, era, bounds or Bounds(), on_request)
    spoken = [run for run in runs.values() if run.opening is not None]
    if not spoken:
        raise UpstreamError(
            "not-mcp",
            f"the server does not speak MCP: {runs[eras[0]].note}",
            "check the URL or the command; the path is often /mcp",
        )
    offered = {dialect for run in spoken for dialect in run.offered}
    if required is not None and required not in offered:
        message = f"{required} is required but not offered"
        spoken[0].ledger.failed(_FIRST_RULE[required], message, spoken[0].opening)
    elif not offered:
        spoken[0].ledger.failed("K1", "the server offers no dialect for skills", spoken[0].opening)
    sections = (
        Section(era, run.ledger.results(), run.note, spoken=run.opening is not None) for era, run in runs.items()
    )
    return Report("server", _describe_place(place), tuple(sections))


async def _check_era(
    run: _EraRun, place: ServerPlace, era: Era, bounds: Bounds, on_request: Callable[[int], None] | None
) -> None:
    async with open_session(place, era, bounds) as session:
        try:
            opening = await session.open()
        except SessionEnded as reason:
            run.note = str(reason)
            return
        if not speaks(era, opening):
            run.note = f"{VERSIONS[era]} is not supported: {opening.method} returned {opening.summary}"
            return
        run.opening = opening
        capabilities = as_object((opening.result or {}).get("capabilities"))
        checks = ServerRun(session, run.ledger, bounds, capabilities)

        def check(exchange: Exchange) -> None:
            checks.check_message(exchange)
            if on_request is not None:
                on_request(exchange.request["id"])

        session.on_exchange = check
        check(opening)
        try:
            await _check_dialect(checks, opening, run.offered)
            if await check_index(checks):
                run.offered.add("index")
            await _check_unknown(checks)
        except SessionEnded as reason:
            run.note = f"stopped early: {reason}"
        run.ledger.not_checked(SERVER_RULES, run.note or "the server sent nothing that the rule applies to")


async def _check_dialect(run: ServerRun, opening: Exchange, offered: set[Offered]) -> None:
    """Check the dialect of ``skills/list``, and add it to ``offered``."""
    if run.is_extension:
        offered.add("extension")
        run.ledger.not_offered((*SEP_2076, *NATIVE), "skills/list uses the extension")
        await _check_extension(run, opening)
        return
    run.ledger.not_offered(EXTENSION, "the extension is not declared")
    exchange = await run.ask(SKILLS_LIST)
    skills = [as_object(item) for item in as_list((exchange.result or {}).get("skills"))]
    if any("uri" in skill and "frontmatter" in skill for skill in skills):
        run.ledger.failed("K1", "skills/list uses the extension, which is not declared", exchange)
    run.ledger.not_offered(("K1",), "the extension is not declared")
    named = await check_named(run, skills)
    if named is not None:
        offered.add(named)


async def _check_extension(run: ServerRun, opening: Exchange) -> None:
    ledger = run.ledger
    known = await _check_declared(run, opening)
    if DIRECTORY_READ not in known:
        ledger.not_offered(("D1",), "resources/directory/read is not offered")
    if SKILLS_LIST not in known:
        ledger.not_checked(EXTENSION, "skills/list is unknown")
        return
    await check_listing(run)
    if ledger.includes("G1"):
        await check_get(run)
    if ledger.includes("E2", "R1", "R2", "F1", "F4", "F5", "F6", "E1", "U7"):
        await check_files(run)
    if "resources" in run.capabilities and ledger.includes("R1", "R3"):
        await check_resources(run)
    if "resources" in run.capabilities and ledger.includes("T1"):
        await check_templates(run)
    if DIRECTORY_READ in known and ledger.includes("D1", "R3"):
        await check_directories(run)
    ledger.not_checked(("S1",), "a client cannot change the files of the server")
    ledger.not_checked(("F4", "F5", "F6"), "no served skill has content that the rule applies to")


async def _check_declared(run: ServerRun, opening: Exchange) -> set[str]:
    """K1: check the declaration, and return the declared methods that the server knows."""
    settings, expect = run.settings, run.ledger.expect
    expect("K1", isinstance(settings, dict), "the settings of the extension are not an object", opening, settings)
    directories = as_object(settings).get("directoryRead", False)
    expect("K1", isinstance(directories, bool), "'directoryRead' is not a boolean", opening, settings)
    unknown = ", ".join(map(repr, sorted(as_object(settings).keys() - {"directoryRead"})))
    expect("K1", not unknown, f"the extension has no setting {unknown:.200}", opening, settings)
    has_resources = isinstance(run.capabilities.get("resources"), dict)
    expect("K1", has_resources, "the extension is declared without 'resources'", opening)
    known: set[str] = set()
    for method, params in ((SKILLS_LIST, {}), (DIRECTORY_READ, {"uri": NOWHERE})):
        if method == SKILLS_LIST or directories is True:
            exchange = await run.ask(method, **params)
            is_known = exchange.code != METHOD_NOT_FOUND
            if expect("K1", is_known, f"{method} is declared but unknown", exchange):
                known.add(method)
    return known


async def _check_unknown(run: ServerRun) -> None:
    """BASE: the responses to unknown methods and resources, and the output of a process on stdout."""
    exchange = await run.ask("skillwire-conform/unknown")
    message = f"an unknown method returned {exchange.summary} instead of error {METHOD_NOT_FOUND}"
    run.ledger.expect("BASE", exchange.code == METHOD_NOT_FOUND, message, exchange)
    if "resources" in run.capabilities:
        exchange = await run.ask("resources/read", uri=NOWHERE)
        right = (INVALID_PARAMS,) if run.session.is_modern else (INVALID_PARAMS, _RESOURCE_NOT_FOUND)
        message = f"an unknown resource returned {exchange.summary} instead of error {INVALID_PARAMS}"
        run.ledger.expect("BASE", exchange.code in right, message, exchange)
    if run.session.noise:
        run.ledger.failed("BASE", f"stdout has output that is not a message: {run.session.noise!r:.200}")


def _secrets_of(place: ServerPlace) -> Iterator[str]:
    """Secrets that the server was given and may repeat in a response."""
    if isinstance(place, UrlServer):
        yield from place.headers.values()
        _, _, query = place.url.partition("?")
        yield from (part.partition("=")[2] for part in query.split("&"))
        yield place.url.partition("//")[2].rpartition("@")[0].rpartition(":")[2]
    else:
        yield from place.env.values()


def _describe_place(place: Any) -> str:
    """The address of the server, without secrets and without folders of this machine."""
    if isinstance(place, UrlServer):
        return without_secrets(place.url)
    arguments = len(place.command) - 1
    name = place.command[0].replace("\\", "/").rpartition("/")[2]
    return f"{name} … ({arguments} arguments)" if arguments else name
