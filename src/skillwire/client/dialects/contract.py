"""The interface of a dialect, and reading directories, which all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from skillwire.catalog.contract import DirectoryChild
from skillwire.client.dialects.requests import each_page, read_content
from skillwire.client.shapes import as_object, as_size
from skillwire.errors import FormatError, LimitError, NotFoundError, ProtocolError, SkillwireError
from skillwire.skill.diagnostics import KINDS, Diagnostic
from skillwire.skill.entry import invalid_entry
from skillwire.skill.uri import is_within, parse_uri, skill_root
from skillwire.wire.extension import DIRECTORY_READ, EXTENSION_ID
from skillwire.wire.media import DIRECTORY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from skillwire.client.connection import Connection
    from skillwire.skill import SkillEntry, SkillUri

DialectName: TypeAlias = Literal["extension", "index", "sep-2076", "native", "fallback"]


class Children(list[DirectoryChild]):
    """The children of a directory. With ``error`` they are partial (B3)."""

    error: SkillwireError | None = None


class Dialect(ABC):
    """A dialect on one connection. ``report`` is called for every entry that is skipped."""

    name: ClassVar[DialectName]

    def __init__(self, connection: Connection, report: Callable[[Diagnostic], None]) -> None:
        self.connection = connection
        self.limits = connection.limits
        self.report = report

    @abstractmethod
    def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """The listing, page by page. Invalid entries are reported and skipped."""

    @abstractmethod
    async def get_skill(self, uri: str) -> SkillEntry:
        """The current entry of one skill, with all details that the server has."""

    async def read(self, uri: str, at_most: int, skill: str = "") -> bytes:  # noqa: ARG002 - native needs it
        """The bytes at ``uri``, unverified; ``skill`` is the URI of their skill, if known."""
        return await read_content(self.connection, uri, at_most)

    @property
    def reads_directories(self) -> bool:
        """K2: whether ``resources/directory/read`` may be requested. Servers of the drafts may have it too."""
        declared = self.connection.capabilities
        settings = (declared.extensions or {}).get(EXTENSION_ID) if declared else None
        return bool(settings and settings.get("directoryRead") is True)

    async def read_directory(self, uri: str) -> Children:
        """``resources/directory/read``, all pages up to a bound of the listing (D1)."""
        if not self.reads_directories:
            raise ProtocolError(
                "directory-unsupported",
                f"the server cannot read directories, such as {uri!r:.300}",
                "the entry of a skill lists its files",
                side="local",
                rule="K2",
            )
        folder = parse_uri(uri.removesuffix("/"))
        found: dict[str, DirectoryChild] = {}
        ended: SkillwireError | None = None
        try:
            async for items in each_page(self.connection, DIRECTORY_READ, "resources", uri=uri):
                for item in items:
                    try:
                        child = _parse_child(item, folder)
                    except FormatError as error:
                        self.skip(FormatError("child-invalid", error.message, error.hint, rule="D1"), uri)
                    else:
                        found.setdefault(child.name, child)
        except (LimitError, ProtocolError) as error:
            if error.rule != "B3" or not found:
                raise
            ended = error
            self.report(Diagnostic("listing-partial", error.message, error.hint, file=uri, skill=uri))
        children = Children(found[name] for name in sorted(found))
        children.error = ended
        return children

    def skip(self, error: SkillwireError, uri: object) -> None:
        """Report an invalid entry, which is then skipped."""
        self.report(problem_of(error, uri))


def _parse_child(item: object, folder: SkillUri) -> DirectoryChild:
    fields = as_object(item)
    uri = fields.get("uri")
    if not isinstance(uri, str):
        raise invalid_entry("a child has no URI", "D1")
    parsed = parse_uri(uri.removesuffix("/"))
    if not is_within(folder, parsed) or len(parsed.segments) != len(folder.segments) + 1:
        raise invalid_entry(f"{uri!r:.200} is not directly inside {folder!s:.200}", "D1")
    return DirectoryChild(
        uri,
        parsed.segments[-1],
        is_directory=fields.get("mimeType") == DIRECTORY,
        size=as_size(fields.get("size")),
    )


def requested_root(uri: str) -> SkillUri:
    """The root of the skill at ``uri``; ``NotFoundError`` if it is not a ``SKILL.md``, as on a server (G1)."""
    parsed = parse_uri(uri)
    try:
        return skill_root(parsed)
    except FormatError as error:
        raise NotFoundError("skill-unknown", error.message, error.hint, rule="G1") from error


def problem_of(error: SkillwireError, uri: object) -> Diagnostic:
    """The diagnostic for an invalid entry; ``uri`` is the server's value, of any type."""
    name = str(uri)[:300] if isinstance(uri, str) else "an entry without a URI"
    reference = error.reference if error.reference in KINDS else "entry-invalid"
    return Diagnostic(reference, error.message, error.hint, file=name, skill=name, broken=error.rule)
