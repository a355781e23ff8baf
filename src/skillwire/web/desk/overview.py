"""``/`` and ``/origins``: open questions, origins, and every skill with its state.

Parts can be fetched alone. No server receives a request.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from starlette.routing import Route

from skillwire.skill.approval import file_digests
from skillwire.skill.entry import fold
from skillwire.web.desk.decisions import STATES, is_unreachable, question_key, state_of
from skillwire.web.desk.responses import page_response, skill_url

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import BaseRoute

    from skillwire.host.host import Host
    from skillwire.host.names import NamedEntry
    from skillwire.host.origins import Origin
    from skillwire.skill import Diagnostic
    from skillwire.skill.approval import Approval
    from skillwire.store.contract import LogLine, Question
    from skillwire.web.desk.app import Desk
    from skillwire.web.desk.decisions import State

T = TypeVar("T")
PAGE_ROWS = 100
_MAX_QUERY = 200
_MAX_NAMES = 10  # skills with the same name that a row shows


@dataclass(frozen=True, slots=True)
class SkillRow:
    """One skill, with a unique name. ``files`` and ``size`` are ``None`` if its entry does not have them."""

    name: str
    origin: str
    uri: str
    description: str
    files: int | None
    size: int | None
    state: State
    is_unreachable: bool
    same_name: tuple[str, ...] = ()

    @property
    def url(self) -> str:
        """The address of its page."""
        return skill_url(self.origin, self.uri)


@dataclass(frozen=True, slots=True)
class OriginRow:
    """One origin and its state."""

    origin: Origin
    dialect: str
    problems: tuple[Diagnostic, ...]

    @property
    def skills(self) -> int:
        """The number of listed skills."""
        return len(self.origin.entries)


@dataclass(frozen=True, slots=True)
class QuestionRow:
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
        number = query.get("page", "")[:6]
        return cls(
            query.get("q", "").strip()[:_MAX_QUERY],
            query.get("state", ""),
            query.get("origin", ""),
            max(int(number), 1) if number.isascii() and number.isdigit() else 1,
        )

    def page_of(self, rows: Sequence[T]) -> Sequence[T]:
        """The rows of the selected page."""
        return rows[(self.page - 1) * PAGE_ROWS : self.page * PAGE_ROWS]

    def fits(self, row: SkillRow) -> bool:
        """Whether a skill matches the filter."""
        if self.origin not in ("", row.origin):
            return False
        if self.state == "unreachable":
            return row.is_unreachable and self._contains_words(row)
        if self.state == "collision":
            return bool(row.same_name) and self._contains_words(row)
        return self.state in ("", row.state) and self._contains_words(row)

    def _contains_words(self, row: SkillRow) -> bool:
        return self.contains_words(f"{row.name} {row.uri} {row.description}")

    def contains_words(self, text: str) -> bool:
        """Whether ``text`` contains every word of the filter."""
        text = text.casefold()
        return all(word in text for word in self.words.casefold().split())


@dataclass(frozen=True, slots=True)
class SkillListing:
    """One page of the matching skills.

    ``found`` counts the matches in the selected state, ``fitting`` those in any state, ``states`` those in each
    state, and ``total`` all known skills.
    """

    choice: Choice
    rows: Sequence[SkillRow]
    found: int
    fitting: int
    total: int
    states: Mapping[str, int]

    @property
    def pages(self) -> int:
        """The number of pages."""
        return pages_of(self.found)


def pages_of(count: int) -> int:
    """The number of pages for ``count`` rows; at least one."""
    return max(1, -(-count // PAGE_ROWS))


class SkillRows:
    """The rows of all known skills, cached until the store or an origin changes."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._rows: list[SkillRow] = []
        self._key: tuple[object, ...] = ()

    async def find(self, choice: Choice) -> SkillListing:
        """One page of the matching skills."""
        known, in_any_state = await self.all(), choice._replace(state="")
        rows = [row for row in known if in_any_state.fits(row)]
        counts = Counter[str](row.state for row in rows)
        counts.update(
            unreachable=sum(row.is_unreachable for row in rows), collision=sum(bool(row.same_name) for row in rows)
        )
        states = {state: counts[state] for state in (*STATES, "unreachable", "collision") if counts[state]}
        fitting = [row for row in rows if choice.fits(row)]
        choice = choice._replace(page=min(choice.page, pages_of(len(fitting))))
        return SkillListing(choice, choice.page_of(fitting), len(fitting), len(rows), len(known), states)

    async def all(self) -> list[SkillRow]:
        """The listed skills, and approved ones that are no longer listed, by origin and URI."""
        health = tuple((origin.label, is_unreachable(origin)) for origin in self._host.origins)
        key = await self._host.store.version(), self._host.names, health  # a new list has new names
        if key != self._key:
            self._rows, self._key = await self._create_rows(), key
        return self._rows

    async def _create_rows(self) -> list[SkillRow]:
        host = self._host
        approvals = {(each.origin, each.uri): each for each in await host.store.approvals()}
        decisions = {(each.origin, each.uri): each for each in await host.store.decisions()}
        same_names = _same_names(host.names.skills)
        rows = [_row(skill, approvals, decisions, same_names) for skill in host.names.skills]
        listed = {(row.origin, row.uri) for row in rows}
        labels = {origin.label: origin for origin in host.origins}
        missing = [approval for key, approval in approvals.items() if key not in listed]
        rows += [_unlisted(approval, labels.get(approval.origin)) for approval in missing]
        return sorted(rows, key=lambda row: (row.origin, row.uri))


