"""``SkillsClient``: the skills of one connected server, verified by default.

It works on the SDK's ``Client`` or ``ClientSession`` that you have, or opens a connection from a URL, a command,
an entry of an ``mcpServers`` file or a server object in this process, and then keeps it open. Nothing is fetched
ahead of need (V5): listing lists, and a file is read when it is asked for.

The short names verify: ``read_skill``, ``read_resource`` and ``read_skill_uri`` return bytes that match an entry
or raise. ``read_unverified`` says what it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from mcp import Client

from skillwire.client.connection import Connection
from skillwire.client.dialects.detection import DIALECTS, detect_dialect
from skillwire.client.dialects.extension import ExtensionDialect
from skillwire.client.dialects.named import Activation, NativeDialect
from skillwire.client.dialects.requests import read_content
from skillwire.client.dialects.sep2076 import NamedSkill, Sep2076Dialect
from skillwire.client.entry_table import Refresh, compare
from skillwire.client.shapes import as_list, as_object
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
from skillwire.skill.uri import SKILL_MD, format_uri, parse_uri
from skillwire.skill.verify import VerifiedFile, VerifiedSkill, expect_file, verify_file, verify_skill
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping

    from mcp import ClientSession

    from skillwire.catalog.contract import DirectoryChild
    from skillwire.client.dialects.contract import Children, Dialect, DialectName
    from skillwire.skill import Diagnostic, SkillEntry, SkillUri

    Extractor = Callable[[str], Iterable[str]]

_D = TypeVar("_D", bound="Dialect")
_MAX_MINED = 100
_MAX_COMPLETED = 100
_MAX_ASKED = 32  # folders around a file, each of which could be a skill
# Two steps that never go back over what they read, since a server chooses the text: words, then a scheme in each.
_WORD = re.compile(r"[^\s<>\"'`()\[\]{}]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}://")


class UnverifiedFile(NamedTuple):
    """Bytes that nothing was compared with. Its name says so wherever it goes."""

    uri: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server lists. With ``error`` it is partial, or there is none: the error says why."""

    entries: tuple[SkillEntry, ...] = ()
    error: SkillwireError | None = None


