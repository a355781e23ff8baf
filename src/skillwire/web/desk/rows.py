"""What the overview shows: the host's origins, skills and the questions that wait, as rows. Nothing is fetched."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from skillwire.skill.approval import file_digests
from skillwire.skill.entry import fold
from skillwire.web.desk.places import skill_place
from skillwire.web.desk.standings import STATES, is_away, state_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from skillwire.host.names import NamedEntry
    from skillwire.host.origins import Origin
    from skillwire.host.runtime import Host
    from skillwire.skill import Diagnostic
    from skillwire.skill.approval import Approval
    from skillwire.store.contract import LogLine, Question
    from skillwire.web.desk.standings import State

T = TypeVar("T")
PAGE_ROWS = 100
_LONGEST_QUERY = 200
_MOST_NAMES = 10  # that share one, shown beside each


@dataclass(frozen=True, slots=True)
class SkillRow:
    """One skill: a name that means it alone, where it is from, how one stands to it.

    How many files it has, and bytes in them, is ``None`` where its listing does not say.
    """

    name: str
    origin: str
    uri: str
    description: str
    files: int | None
    size: int | None
    state: State
    away: bool
    same_name: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Its page."""
        return skill_place(self.origin, self.uri)


@dataclass(frozen=True, slots=True)
class OriginRow:
    """One origin and its health."""

    origin: Origin
    dialect: str
    problems: tuple[Diagnostic, ...]

    @property
    def skills(self) -> int:
        """How many it lists."""
        return len(self.origin.entries)


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """What one or several askers want to know about one content; ``first`` stands for all."""

    first: Question
    askers: tuple[str, ...]

    @property
    def place(self) -> str:
        """Where it is answered."""
        return f"/question/{self.first.id}"


class Choice(NamedTuple):
    """What of the skills is to be shown."""

    words: str = ""
    state: str = ""
    origin: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Choice:
        """From the address of the page; what cannot be understood there means everything."""
        number = query.get("page", "")[:6]
        return cls(
            query.get("q", "").strip()[:_LONGEST_QUERY],
            query.get("state", ""),
            query.get("origin", ""),
            max(int(number), 1) if number.isascii() and number.isdigit() else 1,
        )

    def cut(self, rows: Sequence[T]) -> Sequence[T]:
        """The rows of this page."""
        return rows[(self.page - 1) * PAGE_ROWS : self.page * PAGE_ROWS]

    def fits(self, row: SkillRow) -> bool:
        """Whether a skill is among those that are wanted."""
        if self.origin not in ("", row.origin):
            return False
        if self.state == "unreachable":
            return row.away and self._says(row)
        if self.state == "collision":
            return bool(row.same_name) and self._says(row)
        return self.state in ("", row.state) and self._says(row)

    def _says(self, row: SkillRow) -> bool:
        return self.says(f"{row.name} {row.uri} {row.description}")

    def says(self, text: str) -> bool:
        """Whether every word that is looked for is in ``text``."""
        text = text.casefold()
        return all(word in text for word in self.words.casefold().split())


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the skills that are wanted, and how many there are of each state among those with these words.

    ``found`` are in the chosen state, ``fitting`` in any, and ``total`` are all that are known.
    """

    choice: Choice
    rows: Sequence[SkillRow]
    found: int
    fitting: int
    total: int
    states: Mapping[str, int]

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return pages_of(self.found)


def pages_of(count: int) -> int:
    """How many pages so many rows take; at least one."""
    return max(1, -(-count // PAGE_ROWS))


class SkillRows:
    """Every skill that is known, kept until the memory or an origin says something new."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._rows: list[SkillRow] = []
        self._key: tuple[object, ...] = ()

    async def find(self, choice: Choice) -> Listing:
        """One page of those that are wanted."""
        known, in_any_state = await self.all(), choice._replace(state="")
        rows = [row for row in known if in_any_state.fits(row)]
        counts = Counter[str](row.state for row in rows)
        counts.update(
            unreachable=sum(row.away for row in rows), collision=sum(bool(row.same_name) for row in rows)
        )
        states = {state: counts[state] for state in (*STATES, "unreachable", "collision") if counts[state]}
        fitting = [row for row in rows if choice.fits(row)]
        choice = choice._replace(page=min(choice.page, pages_of(len(fitting))))
        return Listing(choice, choice.cut(fitting), len(fitting), len(rows), len(known), states)

    async def all(self) -> list[SkillRow]:
        """Those that origins list, and what was approved and is not listed any more, by origin and URI."""
        health = tuple((origin.label, is_away(origin)) for origin in self._host.origins)
        key = await self._host.store.version(), self._host.names, health  # names are made anew with each listing
        if key != self._key:
            self._rows, self._key = await self._made(), key
        return self._rows

    async def _made(self) -> list[SkillRow]:
        host = self._host
        approvals = {(each.origin, each.uri): each for each in await host.store.approvals()}
        decisions = {(each.origin, each.uri): each for each in await host.store.decisions()}
        bearers = _bearers(host.names.skills)
        rows = [_row(skill, approvals, decisions, bearers) for skill in host.names.skills]
        listed = {(row.origin, row.uri) for row in rows}
        labels = {origin.label: origin for origin in host.origins}
        missing = [approval for key, approval in approvals.items() if key not in listed]
        rows += [_unlisted(approval, labels.get(approval.origin)) for approval in missing]
        return sorted(rows, key=lambda row: (row.origin, row.uri))