def _row(
    skill: NamedEntry,
    approvals: Mapping[tuple[str, str], Approval],
    decisions: Mapping[tuple[str, str], LogLine],
    same_names: Mapping[str, Sequence[str]],
) -> SkillRow:
    origin, entry = skill.origin, skill.entry
    key = origin.label, entry.uri
    state = state_of(skill, approvals.get(key), decisions.get(key))
    others = (name for name in same_names[fold(entry.name)] if name != skill.name)
    return SkillRow(
        skill.name,
        origin.label,
        entry.uri,
        entry.description,
        len(entry.files) if entry.is_complete else None,
        entry.size if entry.is_complete and "size" not in entry.gaps else None,
        state,
        is_unreachable(origin),
        tuple(islice(others, _MAX_NAMES)),
    )


def _unlisted(approval: Approval, origin: Origin | None) -> SkillRow:
    name, files = f"{approval.origin}:{approval.uri}", len(file_digests(approval.contents))
    return SkillRow(name, approval.origin, approval.uri, "", files, None, "unlisted", is_unreachable(origin))


def _same_names(skills: Iterable[NamedEntry]) -> dict[str, list[str]]:
    """The unique names of all skills with the same name, by that name (N1)."""
    same_names: dict[str, list[str]] = {}
    for skill in skills:
        same_names.setdefault(fold(skill.entry.name), []).append(skill.name)
    return same_names


async def list_origins(host: Host) -> list[OriginRow]:
    """Every origin, by label."""
    return [await _origin_row(origin) for origin in sorted(host.origins, key=lambda origin: origin.label)]


async def _origin_row(origin: Origin) -> OriginRow:
    return OriginRow(origin, origin.kind, tuple(await origin.problems()) if origin.kind else ())


async def list_questions(host: Host) -> list[QuestionRow]:
    """Open questions, oldest first. Equal questions of several programs are one row."""
    groups: dict[tuple[str, ...], list[Question]] = {}
    for question in await host.store.questions(time.time()):
        groups.setdefault(question_key(question), []).append(question)
    return [
        QuestionRow(questions[0], tuple(dict.fromkeys(question.by for question in questions)))
        for questions in groups.values()
    ]


def routes(desk: Desk) -> list[BaseRoute]:
    """The overview, the number of open questions, and the page of origins."""
    host = desk.host

    async def overview(request: Request) -> Response:
        choice = Choice.of(request.query_params)
        match request.query_params.get("part"):
            case "questions":
                return page_response(request, "desk/_questions.html", questions=await list_questions(host))
            case "origins":
                return page_response(request, "desk/_origins.html", origins=await list_origins(host))
            case "skills" | "1":
                return page_response(request, "desk/_skills.html", listing=await desk.rows.find(choice))
            case _:
                return await desk.show(
                    request,
                    "desk/overview.html",
                    questions=await list_questions(host),
                    origins=await list_origins(host),
                    listing=await desk.rows.find(choice),
                    is_answered=request.query_params.get("done") == "answered",
                )

    async def waiting(request: Request) -> Response:
        return page_response(request, "desk/_waiting.html", waiting=len(await list_questions(host)))

    async def origins(request: Request) -> Response:
        found = await list_origins(host)
        if request.query_params.get("part"):
            return page_response(request, "desk/_origin_cards.html", origins=found)
        return await desk.show(request, "desk/origins.html", origins=found)

    return [Route("/", overview), Route("/waiting", waiting), Route("/origins", origins)]
