"""The contract of a store: origins, entries last seen, approvals, grants, questions, and a log of events.

Every implementation passes ``tests/contracts/test_store_contract.py``:

- Each call is one transaction: it takes effect completely or not at all, even if the process is killed.
- Several processes may use one store at once. A writer waits for others for a limited time, then it raises
  ``StoreError``.
- The log is append-only.
- A store makes no decisions. Rules are in ``skill/``, choices in ``host/``.
- Times are seconds since 1970. They are passed in; a store reads no clock.

A question is a request for approval that another process can answer. The process that needs the approval adds the
question and renews it while it waits. The process that the user works with answers it. A decision about a content
answers every question about that content.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, Unpack

from skillwire.amounts import utc_text
from skillwire.limits import MIB
from skillwire.skill.approval import fingerprint_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence

    from skillwire.skill.approval import Approval, Contents
    from skillwire.skill.entry import SkillEntry
    from skillwire.skill.hidden import HiddenFind

MOST_QUESTIONS: Final = 200
"""The number of questions that may be open at once."""
LARGEST_QUESTION: Final = 4 * MIB
"""The size of a stored question, in bytes."""
KEPT_SECONDS: Final = 3600.0
"""How long an answer is kept after its question expired."""
LOG_PAGE: Final = 500
"""The number of lines that ``log_pages`` reads at once."""

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
"""The events in which a user decides about a skill."""


@dataclass(frozen=True, slots=True)
class StoredOrigin:
    """An origin that a user added: its label, and its settings (a folder, or an ``mcpServers`` entry)."""

    label: str
    settings: Mapping[str, Any]
    added_at: float


@dataclass(frozen=True, slots=True)
class SeenEntries:
    """The last listing of an origin.

    ``asked`` has entries that were requested later, for skills whose listed entry has less detail.
    """

    entries: tuple[SkillEntry, ...]
    at: float
    is_complete: bool = True
    asked: tuple[SkillEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class LogLine:
    """One event: its kind, the skill and its origin, the user or program that caused it, the time, and facts."""

    what: Happening
    origin: str
    uri: str
    by: str
    at: float
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    number: int = 0

    def to_json(self) -> dict[str, Any]:
        """The line as a JSON document, with its time in UTC."""
        who = {"what": self.what, "origin": self.origin, "uri": self.uri, "by": self.by}
        return {"number": self.number, "at": utc_text(self.at), **who, "facts": dict(self.facts)}


class LogFilter(TypedDict, total=False):
    """Which lines of the log: of an origin, a skill, these kinds, with a number below ``before``.

    ``by`` and ``about`` are substrings of ``LogLine.by`` and of the URI; case does not matter.
    """

    origin: str | None
    uri: str | None
    what: Collection[str] | None
    by: str
    about: str
    before: int | None


@dataclass(frozen=True, slots=True)
class Question:
    """A host's ``ApprovalRequest``, stored so that a user can answer it in another process.

    ``kind``, ``target``, ``address`` and ``lasts`` are those of the request; ``by`` is the name of the asking
    process, for display. The question expires at ``waits_until`` unless it is renewed. ``hidden`` and ``diff`` are
    findings in the content, if the asking process has read it (V5): the answering process may not be able to read
    it.
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
    address: str = ""

    @property
    def content(self) -> str:
        """The fingerprint of the content; empty if nothing about it can be verified (V7)."""
        return fingerprint_of(self.entry)


@dataclass(frozen=True, slots=True)
class Answered:
    """A user's answer to a question. ``recorded``: the store also has it as an approval or a denial."""

    yes: bool
    by: str
    at: float
    grants: frozenset[str] = frozenset()
    remember: bool = True
    note: str = ""
    recorded: bool = False


