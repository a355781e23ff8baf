"""The whole run: a server in each era it speaks, every family of checks in turn, one report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skillwire.client.servers import UrlServer, without_secrets
from skillwire.client.shapes import as_object
from skillwire.conform.checks.asking import Run
from skillwire.conform.checks.browsing import check_browsing
from skillwire.conform.checks.declaring import check_declared, check_undeclared, declares_extension
from skillwire.conform.checks.getting import check_getting
from skillwire.conform.checks.indexed import check_index
from skillwire.conform.checks.listing import check_listing
from skillwire.conform.checks.messages import check_messages, look
from skillwire.conform.checks.named import check_named
from skillwire.conform.checks.reading import check_reading
from skillwire.conform.checks.resources import check_resources, check_templates
from skillwire.conform.checks.rules import EXTENSION, NATIVE, RULES, SEP_2076
from skillwire.conform.evidence import Redactor
from skillwire.conform.outcome import Ledger, Report, Section
from skillwire.conform.session import ERAS, VERSIONS, Bounds, GivenUp, open_session, speaks
from skillwire.errors import FormatError, UpstreamError
from skillwire.wire.extension import DIRECTORY_READ, SKILLS_LIST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from skillwire.client.servers import ServerPlace
    from skillwire.conform.evidence import Exchange
    from skillwire.conform.session import Era, Session

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
    """Look at the server at ``place``. ``UpstreamError`` if none of the eras is spoken there."""
    unknown = [rule for rule in rules if rule not in RULES]
    if unknown:
        raise FormatError("rule-unknown", f"there is no rule {unknown[0]!r:.40}", "see --list-rules")
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
            f"what answers there does not speak MCP: {sections[0].note}",
            "check the address or the command; a server's path is often /mcp",
        )
    _judge_offer([job for job, section in zip(jobs, sections, strict=True) if section.spoken], required)
    return Report("server", said_place(place), tuple(sections))


@dataclass(slots=True)
class _Job:
    """One era of a server, and what it turned out to offer there."""

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
        except GivenUp as reason:
            return Section(era, ledger.results(), str(reason), spoken=False)
        if not speaks(era, opening):
            note = f"{VERSIONS[era]} is not spoken: {opening.method} gave {opening.said}"
            return Section(era, ledger.results(), note, spoken=False)
        note, job.opening = "", opening
        try:
            await _check_all(session, job, opening)
        except GivenUp as reason:
            note = f"given up: {reason}"
        ledger.unchecked(RULES, note or "nothing was seen that it is about")
        return Section(era, ledger.results(), note)


async def _check_all(session: Session, job: _Job, opening: Exchange) -> None:
    ledger = job.ledger
    capabilities = as_object((opening.result or {}).get("capabilities"))
    is_extension = declares_extension(capabilities)

    def judge(exchange: Exchange) -> None:
        look(ledger, exchange, is_modern=session.is_modern, is_extension=is_extension)
        if job.on_request is not None:
            job.on_request(exchange.request["id"])

    session.look = judge
    judge(opening)
    run = Run(session, ledger, job.bounds, capabilities)
    if is_extension:
        job.offered.add("extension")
        ledger.absent((*SEP_2076, *NATIVE), "skills/list means the extension here")
        await _check_extension(run, opening)
    else:
        ledger.absent(EXTENSION, "the extension is not declared")
        await check_undeclared(run)
        named = await check_named(run)
        if named is not None:
            job.offered.add(named)
    if await check_index(run):
        job.offered.add("index")
    await check_messages(run)
    if not is_extension:
        ledger.absent(("K1",), "the extension is not declared")


async def _check_extension(run: Run, opening: Exchange) -> None:
    ledger = run.ledger
    known = await check_declared(run, opening)
    if DIRECTORY_READ not in known:
        ledger.absent(("D1",), "there is no resources/directory/read")
    if SKILLS_LIST not in known:
        ledger.unchecked(EXTENSION, "skills/list is not known")
        return
    await check_listing(run)
    if ledger.wants("G1"):
        await check_getting(run)
    if ledger.wants("E2", "R1", "R2", "F1", "F4", "F5", "F6", "E1", "U7"):
        await check_reading(run)
    if "resources" in run.capabilities and ledger.wants("R1", "R3"):
        await check_resources(run)
    if "resources" in run.capabilities and ledger.wants("T1"):
        await check_templates(run)
    if DIRECTORY_READ in known and ledger.wants("D1", "R3"):
        await check_browsing(run)
    ledger.unchecked(("S1",), "from outside nothing can be changed")
    ledger.unchecked(("F4", "F5", "F6"), "no skill that is served has what would show it")


def _judge_offer(jobs: list[_Job], required: Offered | None) -> None:
    """A server without skills is not one that keeps all rules about them. What one era offers is offered."""
    offered = {dialect for job in jobs for dialect in job.offered}
    if required is not None and required not in offered:
        jobs[0].ledger.broken(
            _FIRST_RULE[required], f"{required} is required here and not offered", jobs[0].opening
        )
    elif not offered:
        message = "no dialect of skills is offered, so that nothing could be checked"
        jobs[0].ledger.broken("K1", message, jobs[0].opening)


def secrets_of(place: ServerPlace) -> Iterator[str]:
    """What the server was given and may repeat, and nobody is to see."""
    if isinstance(place, UrlServer):
        yield from place.headers.values()
        _, _, query = place.url.partition("?")
        yield from (part.partition("=")[2] for part in query.split("&"))
        yield place.url.partition("//")[2].rpartition("@")[0].rpartition(":")[2]
    else:
        yield from place.env.values()


def said_place(place: Any) -> str:
    """Where the server is, without secrets and without folders of this machine."""
    if isinstance(place, UrlServer):
        return without_secrets(place.url)
    words = len(place.command) - 1
    return place.command[0].replace("\\", "/").rpartition("/")[2] + (f" … ({words} words)" if words else "")
