"""The ``extension`` dialect: ``skills/list`` and ``skills/get`` (K, E, L, G).

Servers of the generation before ``size`` (E2b) are supported too. They are recognised by entries that list files
without sizes. On a server whose entries have sizes, a missing size is an error. An entry without ``resources``
(E2), or with an invalid name (F2), is an error on every server. What a registry states about versions is in
``_meta``, beside the entries (R4). Of ``_meta`` nothing else is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.client.bounds import as_list, as_object
from skillwire.client.dialects.contract import ClientDialect, each_page, repeated_entry
from skillwire.errors import FormatError, ProtocolError
from skillwire.skill.entry import invalid_entry, parse_entry
from skillwire.skill.frontmatter import is_name
from skillwire.skill.uri import parse_uri
from skillwire.skill.version_status import VERSION, parse_version_status, with_version_status
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from skillwire.skill import SkillEntry, SkillUri


class ExtensionDialect(ClientDialect):
    """The finalised extension, and the generation before it."""

    name = "extension"
    _sized: bool | None = None  # whether this server's files have sizes; None until a file was listed

    async def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """``skills/list``, page by page (L1)."""
        seen: set[SkillUri] = set()
        async for items in each_page(self.connection, SKILLS_LIST, "skills"):
            self._detect_sizes(items)
            page: list[SkillEntry] = []
            for item in items:
                try:
                    entry = self._parse(item)
                    place = parse_uri(entry.uri)
                    if place in seen:
                        raise repeated_entry()
                except FormatError as error:
                    self.skip(error, item.get("uri"))
                    continue
                seen.add(place)
                page.append(with_version_status(entry, parse_version_status(items.versions.get(entry.uri))))
            yield page

    async def get_skill(self, uri: str) -> SkillEntry:
        """``skills/get`` (G1). A response about another skill is an error."""
        place = parse_uri(uri)
        result = await self.connection.request(SKILLS_GET, uri=uri)
        item = result.get("skill")
        self._detect_sizes([item])
        entry = self._parse(item)
        if parse_uri(entry.uri) != place:
            raise ProtocolError(
                "entry-other",
                f"requested {uri!r:.300}, but the server returned {entry.uri!r:.300}",
                "the server must be fixed",
                rule="G1",
            )
        status = parse_version_status(as_object(result.get("_meta")).get(VERSION))
        return with_version_status(entry, status)

    def _parse(self, item: object) -> SkillEntry:
        entry = parse_entry(item, sized=self._sized is not False, limits=self.limits)
        if not is_name(entry.name):
            raise invalid_entry(
                f"the name {entry.name!r:.80} is not 1-64 characters of a-z, 0-9 and single hyphens", "F2"
            )
        return entry

    def _detect_sizes(self, items: Sequence[object]) -> None:
        """Detect the generation from listed files. After the first size, sizes are required (E2)."""
        if self._sized:
            return
        for item in items:
            for resource in as_list(as_object(item).get("resources")):
                self._sized = "size" in as_object(resource)
                if self._sized:
                    return
