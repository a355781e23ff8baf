"""``/``, ``/origins`` and ``/bulk``: open questions, origins, skills by what needs attention, and bulk approval.

Parts can be fetched alone. Only ``/bulk`` sends requests to servers.
"""

from __future__ import annotations

import time
from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from starlette.routing import Route

from skillwire.errors import ApprovalError, SkillwireError
from skillwire.host.approvals import ASKED_TO
from skillwire.skill.approval import file_digests, fingerprint_of
from skillwire.skill.uri import fold
from skillwire.web.desk import decisions
from skillwire.web.desk.decisions import STATES, is_unreachable, question_key, state_of
from skillwire.web.desk.guard import Form, form_endpoint
from skillwire.web.desk.history import list_versions
from skillwire.web.desk.responses import page_response, skill_url
from skillwire.web.desk.review import make_sheet
from skillwire.web.theme import ListPage, list_page, page_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.host.host import SkillHost
    from skillwire.host.origins import NamedEntry, Origin
    from skillwire.skill import Diagnostic, SkillEntry
    from skillwire.skill.review import Risk
    from skillwire.store.records import Question
    from skillwire.web.desk.app import Desk
    from skillwire.web.desk.decisions import DeskState
    from skillwire.web.desk.reader import DeskReader
    from skillwire.web.desk.review import Sheet

T = TypeVar("T")
# The sections of the list, in their order. A skill is in the first one that has its state.
SECTIONS = {
    "Changed since approval": ("changed",),
    "New": ("new", "dynamic"),
    "Decided": ("approved", "declined", "revoked", "unlisted"),
    "Your own": ("local",),
}
_SECTION_OF = {state: number for number, states in enumerate(SECTIONS.values()) for state in states}
_MAX_QUERY = 200
_MAX_FOUND = 8  # filters whose matches are cached
MAX_SKILLS = 25  # of one page for bulk approval: each is read
_READ_SECONDS = 15.0  # after that, the others wait for the next page
_MAX_NAMES = 10  # skills with the same name that a row shows


class SkillRow(NamedTuple):
    """One skill, with a unique name. It has no ``entry`` if its origin does not list it."""

    name: str
    origin: str
    uri: str
    state: DeskState
    is_unreachable: bool
    entry: SkillEntry | None
    files: int | None
    same_name: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """Its description, if its origin lists it."""
        return self.entry.description if self.entry else ""

    @property
    def size(self) -> int | None:
        """The size of all files, if it is known."""
        is_known = self.entry is not None and self.entry.is_complete and "size" not in self.entry.gaps
        return self.entry.size if self.entry is not None and is_known else None

    @property
    def section(self) -> str:
        """The part of the list that it is in."""
        return list(SECTIONS)[_SECTION_OF[self.state]]

    @property
    def states(self) -> list[str]:
        """What the filter knows it by: its state, and what else is unusual."""
        others = {"unreachable": self.is_unreachable, "collision": bool(self.same_name)}
        return [self.state, *(name for name, is_so in others.items() if is_so)]

    @property
    def url(self) -> str:
        """The address of its page."""
        return skill_url(self.origin, self.uri)


class OriginRow(NamedTuple):
    """One origin, the problems of its entries, and the number of its skills that wait for a decision."""

    origin: Origin
    problems: Sequence[Diagnostic]
    undecided: int


class QuestionRow(NamedTuple):
    """Equal questions of one or several programs. ``first`` represents all of them."""

    first: Question
    askers: tuple[str, ...]

    @property
    def url(self) -> str:
        """The address of its page."""
        return f"/question/{self.first.id}"


class Choice(NamedTuple):
    """The filter and the page number of a list."""

    words: str = ""
    state: str = ""
    origin: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice:
        """Parse the query of a request. Invalid values select everything."""
        words = query.get("q", "").strip()[:_MAX_QUERY]
        return cls(words, query.get("state", ""), query.get("origin", ""), page_number(query))

    def page_of(self, rows: Sequence[T]) -> ListPage[T]:
        """The selected page of ``rows``, or the last one."""
        return list_page(rows, min(self.page, list_page(rows, 1).pages))

    def contains_words(self, text: str) -> bool:
        """Whether ``text`` contains every word of the filter."""
        text = text.casefold()
        return all(word in text for word in self.words.casefold().split())


