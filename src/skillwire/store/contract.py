"""What a host remembers between runs: origins, entries last seen, approvals, grants, and what happened.

One contract; ``tests/contracts/test_store_contract.py`` holds every implementation to it:

- Each call is one transaction: it happened as a whole or not at all, also if the process is killed.
- Two processes may use one store at once; a writer waits for the other for a while, then ``StoreError``.
- The log only grows. Nothing here decides anything: rules live in ``skill/``, choices in ``host/``.
- Times are seconds since 1970 and are passed in; no clock is read here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.skill.approval import Approval
    from skillwire.skill.entry import SkillEntry

Happening: TypeAlias = Literal[
    "approved",
    "denied",
    "revoked",
    "granted",
    "loaded",
    "read",
    "refused",
    "served",
    "origin-added",
    "origin-removed",
]


@dataclass(frozen=True, slots=True)
class StoredOrigin:
    """An origin that a person added: its label, and how to reach it (a folder, or an ``mcpServers`` entry)."""

    label: str
    settings: Mapping[str, Any]
    added_at: float


@dataclass(frozen=True, slots=True)
class SeenEntries:
    """What an origin listed when it was last asked."""

    entries: tuple[SkillEntry, ...]
    at: float
    is_complete: bool = True


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


class Store(ABC):
    """The memory of a host."""

    @abstractmethod
    async def put_origin(self, origin: StoredOrigin) -> None:
        """Add or replace an origin."""

    @abstractmethod
    async def remove_origin(self, label: str) -> bool:
        """Forget an origin, what it listed and what was approved of it; whether there was one. The log stays.

        Entries under ``label#…`` go too: no label has a ``#``, so that they are about this origin.
        """

    @abstractmethod
    async def origins(self) -> Sequence[StoredOrigin]:
        """Every origin, by label."""

    @abstractmethod
    async def put_entries(self, label: str, seen: SeenEntries) -> None:
        """Remember what an origin lists."""

    @abstractmethod
    async def entries(self, label: str) -> SeenEntries | None:
        """What an origin listed last, if it was ever asked."""

    @abstractmethod
    async def put_approval(self, approval: Approval, line: LogLine) -> None:
        """Remember an approval, in place of an earlier one for the same skill, and log it, in one step."""

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
    async def lines(
        self, *, limit: int = 100, origin: str | None = None, uri: str | None = None
    ) -> Sequence[LogLine]:
        """The newest lines, newest first."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of whatever is held open."""