class SkillsClient:
    """The skills of one server.

    ``client`` is the SDK's ``Client`` or ``ClientSession``, connected; give it a ``SkillsExtension()`` among its
    ``extensions``, since some servers answer only clients that declare it (K3). ``connect`` does both for you.

    ``dialect`` forces one of five; by default it is found out when it is first needed. ``mine`` finds skill URIs
    in the server's instructions (I5): ``True`` for URIs that end in ``/SKILL.md``, or a function of yours.
    """

    def __init__(
        self,
        client: Client | ClientSession | Connection,
        *,
        dialect: DialectName | None = None,
        limits: Limits = DEFAULT_LIMITS,
        mine: bool | Extractor = False,
    ) -> None:
        if isinstance(client, Client):
            client = client.session
        self.connection = client if isinstance(client, Connection) else Connection(client, limits)
        self.limits = self.connection.limits
        self.problems: list[Diagnostic] = []
        self._dialect = None if dialect is None else DIALECTS[dialect](self.connection, self._report)
        self._detected = dialect is not None
        self._is_declared = dialect is None  # what is spoken rests on a declaration, and may not be so
        self._extract: Extractor | None = mine_uris if mine is True else (mine or None)

    async def dialect(self) -> DialectName | None:
        """Which dialect the server speaks, found out once; ``None`` if it shows no sign of skills."""
        if not self._detected:
            name = await detect_dialect(self.connection)
            if name is None and self._mined_uris():
                name = "fallback"  # it may have no more than resources/read
            self._dialect = None if name is None else DIALECTS[name](self.connection, self._report)
            self._detected = True
        return None if self._dialect is None else self._dialect.name

    @property
    def supports_skills(self) -> bool:
        """Whether the server declares the extension (K1). Others may still serve skills: see ``dialect``."""
        declared = self.connection.capabilities
        return declared is not None and EXTENSION_ID in (declared.extensions or {})

    @property
    def supports_directory_read(self) -> bool:
        """Whether the server declares that it reads directories (K2)."""
        return ExtensionDialect(self.connection, self._report).reads_directories

    async def list_skills(self) -> AsyncIterator[SkillEntry]:
        """Every skill the server lists, page by page; then those that its instructions name, if asked to look.

        What cannot be used is in ``problems``. An empty listing does not prove that there are no skills (L2).
        """
        self.problems.clear()
        dialect = await self._speak()
        if dialect is None:
            return
        seen: set[SkillUri] = set()
        async for page in self._pages(dialect):
            for entry in page:
                seen.add(parse_uri(entry.uri))
                yield entry
        async for entry in self._mined(seen):
            yield entry

    async def list_all(self) -> Listing:
        """Every listed skill. What came before an error counts (L2); an error before all is raised."""
        entries: list[SkillEntry] = []
        try:
            async for entry in self.list_skills():
                entries.append(entry)  # noqa: PERF401 - a comprehension would lose them
        except SkillwireError as error:
            if not entries:
                raise
            return Listing(tuple(entries), error)
        return Listing(tuple(entries))

    async def get_skill(self, uri: str, arguments: Mapping[str, str] | None = None) -> SkillEntry:
        """The entry of one skill as it is now, listed or not (G1).

        ``arguments`` are for a skill of a ``sep-2076`` server that takes some (P2).
        """
        if arguments:
            return await (await self._as(Sep2076Dialect)).get_skill(uri, arguments)
        try:
            return await (await self._need()).get_skill(uri)
        except ProtocolError as error:
            return await (await self._other_dialect(error)).get_skill(uri)

    async def read_skill(self, entry: SkillEntry) -> VerifiedSkill:
        """The ``SKILL.md`` of ``entry``, its bytes and its fields verified (V1, V4)."""
        expect_file(entry, entry.uri, self.limits)
        return verify_skill(entry, await self._read_as(entry, entry.uri), self.limits)

    async def read_resource(self, entry: SkillEntry, uri: str) -> VerifiedFile:
        """One file of ``entry``, verified (V1). A file that the entry does not list is not even asked for (V2)."""
        expect_file(entry, uri, self.limits)
        if parse_uri(uri) == parse_uri(entry.uri):
            return (await self.read_skill(entry)).file  # V4 holds whatever way leads to the SKILL.md
        return verify_file(entry, uri, await self._read_as(entry, uri), self.limits)

    async def read_skill_uri(self, uri: str) -> VerifiedFile:
        """Any file of any skill, verified, knowing its URI only: its skill's entry is asked for first."""
        return await self.read_resource(await self.find_skill(uri), uri)

    async def read_unverified(self, uri: str, skill: str = "") -> UnverifiedFile:
        """The bytes at ``uri`` as the server gives them, compared with nothing. For a person's explicit choice.

        ``native`` servers give a file only while its skill is active: ``skill`` is the URI of that skill (M3).

        A ``file:`` URI names a file of the server, such as one in ``files`` of a ``NamedSkill`` (P4): the server
        is asked for it, and this machine's disk is not looked at.
        """
        if uri[:5].lower() == "file:" and len(uri) <= self.limits.max_uri_length:
            return UnverifiedFile(uri, await read_content(self.connection, uri, self.limits.max_file_bytes))
        parse_uri(uri)
        return UnverifiedFile(uri, await (await self._need()).read(uri, self.limits.max_file_bytes, skill))

    async def find_skill(self, uri: str) -> SkillEntry:
        """The entry of the innermost skill around the file at ``uri``, by asking upwards."""
        place = parse_uri(uri)
        await self._need()
        for depth in range(len(place.segments) - 1, max(0, len(place.segments) - _MAX_ASKED), -1):
            try:
                path = "/".join([*place.segments[:depth], SKILL_MD])
                return await self.get_skill(format_uri(path, place.scheme))
            except NotFoundError:
                continue
        raise NotFoundError("skill-unknown", f"the server serves no skill around {uri!r:.300}", "list its skills")

    async def read_directory(self, uri: str) -> Children:
        """What is directly inside a directory of a skill (D1), if the server reads directories."""
        return await (await self._need()).read_directory(uri)

    async def walk(self, uri: str) -> AsyncIterator[DirectoryChild]:
        """Every file below a directory. Only metadata: a child is not part of a skill because it is there (W3)."""
        pending, met = [uri], 0
        while pending:
            for child in await self.read_directory(pending.pop()):
                met += 1
                if met > self.limits.max_entries:
                    raise LimitError(
                        "listing-too-long",
                        f"{uri!r:.300} has more than {self.limits.max_entries} files and folders below it",
                        "raise Limits.max_entries if you trust the server that far",
                        rule="B3",
                    )
                if child.is_directory:
                    pending.append(child.uri)
                else:
                    yield child

    async def complete(self, template: str, variable: str, typed: str = "") -> list[str]:
        """T1: values of a variable of a resource template that begin with ``typed``, at most 100.

        ``template`` is the template itself, such as ``skill://{+path}`` or ``skill://docs/{product}/SKILL.md``.
        """
        declared = self.connection.capabilities
        if declared is None or declared.completions is None:
            raise ProtocolError("no-completions", "the server completes nothing", "type the whole URI", rule="K2")
        reference = {"type": "ref/resource", "uri": template}
        argument = {"name": variable, "value": typed}
        answer = await self.connection.request("completion/complete", ref=reference, argument=argument)
        values = as_list(as_object(answer.get("completion")).get("values"))
        longest = self.limits.max_uri_length
        return [value for value in values if isinstance(value, str) and len(value) <= longest][:_MAX_COMPLETED]

    async def refresh(self, previous: Iterable[SkillEntry]) -> Refresh:
        """What is new, changed, gone and unchanged since ``previous``, by digests: no file is read."""
        return compare(previous, [entry async for entry in self.list_skills()])

    async def get_named(self, name: str, arguments: Mapping[str, str] | None = None) -> NamedSkill:
        """``sep-2076``: a skill's instructions and files, with arguments (P2). Unverified: nothing is promised."""
        return await (await self._as(Sep2076Dialect)).get_named(name, arguments)

    async def activate(self, name: str) -> Activation:
        """``native``: a skill's instructions and its scoped tools, prompts and resources, callable (M2, M3)."""
        return await (await self._as(NativeDialect)).activate(name)

    async def deactivate(self, name: str) -> None:
        """``native``: hide the scoped primitives again (M3)."""
        await (await self._as(NativeDialect)).deactivate(name)

    async def _read_as(self, entry: SkillEntry, uri: str) -> bytes:
        """The bytes of a listed file, in the spelling of its entry; more than promised is a mismatch at once."""
        resource = entry.resource(uri)
        promised = None if resource is None else resource.size
        at_most = self.limits.max_file_bytes if promised is None else promised
        try:
            return await (await self._need()).read(uri if resource is None else resource.uri, at_most, entry.uri)
        except LimitError as error:
            if error.reference != "file-too-large" or promised is None:
                raise
            raise VerificationError(
                "size-mismatch",
                f"{uri!r:.300} has more bytes than the {promised} that its entry says",
                "get the skill's entry again",
                rule="V1",
            ) from error

    async def _pages(self, dialect: Dialect) -> AsyncIterator[list[SkillEntry]]:
        try:
            async for page in dialect.pages():
                yield page
        except ProtocolError as error:
            async for page in (await self._other_dialect(error)).pages():
                yield page

    async def _other_dialect(self, error: ProtocolError) -> Dialect:
        """What the server speaks if it declares the extension and does not know its methods (I1); else ``error``.

        Servers of the drafts do.
        """
        if (
            error.reference != "method-unknown"
            or not self._is_declared
            or not isinstance(self._dialect, ExtensionDialect)
        ):
            raise error
        self._is_declared = False
        name = await detect_dialect(self.connection, believe=False)
        if name is None or name == "extension":
            raise error
        self._dialect = DIALECTS[name](self.connection, self._report)
        return self._dialect

    async def _mined(self, seen: set[SkillUri]) -> AsyncIterator[SkillEntry]:
        """I5: a URI in the instructions is a hint; the server's own answer makes it a skill."""
        for uri in self._mined_uris():
            try:
                place = parse_uri(uri)
                if place not in seen:
                    yield await self.get_skill(uri)
                    seen.add(place)
            except (NotFoundError, FormatError, ProtocolError, VerificationError):
                continue
            except UpstreamError as error:
                if error.reference != "server-failed":  # that is how some servers say that there is none
                    raise

    def _mined_uris(self) -> list[str]:
        instructions = self.connection.instructions
        if self._extract is None or not instructions:
            return []
        return list(dict.fromkeys(self._extract(instructions)))[:_MAX_MINED]

    async def _speak(self) -> Dialect | None:
        await self.dialect()
        return self._dialect

    async def _need(self) -> Dialect:
        dialect = await self._speak()
        if dialect is None:
            raise ProtocolError(
                "no-skills", "the server shows no sign of skills", "name its dialect, if it has one", rule="K2"
            )
        return dialect

    async def _as(self, kind: type[_D]) -> _D:
        dialect = await self._need()
        if not isinstance(dialect, kind):
            raise ProtocolError(
                "dialect-other",
                f"the server speaks {dialect.name!r}, not {kind.name!r}",
                "list_skills, get_skill and read_unverified work in every dialect",
                side="local",
                rule="K2",
            )
        return dialect

    def _report(self, problem: Diagnostic) -> None:
        if len(self.problems) < self.limits.max_page_size:
            self.problems.append(problem)


def mine_uris(instructions: str) -> list[str]:
    """I5: the URIs of ``SKILL.md`` files that stand in a text."""
    found: list[str] = []
    for word in _WORD.findall(instructions):
        upto, ending, _ = word.rpartition(f"/{SKILL_MD}")
        scheme = _SCHEME.search(upto) if ending else None
        if scheme is not None and scheme.end() < len(upto):
            found.append(upto[scheme.start() :] + ending)
    return found
