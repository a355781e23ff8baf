"""``SkillsClient``: the skills of one connected server, verified by default.

It wraps your own ``Client`` or ``ClientSession`` of the SDK; ``connect`` opens a connection for it. Nothing is
fetched in advance (V5): listing only lists, and a file is read when it is requested.

``read_skill``, ``read_resource`` and ``read_skill_uri`` return bytes that match an entry, or raise an error. Only
``read_unverified`` returns unverified bytes.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mcp import Client

from skillwire.amounts import counted
from skillwire.catalog.export import export_skill
from skillwire.catalog.names import find_skill
from skillwire.client.bounds import as_list, as_object
from skillwire.client.connection import Connection
from skillwire.client.dialects.by_name import Activation, NamedSkill, NativeDialect, Sep2076Dialect
from skillwire.client.dialects.contract import read_content
from skillwire.client.dialects.detection import DIALECTS, detect_dialect
from skillwire.client.dialects.extension import ExtensionDialect
from skillwire.errors import (
    FormatError,
    LimitError,
    NotFoundError,
    ProtocolError,
    SkillwireError,
    UpstreamError,
    VerificationError,
)
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.uri import SKILL_MD, format_uri, parse_path, parse_uri, skill_md_uri
from skillwire.telemetry import span
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping

    from mcp import ClientSession

    from skillwire.catalog.git import GitCatalog
    from skillwire.client.dialects import DialectName
    from skillwire.client.dialects.contract import Children, ClientDialect
    from skillwire.client.remote import RemoteCatalog
    from skillwire.skill import Diagnostic, SkillEntry, SkillUri
    from skillwire.skill.verify import VerifiedFile

    Extractor = Callable[[str], Iterable[str]]
    ReadBytes = Callable[[str, int, str], Awaitable[bytes]]

_D = TypeVar("_D", bound="ClientDialect")
_MAX_IN_INSTRUCTIONS = 100
_MAX_COMPLETED = 100
_MAX_ASKED = 32  # folders around a file that are tried as skills
# Words first, then a scheme in each: neither expression backtracks, since a server chooses the text.
_WORD = re.compile(r"[^\s<>\"'`()\[\]{}]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}://")


class UnverifiedFile(NamedTuple):
    """Bytes that were not verified."""

    uri: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Listing:
    """The skills that a server lists. With ``error`` the listing is partial or empty."""

    entries: tuple[SkillEntry, ...] = ()
    error: SkillwireError | None = None
    problems: tuple[Diagnostic, ...] = ()
    dialect: DialectName | None = None


class SkillsClient:
    """The skills of one server.

    ``client`` is a connected ``Client`` or ``ClientSession`` of the SDK. Its ``extensions`` should have a
    ``SkillsExtension()``, since some servers respond only to clients that declare it (K3). ``connect`` does both.

    ``dialect`` sets one of five dialects; by default it is detected at the first use. ``instructions``
    finds skill URIs in the server's instructions (I5): ``True`` for URIs that end in ``/SKILL.md``, or your own
    function.
    """

    git: GitCatalog | None = None  # the repository that ``connect`` serves in memory

    def __init__(
        self,
        client: Client | ClientSession | Connection,
        *,
        dialect: DialectName | None = None,
        limits: Limits = DEFAULT_LIMITS,
        instructions: bool | Extractor = False,
    ) -> None:
        if isinstance(client, Client):
            client = client.session
        self.connection = client if isinstance(client, Connection) else Connection(client, limits)
        self.limits = self.connection.limits
        self.problems: list[Diagnostic] = []
        self.read_bytes: ReadBytes = self._read_bytes  # that of the dialect, once it is detected
        self._dialect: ClientDialect | None = None
        self._is_detected = dialect is not None
        if dialect is not None:
            self._use(dialect)
        self._is_declared = dialect is None  # the dialect was derived from a declaration, which may be wrong
        self._extract: Extractor | None = skill_uris_in if instructions is True else (instructions or None)

    async def dialect(self) -> DialectName | None:
        """The dialect of the server, detected once; ``None`` if there is no sign of skills."""
        if not self._is_detected:
            name = await detect_dialect(self.connection)
            if name is None and self._uris_in_instructions():
                name = "fallback"  # the server may only have resources/read
            if name is not None:
                self._use(name)
            self._is_detected = True
        return None if self._dialect is None else self._dialect.name

    @property
    def supports_skills(self) -> bool:
        """Whether the server declares the extension (K1). Other servers may have skills too: see ``dialect``."""
        declared = self.connection.capabilities
        return declared is not None and EXTENSION_ID in (declared.extensions or {})

    @property
    def supports_directory_read(self) -> bool:
        """Whether the server declares that it reads directories (K2)."""
        return self.connection.reads_directories

    async def list_skills(self) -> AsyncIterator[SkillEntry]:
        """Every listed skill, page by page; then, with ``instructions``, those in the server's instructions.

        Invalid entries are in ``problems``. An empty listing does not prove that there are no skills (L2).
        """
        self.problems.clear()
        await self.dialect()
        if self._dialect is None:
            return
        seen: set[SkillUri] = set()
        async for page in self._pages(self._dialect):
            for entry in page:
                seen.add(parse_uri(entry.uri))
                yield entry
        async for entry in self._from_instructions(seen):
            yield entry

    async def list_all(self) -> Listing:
        """Every listed skill, up to an error (L2). An error before the first skill is raised."""
        listing = await self.collect()
        if listing.error is not None and not listing.entries:
            raise listing.error
        return listing

    async def collect(self, label: str | None = None, at_most: int | None = None) -> Listing:
        """Every listed skill, up to an error or a number of skills (B3). Detecting the dialect may raise."""
        entries: list[SkillEntry] = []
        error: SkillwireError | None = None
        with span("list", origin=label) as record:
            await self.dialect()
            try:
                async for entry in self.list_skills():
                    if len(entries) == at_most:
                        error = LimitError(
                            "listing-too-long",
                            f"{label!r} lists more than {counted(len(entries), 'skill')}",
                            f"raise max-skills of [upstream.{label}]",
                            rule="B3",
                        )
                        break
                    entries.append(entry)
            except SkillwireError as raised:
                error = raised
            dialect = await self.dialect()  # listing may have found another one (I1)
            record.set(skills=len(entries), dialect=dialect)
            if error is not None:
                record.fail(error.reference)
        return Listing(tuple(entries), error, tuple(self.problems), dialect)

    async def get_skill(self, uri: str, arguments: Mapping[str, str] | None = None) -> SkillEntry:
        """The current entry of one skill, listed or not (G1).

        ``arguments`` are for a skill with arguments on a ``sep-2076`` server (P2).
        """
        if arguments:
            return await (await self._as(Sep2076Dialect)).get_skill(uri, arguments)
        try:
            return await (await self._required_dialect()).get_skill(uri)
        except ProtocolError as error:
            return await (await self._other_dialect(error)).get_skill(uri)

    @cached_property
    def catalog(self) -> RemoteCatalog:
        """The same skills as a ``Catalog``, to combine, serve or compare them."""
        from skillwire.client.remote import RemoteCatalog  # late: it is built on this module

        return RemoteCatalog(self)

    async def get(self, skill: str) -> SkillEntry:
        """The current entry of the skill with this name, path or URI (G1, N1)."""
        return await find_skill(self.catalog, skill)

    async def read(self, skill: str, path: str = SKILL_MD) -> VerifiedFile:
        """The file at ``path`` inside the skill with this name, path or URI, verified (V1, V2, V4)."""
        entry = await self.get(skill)
        root = entry.root
        try:
            return await self.catalog.fetch(entry, format_uri(f"{root.path}/{parse_path(path)}", root.scheme))
        except VerificationError as error:
            if error.reference != "file-unlisted":
                raise
            known = [file.path for file in entry.files]
            near = get_close_matches(path, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"its files: {', '.join(known)}"
            raise VerificationError(
                error.reference,
                f"the skill {entry.name!r:.80} has no file {path!r:.200}",
                f"{hint:.300}",
                rule="V2",
            ) from error

    async def download(self, skill: str, folder: str | Path, *, replace: bool = False) -> Path:
        """Write a skill, completely verified, as a folder with its name in ``folder``; returns that folder.

        Nothing is written if one file does not match (V1), or if the skill is or contains a repository (Z3).
        With ``replace`` an existing folder of that name is replaced.
        """
        entry = await self.get(skill)
        try:
            written = await export_skill(self.catalog, entry, Path(folder), replace=replace, limits=self.limits)
        except FormatError as error:
            if error.reference != "destination-exists":
                raise
            raise FormatError(error.reference, error.message, "pass replace=True, or another folder") from error
        return written.folder

    async def read_skill(self, entry: SkillEntry) -> VerifiedFile:
        """The ``SKILL.md`` of ``entry``, with verified bytes and fields (V1, V4)."""
        return await self.catalog.fetch(entry, entry.uri)

    async def read_resource(self, entry: SkillEntry, uri: str) -> VerifiedFile:
        """One file of ``entry``, verified (V1). A file that the entry does not list is never requested (V2)."""
        return await self.catalog.fetch(entry, uri)

    async def read_skill_uri(self, uri: str) -> VerifiedFile:
        """The file at ``uri``, verified. The entry of its skill is requested first."""
        return await self.read_resource(await self.find_skill(uri), uri)

    async def read_unverified(self, uri: str, skill: str = "") -> UnverifiedFile:
        """The bytes at ``uri``, unverified. Use it only if the user chose to.

        ``native`` servers return a file only while its skill is active: ``skill`` is the URI of that skill (M3).

        A ``file:`` URI is a file on the server, such as one in ``files`` of a ``NamedSkill`` (P4). The server is
        asked for it; no local file is read.
        """
        if uri[:5].lower() == "file:" and len(uri) <= self.limits.max_uri_length:
            return UnverifiedFile(uri, await read_content(self.connection, uri, self.limits.max_file_bytes))
        parse_uri(uri)
        return UnverifiedFile(uri, await self.read_bytes(uri, self.limits.max_file_bytes, skill))

    async def find_skill(self, uri: str) -> SkillEntry:
        """The entry of the innermost skill around the file at ``uri``: each parent folder is tried."""
        place = parse_uri(uri)
        await self._required_dialect()
        for root in islice(place.parent.upwards(), _MAX_ASKED):
            with suppress(NotFoundError):
                return await self.get_skill(skill_md_uri(root.path, root.scheme))
        raise NotFoundError("skill-unknown", f"the server has no skill around {uri!r:.300}", "list its skills")

    async def read_directory(self, uri: str) -> Children:
        """The children of a directory of a skill (D1), if the server supports it."""
        return await (await self._required_dialect()).read_directory(uri)

    async def complete(self, template: str, variable: str, typed: str = "") -> list[str]:
        """T1: values of a variable of a resource template that begin with ``typed``, at most 100.

        ``template`` is the URI template, such as ``skill://{+path}`` or ``skill://docs/{product}/SKILL.md``.
        """
        declared = self.connection.capabilities
        if declared is None or declared.completions is None:
            raise ProtocolError(
                "no-completions", "the server does not support completions", "type the whole URI", rule="K2"
            )
        reference = {"type": "ref/resource", "uri": template}
        argument = {"name": variable, "value": typed}
        answer = await self.connection.request("completion/complete", ref=reference, argument=argument)
        values = as_list(as_object(answer.get("completion")).get("values"))
        longest = self.limits.max_uri_length
        return [value for value in values if isinstance(value, str) and len(value) <= longest][:_MAX_COMPLETED]

    async def get_named(self, name: str, arguments: Mapping[str, str] | None = None) -> NamedSkill:
        """``sep-2076``: a skill's instructions and files, with arguments (P2). They cannot be verified."""
        return await (await self._as(Sep2076Dialect)).get_named(name, arguments)

    async def activate(self, name: str) -> Activation:
        """``native``: activate a skill, which makes its tools, prompts and resources available (M2, M3)."""
        return await (await self._as(NativeDialect)).activate(name)

    async def deactivate(self, name: str) -> None:
        """``native``: deactivate a skill (M3)."""
        await (await self._as(NativeDialect)).deactivate(name)

    async def _pages(self, dialect: ClientDialect) -> AsyncIterator[list[SkillEntry]]:
        try:
            async for page in dialect.pages():
                yield page
        except ProtocolError as error:
            async for page in (await self._other_dialect(error)).pages():
                yield page

    async def _other_dialect(self, error: ProtocolError) -> ClientDialect:
        """Detect the dialect of a server that declares the extension but does not know its methods (I1).

        Servers of the drafts do this. Any other ``error`` is raised.
        """
        if (
            error.reference != "method-unknown"
            or not self._is_declared
            or not isinstance(self._dialect, ExtensionDialect)
        ):
            raise error
        self._is_declared = False
        name = await detect_dialect(self.connection, trust_declaration=False)
        if name is None or name == "extension":
            raise error
        return self._use(name)

    def _use(self, name: DialectName) -> ClientDialect:
        self._dialect = DIALECTS[name](self.connection, self._report)
        self.read_bytes = self._dialect.read
        return self._dialect

    async def _read_bytes(self, uri: str, at_most: int, skill: str = "") -> bytes:
        return await (await self._required_dialect()).read(uri, at_most, skill)

    async def _from_instructions(self, seen: set[SkillUri]) -> AsyncIterator[SkillEntry]:
        """I5: a URI in the instructions is a hint; it is a skill if the server returns its entry."""
        for uri in self._uris_in_instructions():
            try:
                place = parse_uri(uri)
                if place not in seen:
                    yield await self.get_skill(uri)
                    seen.add(place)
            except (NotFoundError, FormatError, ProtocolError, VerificationError):
                continue
            except UpstreamError as error:
                if error.reference != "server-failed":  # some servers report a missing skill this way
                    raise

    def _uris_in_instructions(self) -> list[str]:
        instructions = self.connection.instructions
        if self._extract is None or not instructions:
            return []
        return list(dict.fromkeys(self._extract(instructions)))[:_MAX_IN_INSTRUCTIONS]

    async def _required_dialect(self) -> ClientDialect:
        if self._dialect is None:
            await self.dialect()
        if self._dialect is None:
            raise ProtocolError(
                "no-skills",
                "the server has no skills, as far as can be detected",
                "set its dialect, if you know it",
                rule="K2",
            )
        return self._dialect

    async def _as(self, kind: type[_D]) -> _D:
        dialect = await self._required_dialect()
        if not isinstance(dialect, kind):
            raise ProtocolError(
                "dialect-other",
                f"the server uses the dialect {dialect.name!r}, not {kind.name!r}",
                "list_skills, get_skill and read_unverified work in every dialect",
                side="local",
                rule="K2",
            )
        return dialect

    def _report(self, problem: Diagnostic) -> None:
        if len(self.problems) < self.limits.max_page_size:
            self.problems.append(problem)


def skill_uris_in(instructions: str) -> list[str]:
    """I5: the URIs of ``SKILL.md`` files in a text."""
    found: list[str] = []
    for word in _WORD.findall(instructions):
        upto, ending, _ = word.rpartition(f"/{SKILL_MD}")
        scheme = _SCHEME.search(upto) if ending else None
        if scheme is not None and scheme.end() < len(upto):
            found.append(upto[scheme.start() :] + ending)
    return found
