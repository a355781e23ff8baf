"""What a dialect does, and what all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from skillwire.client.content import read_content
from skillwire.errors import ProtocolError, SkillwireError
from skillwire.skill.diagnostics import KINDS, Diagnostic

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from skillwire.catalog.contract import DirectoryChild
    from skillwire.client.connection import Connection
    from skillwire.skill import SkillEntry

DialectName: TypeAlias = Literal["extension", "index", "sep-2076", "native", "fallback"]


class Dialect(ABC):
    """How to speak with one server. ``report`` hears of whatever was left out and why."""

    name: ClassVar[DialectName]

    def __init__(self, connection: Connection, report: Callable[[Diagnostic], None]) -> None:
        self.connection = connection
        self.limits = connection.limits
        self.report = report

    @abstractmethod
    def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """The listing, page by page. What cannot be used is reported and left out."""

    @abstractmethod
    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of one skill, as the server gives it now, with all that it promises."""

    async def read(self, uri: str, at_most: int) -> bytes:
        """The bytes at ``uri``, unverified."""
        return await read_content(self.connection, uri, at_most)

    async def read_directory(self, uri: str) -> list[DirectoryChild]:
        """What is directly inside a directory."""
        raise ProtocolError(
            "directory-unsupported",
            f"the server does not read directories, so not {uri!r:.300}",
            "the entry of a skill lists its files",
            side="local",
            rule="K2",
        )

    def leave_out(self, error: SkillwireError, uri: object) -> None:
        """Report an entry that cannot be used."""
        self.report(problem_of(error, uri))


def problem_of(error: SkillwireError, uri: object) -> Diagnostic:
    """A refused entry as a problem; ``uri`` is whatever the server called it."""
    name = str(uri)[:300] if isinstance(uri, str) else "an entry without a URI"
    reference = error.reference if error.reference in KINDS else "entry-invalid"
    return Diagnostic(reference, error.message, error.hint, file=name, skill=name, broken=error.rule)
