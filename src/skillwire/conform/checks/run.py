"""A conformance run of a server: every family of checks in each era that the server speaks, and one report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skillwire.client.servers import UrlServer, without_secrets
from skillwire.client.shapes import as_object
from skillwire.conform.checks.context import ServerRun
from skillwire.conform.checks.dialects import check_index, check_named
from skillwire.conform.checks.entries import check_get, check_listing
from skillwire.conform.checks.files import check_files
from skillwire.conform.checks.protocol import (
    check_declared,
    check_message,
    check_messages,
    check_undeclared,
    declares_extension,
)
from skillwire.conform.checks.resources import check_directories, check_resources, check_templates
from skillwire.conform.checks.rules import EXTENSION, NATIVE, RULES, SEP_2076
from skillwire.conform.report import Ledger, Redactor, Report, Section
from skillwire.conform.session import ERAS, VERSIONS, Bounds, SessionEnded, open_session, speaks
from skillwire.errors import FormatError, UpstreamError
from skillwire.wire.extension import DIRECTORY_READ, SKILLS_LIST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillwire.client.servers import ServerPlace
    from skillwire.conform.report import Exchange
    from skillwire.conform.session import Era, RawSession

Offered: TypeAlias = Literal["extension", "index", "sep-2076", "native"]
OFFERED: tuple[Offered, ...] = ("extension", "index", "sep-2076", "native")
_FIRST_RULE: dict[Offered, str] = {"extension": "K1", "index": "I1", "sep-2076": "P1", "native": "M1"}


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
    unknown = [rule for rule in rules if rule not in RULES]
    if unknown:
        raise FormatError("rule-unknown", f"unknown rule {unknown[0]!r:.40}", "list the rules with --list-rules")
    bounds = bounds or Bounds()
    jobs: list[_Job] = []
    sections: list[Section] = []
    chosen = [rule for rule in RULES if not rules or rule in rules]
    for era in eras:
        ledger = Ledger((RULES[rule] for rule in chosen), Redactor(secrets_of(place)))
        jobs.append(_Job(place, era, ledger, bounds, on_request))
        sections.append(await _check_era(jobs[-1]))
    if not any(section.spoken for section in sections):
        raise UpstreamError(
            "not-mcp",
            f"the server does not speak MCP: {sections[0].note}",
            "check the URL or the command; the path is often /mcp",
        )
    _judge_offer([job for job, section in zip(jobs, sections, strict=True) if section.spoken], required)
    return Report("server", describe_place(place), tuple(sections))


@dataclass(slots=True)
class _Job:
    """One era of a server, and the dialects that it offers there."""

    place: ServerPlace
    era: Era
    ledger: Ledger
    bounds: Bounds
    on_request: Callable[[int], None] | None
    opening: Exchange | None = None
    offered: set[Offered] = field(default_factory=set[Offered])


async def _check_era(job: _Job) -> Section:
    era, ledger = job.era, job.ledger
    async with open_session(job.place, era, job.bounds) as session:
        try:
            opening = await session.open()
        except SessionEnded as reason:
            return Section(era, ledger.results(), str(reason), spoken=False)
        if not speaks(era, opening):
            note = f"{VERSIONS[era]} is not supported: {opening.method} returned {opening.summary}"
            return Section(era, ledger.results(), note, spoken=False)
        note, job.opening = "", opening
        try:
            await _check_all(session, job, opening)
        except SessionEnded as reason:
            note = f"stopped early: {reason}"
        ledger.not_checked(RULES, note or "the server sent nothing that the rule applies to")
        return Section(era, ledger.results(), note)


async def _check_all(session: RawSession, job: _Job, opening: Exchange) -> None:
    ledger = job.ledger
    capabilities = as_object((opening.result or {}).get("capabilities"))
    is_extension = declares_extension(capabilities)

    def judge(exchange: Exchange) -> None:
        check_message(ledger, exchange, is_modern=session.is_modern, is_extension=is_extension)
        if job.on_request is not None:
            job.on_request(exchange.request["id"])

    session.on_exchange = judge
    judge(opening)
    run = ServerRun(session, ledger, job.bounds, capabilities)
    if is_extension:
        job.offered.add("extension")
        ledger.not_offered((*SEP_2076, *NATIVE), "skills/list uses the extension")
        await _check_extension(run, opening)
    else:
        ledger.not_offered(EXTENSION, "the extension is not declared")
        await check_undeclared(run)
        named = await check_named(run)
        if named is not None:
            job.offered.add(named)
    if await check_index(run):
        job.offered.add("index")
    await check_messages(run)
    if not is_extension:
        ledger.not_offered(("K1",), "the extension is not declared")


async def _check_extension(run: ServerRun, opening: Exchange) -> None:
    ledger = run.ledger
    known = await check_declared(run, opening)
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


def _judge_offer(jobs: list[_Job], required: Offered | None) -> None:
    """Fail a server that offers no skills in any era, or not the required dialect."""
    offered = {dialect for job in jobs for dialect in job.offered}
    if required is not None and required not in offered:
        jobs[0].ledger.failed(_FIRST_RULE[required], f"{required} is required but not offered", jobs[0].opening)
    elif not offered:
        message = "the server offers no dialect for skills"
        jobs[0].ledger.failed("K1", message, jobs[0].opening)


def secrets_of(place: ServerPlace) -> Iterator[str]:
    """Secrets that the server was given and may repeat in a response."""
    if isinstance(place, UrlServer):
        yield from place.headers.values()
        _, _, query = place.url.partition("?")
        yield from (part.partition("=")[2] for part in query.split("&"))
        yield place.url.partition("//")[2].rpartition("@")[0].rpartition(":")[2]
    else:
        yield from place.env.values()


def describe_place(place: Any) -> str:
    """The address of the server, without secrets and without folders of this machine."""
    if isinstance(place, UrlServer):
        return without_secrets(place.url)
    arguments = len(place.command) - 1
    name = place.command[0].replace("\\", "/").rpartition("/")[2]
    return f"{name} … ({arguments} arguments)" if arguments else name
