"""What a host remembers between runs: origins, entries last seen, approvals, grants, and what happened.

One contract; ``tests/contracts/test_store_contract.py`` holds every implementation to it:

- Each call is one transaction: it happened as a whole or not at all, also if the process is killed.
- Two processes may use one store at once; a writer waits for the other for a while, then ``StoreError``.
- The log only grows. Nothing here decides anything: rules live in ``skill/``, choices in ``host/``.
- Times are seconds since 1970 and are passed in; no clock is read here.

Questions are how processes reach a person who is elsewhere: whoever asks puts one, and renews it while they live;
whoever has the person before them answers it. A decision about a content answers every question about it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from skillwire.limits import MIB
from skillwire.skill.approval import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from skillwire.skill.approval import Approval, Contents
    from skillwire.skill.entry import SkillEntry
    from skillwire.skill.hidden import HiddenFind

MOST_QUESTIONS: Final = 200
"""That are open at once."""
LARGEST_QUESTION: Final = 4 * MIB
"""In bytes, as it is kept."""
KEPT_SECONDS: Final = 3600.0
"""How long an answer waits for an asker who was not heard of."""

Happening: TypeAlias = Literal[
    "approved",
    "denied",
    "revoked",
    "enabled",
    "granted",
    "loaded",
    "read",
    "refused",
    "served",
    "origin-added",
    "origin-removed",
]


DECISIONS: Final[tuple[Happening, ...]] = ("approved", "denied", "revoked", "enabled")
"""What people decide about skills."""


@dataclass(frozen=True, slots=True)
class StoredOrigin:
    """An origin that a person added: its label, and how to reach it (a folder, or an ``mcpServers`` entry)."""

    label: str
    settings: Mapping[str, Any]
    added_at: float


@dataclass(frozen=True, slots=True)
class SeenEntries:
    """What an origin listed when it was last asked.

    ``asked`` has the fuller entries of skills that were listed short and asked for since.
    """

    entries: tuple[SkillEntry, ...]
    at: float
    is_complete: bool = True
    asked: tuple[SkillEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class LogLine:
    """One thing that happened: what, to which skill of which origin, by whom, when, and facts about it."""

    what: Happening
    origin: str
    uri: str
    by: str
    at: float
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    number: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """What an agent or a gateway asks a person who is elsewhere, as a host's ``ApprovalRequest`` says it.

    ``kind``, ``target`` and ``lasts`` are those of the request; ``by`` names the asker, for people. Whoever asks
    is alive until ``waits_until``, and says so again before. ``hidden`` and ``diff`` are what the asker knows of
    the content, if it was read for a person already (V5): the one who answers may not be able to read it.
    """

    id: str
    kind: str
    origin: str
    entry: SkillEntry
    by: str
    asked_at: float
    waits_until: float
    target: str = ""
    hidden: tuple[HiddenFind, ...] = ()
    diff: tuple[str, ...] = ()
    lasts: bool = True

    @property
    def content(self) -> str:
        """The fingerprint of the content that it is about; empty if nothing about it can be verified (V7)."""
        return fingerprint_of(self.entry)


@dataclass(frozen=True, slots=True)
class Answered:
    """A person's answer to a question. ``recorded``: it is also in the store, as an approval or a denial."""

    yes: bool
    by: str
    at: float
    grants: frozenset[str] = frozenset()
    remember: bool = True
    note: str = ""
    recorded: bool = False


