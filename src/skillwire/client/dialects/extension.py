"""The ``extension`` dialect: ``skills/list`` and ``skills/get`` (K, E, L, G).

The generation before ``size`` (E2b) is read too. It is known by its files: where a server's entries list files and
none of them has a size, sizes were never promised. On a server whose entries do have sizes, a missing one is an
error. An entry without ``resources`` (E2), or with a name that no skill may have (F2), is one on every server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.client.dialects.contract import Dialect
from skillwire.client.dialects.requests import each_page
from skillwire.client.shapes import as_list, as_object
from skillwire.errors import FormatError, ProtocolError
from skillwire.skill.entry import invalid_entry, parse_entry
from skillwire.skill.frontmatter import is_name
from skillwire.skill.uri import parse_uri
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from skillwire.skill import SkillEntry, SkillUri


class ExtensionDialect(Dialect):
    """The finalised extension, and the generation before it."""

    name = "extension"
    _sized: bool | None = None  # whether this server's files have sizes; None until one was seen

    async def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """``skills/list``, page by page (L1)."""
        seen: set[SkillUri] = set()
        async for items in each_page(self.connection, SKILLS_LIST, "skills"):
            self._learn(items)
            page: list[SkillEntry] = []
            for item in items:
                try:
                    entry = self._parse(item)
                    place = parse_uri(entry.uri)
                    if place in seen:
                        raise FormatError(
                            "entry-repeated",
                            "the URI is listed twice; the first one counts",
                            "the server has to be corrected",
                            rule="E5",
                        )
                except FormatError as error:
                    self.leave_out(error, item.get("uri"))
                    continue
                seen.add(place)
                page.append(entry)
            yield page

    async def get_skill(self, uri: str) -> SkillEntry:
        """``skills/get`` (G1). An answer about another skill is none."""
        place = parse_uri(uri)
        item = (await self.connection.request(SKILLS_GET, uri=uri)).get("skill")
        self._learn([item])
        entry = self._parse(item)
        if parse_uri(entry.uri) != place:
            raise ProtocolError(
                "entry-other",
                f"asked for {uri!r:.300}, the server answers with {entry.uri!r:.300}",
                "the server has to be corrected",
                rule="G1",
            )
        return entry

    def _parse(self, item: object) -> SkillEntry:
        entry = parse_entry(item, sized=self._sized is not False, limits=self.limits)
        if not is_name(entry.name):
            raise invalid_entry(f"the name {entry.name!r:.80} is not 1-64 of a-z, 0-9 and single hyphens", "F2")
        return entry

    def _learn(self, items: Sequence[object]) -> None:
        """Which generation this is, from files that were listed. Once sizes were seen they are asked for (E2)."""
        if self._sized:
            return
        for item in items:
            for resource in as_list(as_object(item).get("resources")):
                self._sized = "size" in as_object(resource)
                if self._sized:
                    return
