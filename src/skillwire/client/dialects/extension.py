"""The ``extension`` dialect: ``skills/list``, ``skills/get``, ``resources/directory/read`` (K, E, L, G, D).

The generation before ``size`` (E2b) is read too. It is known by its files: where a server's entries list files and
none of them has a size, sizes were never promised, and an entry without ``resources`` is a generated skill. On a
server whose entries do have sizes, a missing one is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.catalog.contract import DirectoryChild
from skillwire.client.dialects.contract import Dialect
from skillwire.client.pages import each_page
from skillwire.client.shapes import as_list, as_object, as_size
from skillwire.errors import FormatError, ProtocolError
from skillwire.skill.received import invalid_entry, parse_entry
from skillwire.skill.uri import is_within, parse_uri
from skillwire.wire.extension import DIRECTORY_READ, EXTENSION_ID, SKILLS_GET, SKILLS_LIST
from skillwire.wire.media import DIRECTORY

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from skillwire.skill import SkillEntry, SkillUri


class ExtensionDialect(Dialect):
    """The finalised extension, and the generation before it."""

    name = "extension"
    _sized: bool | None = None  # whether this server's files have sizes; None until one was seen

    @property
    def reads_directories(self) -> bool:
        """K2: whether ``resources/directory/read`` may be called."""
        declared = self.connection.capabilities
        settings = (declared.extensions or {}).get(EXTENSION_ID) if declared else None
        return bool(settings and settings.get("directoryRead") is True)

    async def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """``skills/list``, page by page (L1)."""
        seen: set[str] = set()
        async for items in each_page(self.connection, SKILLS_LIST, "skills"):
            self._learn(items)
            page: list[SkillEntry] = []
            for item in items:
                try:
                    entry = self._parse(item)
                    if entry.uri in seen:
                        raise FormatError(
                            "entry-repeated", "the URI is listed twice; the first one counts", rule="E5"
                        )
                except FormatError as error:
                    self.leave_out(error, item.get("uri"))
                    continue
                seen.add(entry.uri)
                page.append(entry)
            yield page

    async def get_skill(self, uri: str) -> SkillEntry:
        """``skills/get`` (G1). An answer about another skill is none."""
        item = (await self.connection.request(SKILLS_GET, uri=uri)).get("skill")
        self._learn([item])
        entry = self._parse(item)
        if parse_uri(entry.uri) != parse_uri(uri):
            raise ProtocolError(
                "entry-other", f"asked for {uri!r:.300}, the server answers with {entry.uri!r:.300}", rule="G1"
            )
        return entry

    async def read_directory(self, uri: str) -> list[DirectoryChild]:
        """``resources/directory/read``, all pages (D1)."""
        if not self.reads_directories:
            return await super().read_directory(uri)
        folder = parse_uri(uri.removesuffix("/"))
        children: dict[str, DirectoryChild] = {}
        async for items in each_page(self.connection, DIRECTORY_READ, "resources", uri=uri):
            for item in items:
                try:
                    child = _parse_child(item, folder)
                except FormatError as error:
                    self.leave_out(FormatError("child-invalid", error.message, rule="D1"), uri)
                else:
                    children.setdefault(child.name, child)
        return [children[name] for name in sorted(children)]

    def _parse(self, item: object) -> SkillEntry:
        return parse_entry(item, sized=self._sized is not False, limits=self.limits)

    def _learn(self, items: Sequence[object]) -> None:
        """Which generation this is, from files that were listed. Once sizes were seen they are asked for (E2)."""
        if self._sized:
            return
        for item in items:
            for resource in as_list(as_object(item).get("resources")):
                self._sized = "size" in as_object(resource)
                if self._sized:
                    return


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
