"""The ``sep-2076`` dialect: ``skills/list`` and ``skills/get`` by name (P1–P4).

The result of ``skills/get`` cannot be verified. A file can, if the server sends its digest, as servers of this
package do in ``_meta`` (V1, R4). They also send the URI that the skill has in the extension, which works here too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillwire.client.dialects.contract import requested_root
from skillwire.client.dialects.named import SCHEME, NamedDialect, bounded, given_arguments, name_of, named_entry
from skillwire.client.shapes import as_list, as_object, as_text
from skillwire.errors import ProtocolError
from skillwire.skill.uri import parse_uri
from skillwire.wire.extension import SKILLS_GET
from skillwire.wire.meta import URI

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from skillwire.client.connection import Connection
    from skillwire.skill import Diagnostic, SkillEntry


def _home(entry: SkillEntry) -> str:
    """The URI of a skill in the extension, if the server sends it."""
    return as_text(as_object(entry.frontmatter.get("_meta")).get(URI))


@dataclass(frozen=True, slots=True)
class NamedSkill:
    """P2: the result of ``skills/get``: instructions, files and dependencies."""

    name: str
    instructions: str
    files: tuple[Mapping[str, Any], ...]
    dependencies: Mapping[str, Any]
    description: str = ""


class Sep2076Dialect(NamedDialect):
    """``skills/list`` and ``skills/get`` by name."""

    name = "sep-2076"

    def __init__(self, connection: Connection, report: Callable[[Diagnostic], None]) -> None:
        super().__init__(connection, report)
        self._homes: dict[str, str] | None = None  # names of listed skills, by their URI in the extension

    async def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """``skills/list``. It also collects the URIs of the extension."""
        homes: dict[str, str] = {}
        async for page in super().pages():
            homes |= {_home(entry): entry.name for entry in page}
            yield page
        self._homes = homes

    async def get_skill(self, uri: str, arguments: Mapping[str, str] | None = None) -> SkillEntry:
        """The entry with the files of ``skills/get`` (P4), with ``arguments`` for the skill (P2).

        If required arguments are missing, it is the listed entry.
        """
        name = await self._name_at(uri)
        entry = await self._listed(name)
        if arguments:
            entry = named_entry(dict(entry.frontmatter), limits=self.limits, arguments=arguments)
            given_arguments(entry)
        if None in entry.arguments.values():
            return entry
        skill = await self.get_named(name, arguments)
        return self._with_files(dict(entry.frontmatter), skill.files, arguments)

    async def _name_at(self, uri: str) -> str:
        """The name in an internal URI, or of the listed skill with this URI in the extension."""
        place = requested_root(uri)
        if place.scheme == SCHEME:
            return place.path
        wanted = str(parse_uri(uri))
        if self._homes is None:
            async for page in self.pages():
                for entry in page:
                    if _home(entry) == wanted:
                        return entry.name
        return (self._homes or {}).get(wanted) or name_of(uri)

    async def get_named(self, name: str, arguments: Mapping[str, str] | None = None) -> NamedSkill:
        """P2: ``skills/get`` with arguments."""
        params: dict[str, Any] = {"name": name, **({"arguments": dict(arguments)} if arguments else {})}
        result = await self.connection.request(SKILLS_GET, **params)
        instructions = result.get("instructions")
        if not isinstance(instructions, str):
            raise ProtocolError(
                "answer-invalid",
                f"{SKILLS_GET} returned no instructions for {name!r:.80}",
                "the server must be fixed",
                rule="P2",
            )
        files = tuple(map(as_object, as_list(result.get("files"))))
        description = as_text(result.get("description"))
        return NamedSkill(name, instructions, files, as_object(result.get("dependencies")), description)

    async def read(self, uri: str, at_most: int, skill: str = "") -> bytes:  # noqa: ARG002
        """The instructions for an internal URI, else a file of the server."""
        if parse_uri(uri).scheme != SCHEME:
            return await super().read(uri, at_most)
        return bounded((await self.get_named(name_of(uri))).instructions, uri, at_most)