class SkillListing(NamedTuple):
    """One page of the matching skills.

    ``states`` counts the matches in each state, ``fitting`` those in any state, and ``total`` all known skills.
    """

    choice: Choice
    part: ListPage[SkillRow]
    risks: Mapping[tuple[str, str], Risk]
    states: Mapping[str, int]
    fitting: int
    total: int

    @property
    def sections(self) -> list[str]:
        """The sections of the rows, in their order."""
        return list(dict.fromkeys(row.section for row in self.part.rows))


class SkillRows:
    """The rows of all known skills, cached until the store or an origin changes."""

    def __init__(self, host: SkillHost, reader: DeskReader) -> None:
        self._host = host
        self._reader = reader
        self._rows: list[SkillRow] = []
        self._key: tuple[object, ...] = ()
        self._found: dict[tuple[str, str], tuple[list[SkillRow], Counter[str]]] = {}

    async def find(self, choice: Choice) -> SkillListing:
        """One page of the matching skills."""
        known = await self.all()
        key = choice.words, choice.origin
        if key not in self._found:
            rows = known
            if choice.origin or choice.words:
                rows = [row for row in known if choice.origin in ("", row.origin)]
                rows = [row for row in rows if choice.contains_words(f"{row.name} {row.uri} {row.description}")]
            while len(self._found) >= _MAX_FOUND:
                self._found.pop(next(iter(self._found)))
            self._found[key] = rows, Counter(state for row in rows for state in row.states)
        rows, counts = self._found[key]
        fitting = [row for row in rows if choice.state in row.states] if choice.state else rows
        part = choice.page_of(fitting)
        risks = {
            (row.origin, row.uri): self._reader.known_risk(row.origin, row.entry) for row in part.rows if row.entry
        }
        states = {state: counts[state] for state in (*STATES, "unreachable", "collision") if counts[state]}
        return SkillListing(choice, part, risks, states, len(rows), len(known))

    async def all(self) -> list[SkillRow]:
        """The listed skills, and approved ones that are no longer listed, by section, origin and URI."""
        health = tuple((origin.label, is_unreachable(origin)) for origin in self._host.registry)
        key = await self._host.store.version(), self._host.names, health  # a new list has new names
        if key != self._key:
            self._rows, self._key, self._found = await self._create_rows(), key, {}
        return self._rows

    async def _create_rows(self) -> list[SkillRow]:
        host = self._host
        approvals = {(each.origin, each.uri): each for each in await host.store.approvals()}
        decided = {(each.origin, each.uri): each for each in await host.store.decisions()}
        same_names: dict[str, list[str]] = {}  # N1: the unique names of all skills with the same name
        for skill in host.names.skills:
            same_names.setdefault(fold(skill.entry.name), []).append(skill.name)
        rows: dict[tuple[str, str], SkillRow] = {}
        for skill in host.names.skills:
            origin, entry = skill.origin, skill.entry
            key = origin.label, entry.uri
            others = (name for name in same_names[fold(entry.name)] if name != skill.name)
            state = state_of(skill, approvals.get(key), decided.get(key))
            files, same_name = len(entry.files) if entry.is_complete else None, tuple(islice(others, _MAX_NAMES))
            rows[key] = SkillRow(skill.name, *key, state, is_unreachable(origin), entry, files, same_name)
        labels = {origin.label: origin for origin in host.registry}
        for key, approval in approvals.items():
            if key not in rows:
                name, files = f"{approval.origin}:{approval.uri}", len(file_digests(approval.contents))
                unreachable = is_unreachable(labels.get(approval.origin))
                rows[key] = SkillRow(name, *key, "unlisted", unreachable, None, files)
        return [rows[key] for key in sorted(rows, key=lambda key: (_SECTION_OF[rows[key].state], *key))]


async def list_origins(desk: Desk) -> list[OriginRow]:
    """Every origin, by label."""
    origins = sorted(desk.host.registry, key=lambda origin: origin.label)
    undecided = Counter(row.origin for row in await desk.rows.all() if row.state in ("new", "changed"))
    return [
        OriginRow(origin, await origin.problems() if origin.kind else (), undecided[origin.label])
        for origin in origins
    ]


async def list_questions(host: SkillHost) -> list[QuestionRow]:
    """Open questions, oldest first. Equal questions of several programs are one row."""
    groups: dict[tuple[str, ...], list[Question]] = {}
    for question in await host.store.questions(time.time()):
        groups.setdefault(question_key(question), []).append(question)
    return [
        QuestionRow(questions[0], tuple(dict.fromkeys(question.by for question in questions)))
        for questions in groups.values()
    ]


class Candidate(NamedTuple):
    """A skill that waits for a decision, and why it needs a review of its own; empty if it does not."""

    sheet: Sheet
    reason: str
    was_approved: bool

    @property
    def url(self) -> str:
        """The address of its review."""
        return skill_url(self.sheet.origin, self.sheet.entry.uri)