def _row(
    skill: NamedEntry,
    approvals: Mapping[tuple[str, str], Approval],
    decisions: Mapping[tuple[str, str], LogLine],
    bearers: Mapping[str, Sequence[str]],
) -> SkillRow:
    origin, entry = skill.origin, skill.entry
    key = origin.label, entry.uri
    state = state_of(skill, approvals.get(key), decisions.get(key))
    others = (name for name in bearers[fold(entry.name)] if name != skill.name)
    return SkillRow(
        skill.name,
        origin.label,
        entry.uri,
        entry.description,
        len(entry.files) if entry.is_complete else None,
        entry.size if entry.is_complete and "size" not in entry.gaps else None,
        state,
        is_away(origin),
        tuple(islice(others, _MOST_NAMES)),
    )


def _unlisted(approval: Approval, origin: Origin | None) -> SkillRow:
    name, files = f"{approval.origin}:{approval.uri}", len(file_digests(approval.contents))
    return SkillRow(name, approval.origin, approval.uri, "", files, None, "unlisted", is_away(origin))


def _bearers(skills: Iterable[NamedEntry]) -> dict[str, list[str]]:
    """The full names of all skills that bear a name, by that name (N1)."""
    bearers: dict[str, list[str]] = {}
    for skill in skills:
        bearers.setdefault(fold(skill.entry.name), []).append(skill.name)
    return bearers


async def list_origins(host: Host) -> list[OriginRow]:
    """Every origin, by label."""
    return [await _origin_row(origin) for origin in sorted(host.origins, key=lambda origin: origin.label)]


async def _origin_row(origin: Origin) -> OriginRow:
    return OriginRow(origin, origin.kind, tuple(await origin.problems()) if origin.kind else ())


async def list_questions(host: Host) -> list[QuestionRow]:
    """What waits for an answer, the longest-waiting first; the same question of several askers once."""
    groups: dict[tuple[str, ...], list[Question]] = {}
    for question in await host.store.questions(time.time()):
        groups.setdefault(same_question(question), []).append(question)
    return [
        QuestionRow(questions[0], tuple(dict.fromkeys(question.by for question in questions)))
        for questions in groups.values()
    ]


def same_question(question: Question) -> tuple[str, ...]:
    """What makes two questions one for a person. One about what cannot be verified is always its own (V7)."""
    alone = "" if question.content else question.id
    return question.kind, question.origin, question.entry.uri, question.content, question.target, alone