class Store(ABC):
    """The data of hosts and gateways that outlives a process."""

    @abstractmethod
    async def put_origin(self, origin: StoredOrigin) -> None:
        """Add or replace an origin."""

    @abstractmethod
    async def remove_origin(self, label: str) -> bool:
        """Remove an origin, its entries and its approvals; whether it existed. The log stays.

        Entries and approvals under ``label#…`` are removed too: no label contains ``#``, so they belong to this
        origin.
        """

    @abstractmethod
    async def origins(self) -> Sequence[StoredOrigin]:
        """All origins, sorted by label."""

    @abstractmethod
    async def put_entries(self, label: str, seen: SeenEntries) -> None:
        """Store the listing of an origin, and replace the earlier one."""

    @abstractmethod
    async def add_entry(self, label: str, entry: SkillEntry) -> None:
        """Add a requested entry to ``asked`` of the last listing."""

    @abstractmethod
    async def entries(self, label: str) -> SeenEntries | None:
        """The last listing of an origin, if there is one."""

    @abstractmethod
    async def put_approval(self, approval: Approval, line: LogLine, *, after: int | None = None) -> bool:
        """Store an approval, replace the earlier one of the same skill, and log it; whether it was stored.

        The same transaction answers open questions of the kind ``load`` about this content, and about content that
        was unknown when the question was asked (V5).

        With ``after``, the approval is stored only if ``after`` is still the number of the skill's newest decision
        (0 if it has none), so that it does not overrule a later decision.
        """

    @abstractmethod
    async def put_denial(self, contents: Contents, line: LogLine, *, after: int | None = None) -> bool:
        """Log that a user declined this content of the line's skill, and remove an approval of the same content.

        Questions, ``after`` and the result are as in ``put_approval``.
        """

    @abstractmethod
    async def change_grants(self, approval: Approval, grants: frozenset[str], line: LogLine) -> bool:
        """Replace the grants of ``approval`` and log it; whether it was still stored.

        An approval that was revoked or replaced meanwhile is not restored.
        """

    @abstractmethod
    async def remove_approval(self, origin: str, uri: str, line: LogLine, *, only: Approval | None = None) -> bool:
        """Remove an approval and its grants, and log it; whether it existed.

        With ``only``, remove only this approval: a newer one of the same skill stays.
        """

    @abstractmethod
    async def approval(self, origin: str, uri: str) -> Approval | None:
        """The approval of one skill."""

    @abstractmethod
    async def approvals(self, origin: str | None = None) -> Sequence[Approval]:
        """All approvals, sorted by origin and URI."""

    @abstractmethod
    async def log(self, line: LogLine) -> None:
        """Append a line."""

    @abstractmethod
    async def log_news(self, lines: Sequence[LogLine]) -> int:
        """Append the lines whose facts differ from the newest line of the same kind and skill; how many.

        In one transaction, so that two processes do not log the same event twice.
        """

    @abstractmethod
    async def lines(self, *, limit: int = 100, **wanted: Unpack[LogFilter]) -> Sequence[LogLine]:
        """The newest of the wanted lines, newest first."""

    @abstractmethod
    async def decisions(self, origin: str | None = None, uri: str | None = None) -> Sequence[LogLine]:
        """The newest line of each skill that is ``approved``, ``denied``, ``revoked`` or ``enabled``.

        Sorted by origin and URI. Only decisions of users about loading a skill count, not those of a policy, about
        tools, or about other origins.
        """

    @abstractmethod
    async def put_question(self, question: Question) -> None:
        """Add a question, and remove expired ones. A question with the same id is not replaced.

        ``LimitError`` if too many questions are open, or this one is too large.
        """

    # ``key`` is the id of a question.

    @abstractmethod
    async def renew_question(self, key: str, until: float) -> bool:
        """Let a question wait until ``until``; whether it still exists."""

    @abstractmethod
    async def questions(self, now: float) -> Sequence[Question]:
        """The open questions that have not expired, the oldest first."""

    @abstractmethod
    async def answer_question(self, key: str, answered: Answered) -> bool:
        """Answer a question; ``False`` if it does not exist any more, or already has an answer."""

    @abstractmethod
    async def answer_to(self, key: str) -> Answered | None:
        """The answer to a question, if there is one."""

    @abstractmethod
    async def withdraw_question(self, key: str) -> Answered | None:
        """Remove a question, so that it can no longer be answered; its answer, if it had one."""

    @abstractmethod
    async def version(self) -> int:
        """A number that differs after every change by any process. Cheap.

        ``renew_question`` does not count as a change: a program that shows questions checks ``waits_until``.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close files and connections."""


async def log_pages(store: Store, **wanted: Unpack[LogFilter]) -> AsyncGenerator[Sequence[LogLine]]:
    """All wanted lines, newest first, page by page. No page is empty."""
    while lines := await store.lines(limit=LOG_PAGE, **wanted):
        yield lines
        if len(lines) < LOG_PAGE:
            return
        wanted["before"] = lines[-1].number


async def newest_line(
    store: Store, fits: Callable[[LogLine], bool], **wanted: Unpack[LogFilter]
) -> LogLine | None:
    """The newest of the wanted lines that fits."""
    async with aclosing(log_pages(store, **wanted)) as pages:
        async for lines in pages:
            for line in lines:
                if fits(line):
                    return line
    return None