class Store(ABC):
    """The memory of a host."""

    @abstractmethod
    async def put_origin(self, origin: StoredOrigin) -> None:
        """Add or replace an origin."""

    @abstractmethod
    async def remove_origin(self, label: str) -> bool:
        """Forget an origin, what it listed and what was approved of it; whether there was one. The log stays.

        Entries and approvals under ``label#…`` go too: no label has a ``#``, so they are about this origin.
        """

    @abstractmethod
    async def origins(self) -> Sequence[StoredOrigin]:
        """Every origin, by label."""

    @abstractmethod
    async def put_entries(self, label: str, seen: SeenEntries) -> None:
        """Remember what an origin lists, in place of everything that was remembered about it."""

    @abstractmethod
    async def add_entry(self, label: str, entry: SkillEntry) -> None:
        """Add to ``asked`` of what an origin listed last: the fuller entry of one skill."""

    @abstractmethod
    async def entries(self, label: str) -> SeenEntries | None:
        """What an origin listed last, if it was ever asked."""

    @abstractmethod
    async def put_approval(self, approval: Approval, line: LogLine, *, after: int | None = None) -> bool:
        """Remember an approval, in place of an earlier one for the same skill, and log it, in one step.

        Open questions of the kind ``load`` about exactly this content, or about files that were not known yet
        (V5), are answered by it, in the same step.
        With ``after``, only if that is the number of the skill's newest decision still, 0 if it has none: whoever
        decided just now is not overruled. Whether it was stored.
        """

    @abstractmethod
    async def put_denial(self, contents: Contents, line: LogLine, *, after: int | None = None) -> bool:
        """Log a person's no to exactly this content of the line's skill; an approval of it goes. One step.

        Open questions of the kind ``load`` about exactly this content, or about files that were not known yet
        (V5), are answered by it, in the same step.
        ``after``, and what is returned, are those of ``put_approval``.
        """

    @abstractmethod
    async def change_grants(self, approval: Approval, grants: frozenset[str], line: LogLine) -> bool:
        """Give exactly ``approval`` other grants, and log it, in one step; whether it was still there.

        One that somebody else revoked or renewed meanwhile is not brought back.
        """

    @abstractmethod
    async def remove_approval(self, origin: str, uri: str, line: LogLine, *, only: Approval | None = None) -> bool:
        """Forget an approval and its grants, and log it, in one step; whether there was one.

        With ``only``, exactly that one: a newer approval of the same skill stays.
        """

    @abstractmethod
    async def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval of one skill."""

    @abstractmethod
    async def approvals(self, origin: str | None = None) -> Sequence[Approval]:
        """Every approval, by origin and URI."""

    @abstractmethod
    async def log(self, line: LogLine) -> None:
        """Add a line."""

    @abstractmethod
    async def log_news(self, lines: Sequence[LogLine]) -> int:
        """Add those lines that say another thing than the newest of their kind about their skill; how many.

        In one step: what two processes note at once is there once.
        """

    @abstractmethod
    async def lines(
        self,
        *,
        limit: int = 100,
        origin: str | None = None,
        uri: str | None = None,
        what: Collection[str] | None = None,
        by: str = "",
        about: str = "",
        before: int | None = None,
    ) -> Sequence[LogLine]:
        """The newest lines, newest first: of an origin, a skill, these happenings, below this number.

        ``by`` and ``about`` are parts of who did it and of the URI, in capitals or not.
        """

    @abstractmethod
    async def decisions(self, origin: str | None = None, uri: str | None = None) -> Sequence[LogLine]:
        """The newest line ``approved``, ``denied``, ``revoked`` or ``enabled`` of each skill, by origin and URI.

        Of those about reading a skill: not what a policy decided, nor what was said about tools or other origins.
        """

    @abstractmethod
    async def put_question(self, question: Question) -> None:
        """Ask. Questions whose askers are gone are forgotten. What has that id already stays as it is.

        ``LimitError`` if too many are open, or it is too large.
        """

    # ``key`` is the id of a question.

    @abstractmethod
    async def renew_question(self, key: str, until: float) -> bool:
        """The asker still waits, until then; whether the question is still there."""

    @abstractmethod
    async def questions(self, now: float) -> Sequence[Question]:
        """What is open, and whose asker is alive, in the order of asking."""

    @abstractmethod
    async def answer_question(self, key: str, answered: Answered) -> bool:
        """Answer; whether that was the answer. ``False`` if the question is gone, or had one: the first counts."""

    @abstractmethod
    async def answer_to(self, key: str) -> Answered | None:
        """What was answered, if anything."""

    @abstractmethod
    async def withdraw_question(self, key: str) -> Answered | None:
        """Take a question back; the answer, if it had one. Nobody can answer it afterwards."""

    @abstractmethod
    async def version(self) -> int:
        """Another number than before if anything in the store changed since, whoever changed it. Cheap.

        That an asker still waits is no change: whoever shows questions looks at ``waits_until``.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of whatever is held open."""