async def _candidate(desk: Desk, skill: NamedEntry) -> Candidate:
    sheet = await make_sheet(desk.host, desk.reader, skill)
    versions = await list_versions(desk.host, sheet.origin, skill.entry.uri, skill)
    was_approved = any(line.what == "approved" for each in versions[:1] for line in each.events)
    review, reason, decision = sheet.review, "", sheet.standing.decision
    if sheet.standing.state == "revoked" and decision and decision.facts.get("why") == ASKED_TO:
        reason = "its approval was revoked"  # by a person, not by a host that saw other content
    elif not sheet.may_approve:
        reason = "it cannot be approved now" if sheet.standing.state != "approved" else "it is approved"
    elif sheet.errors or review.is_serious:
        reason = "some files could not be read" if sheet.errors else "it has serious findings"
    elif not was_approved and not (review.risk.is_low and not review.widening and not review.nested):
        reason = "it has findings"
    return Candidate(sheet, reason, was_approved)


def _bulk_routes(desk: Desk) -> list[BaseRoute]:
    """Approve several skills of one origin at once, if nothing in them needs a review.

    The files of each skill are read when the user opens the page. A skill can be ticked if every file was searched
    and nothing was found, or if exactly this content was approved before. Others have a link to their review. The
    form has the content and the state of each skill, and the rules are checked again for each (A1, B6).
    """

    async def bulk(request: Request, outcomes: list[tuple[str, str]] | None = None) -> Response:
        origin = desk.host.registry.get(request.path_params["origin"])
        rows = [
            row
            for row in await desk.rows.all()
            if row.origin == origin.label and row.state in ("new", "changed", "revoked")
        ]
        found, until = list[Candidate](), time.monotonic() + _READ_SECONDS
        for row in rows[:MAX_SKILLS]:
            if time.monotonic() > until:
                break
            try:
                found.append(await _candidate(desk, await desk.find_skill(row.origin, row.uri)))
            except SkillwireError:  # it was removed meanwhile
                continue
        found.sort(key=lambda each: bool(each.reason))
        return await desk.show(
            request,
            "desk/bulk.html",
            origin=origin,
            candidates=found,
            more=len(rows) - len(found),
            outcomes=outcomes,
        )

    async def approve(request: Request, form: Form) -> Response:
        label, outcomes = request.path_params["origin"], list[tuple[str, str]]()
        for uri in form.all("skill")[:MAX_SKILLS]:
            fields = [(name, form.get(f"{name}:{uri}")) for name in ("fingerprint", "state")]
            try:
                skill = await desk.find_skill(label, uri)
                found = await _candidate(desk, skill)
                if found.reason and fingerprint_of(skill.entry) == form.get(f"fingerprint:{uri}"):
                    raise ApprovalError("review-needed", found.reason, "open its review", rule="A1")
                await decisions.approve(desk, skill, Form([*fields, ("note", form.note)]))
                outcomes.append((skill.name, ""))
            except SkillwireError as error:
                outcomes.append((uri, f"{error.message} {error.label}"))
        return await bulk(request, outcomes)

    return [Route("/bulk/{origin}", bulk), Route("/bulk/{origin}", form_endpoint(approve), methods=["POST"])]


def routes(desk: Desk) -> list[BaseRoute]:
    """The overview, the number of open questions, and the page of origins."""
    host = desk.host

    async def overview(request: Request) -> Response:
        template, choice = "desk/overview.html", Choice.of(request.query_params)
        match request.query_params.get("part"):
            case "questions":
                return page_response(request, template, block="questions", questions=await list_questions(host))
            case "origins":
                return page_response(request, template, block="origins", origins=await list_origins(desk))
            case "skills" | "1":
                return page_response(request, template, block="skills", listing=await desk.rows.find(choice))
            case _:
                return await desk.show(
                    request,
                    template,
                    questions=await list_questions(host),
                    origins=await list_origins(desk),
                    listing=await desk.rows.find(choice),
                    is_answered=request.query_params.get("done") == "answered",
                )

    async def waiting(request: Request) -> Response:
        count = len(await list_questions(host))
        return page_response(request, "desk/frame.html", block="waiting", waiting=count)

    async def origins(request: Request) -> Response:
        return await desk.show(request, "desk/origins.html", block="cards", origins=await list_origins(desk))

    return [Route("/", overview), Route("/waiting", waiting), Route("/origins", origins), *_bulk_routes(desk)]
