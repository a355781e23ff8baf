"""The ``fallback`` dialect: skills among the plain resources of a server (I4).

Every listed resource whose URI ends in ``/SKILL.md`` is a skill. Its name is that of its folder; fields, digests
and the list of files are unknown. If a skill has a ``_manifest`` next to it (an older format of FastMCP), getting
the skill reads digests, sizes and the list of files from it. A file with this name and another format is an
ordinary file; a manifest with invalid values is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.client.bounds import as_list, as_object, as_size, as_text, as_uri, parse_json
from skillwire.client.dialects.contract import (
    ClientDialect,
    each_page,
    read_content,
    read_if_exists,
    requested_root,
)
from skillwire.errors import FormatError, LimitError, NotFoundError, ProtocolError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.entry import (
    Partial,
    Resource,
    SkillEntry,
    check_frontmatter_size,
    check_name,
    invalid_entry,
    parse_digest,
)
from skillwire.skill.frontmatter import parse_skill_md
from skillwire.skill.uri import SKILL_MD, SkillUri, format_uri, parse_path, parse_uri, root_of
from skillwire.skill.verify import verify_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from skillwire.client.connection import Connection

MANIFEST = "_manifest"


class PlainDialect(ClientDialect):
    """Skills among the resources of a server without another dialect."""

    name = "fallback"

    async def pages(self) -> AsyncIterator[list[SkillEntry]]:
        """The skills in ``resources/list``, as one page: the files of a skill may be on any page.

        If a bound ends the listing (B3), the skills so far are yielded first.
        """
        listed: dict[str, dict[str, Any]] = {}
        try:
            await self._list_into(listed)
        except (LimitError, ProtocolError) as error:
            if error.reference == "method-unknown":  # a server may have resources without listing them
                return
            if error.rule != "B3":
                raise
            yield self._entries(listed)
            raise
        yield self._entries(listed)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One skill, from its ``SKILL.md`` and its manifest, if it has one."""
        files = await self._manifest(requested_root(uri))
        return await entry_from_skill_md(self.connection, uri, files)

    async def read(self, uri: str, at_most: int, skill: str = "") -> bytes:  # noqa: ARG002
        """The bytes at ``uri``. A manifest has only paths, so the server may spell their URIs differently (U7)."""
        try:
            return await super().read(uri, at_most)
        except NotFoundError:
            place = parse_uri(uri)
            listed: dict[str, dict[str, Any]] = {}
            await self._list_into(listed)
            others = [other for other in listed if other != uri and as_uri(other) == place]
            if not others:
                raise
        return await super().read(others[0], at_most)

    async def _list_into(self, found: dict[str, dict[str, Any]]) -> None:
        async for items in each_page(self.connection, "resources/list", "resources"):
            for item in items:
                uri = as_text(item.get("uri"))
                if "://" in uri:
                    found.setdefault(uri, item)

    def _entries(self, listed: dict[str, dict[str, Any]]) -> list[SkillEntry]:
        skills: dict[SkillUri, tuple[str, list[Resource]]] = {}  # by root
        places = {uri: place for uri in listed if (place := as_uri(uri)) is not None}
        for uri, place in places.items():
            if len(place.segments) > 1 and place.segments[-1] == SKILL_MD:
                skills[place.parent] = (uri, [])
        for uri, place in places.items():
            if place.segments[-1] == MANIFEST and place.parent in skills:
                continue  # it may be FastMCP's manifest of the skill; the listing alone does not show it
            for root in place.parent.upwards():
                if root in skills:
                    skills[root][1].append(Resource(uri, None, as_size(listed[uri].get("size"))))
        entries: list[SkillEntry] = []
        for uri, files in skills.values():
            try:
                entries.append(_entry(uri, listed[uri], files, self.limits))
            except FormatError as error:
                self.skip(error, uri)
        return entries

    async def _manifest(self, root: SkillUri) -> tuple[Resource, ...] | None:
        uri = format_uri(f"{root.path}/{MANIFEST}", root.scheme)
        data = await read_if_exists(self.connection, uri, self.limits.max_index_bytes)
        return (
            None if data is None or not is_manifest(data, self.limits) else parse_manifest(data, root, self.limits)
        )


async def entry_from_skill_md(
    connection: Connection, uri: str, files: tuple[Resource, ...] | None = None
) -> SkillEntry:
    """The entry of a skill from its ``SKILL.md``, and its ``files`` if they are known."""
    root = requested_root(uri)
    try:
        data = await read_content(connection, uri, connection.limits.max_skill_md_bytes)
        document = parse_skill_md(data, connection.limits)
    except (UpstreamError, FormatError) as error:
        # Some servers report a missing skill with an error, others with text.
        if error.reference not in ("server-failed", "frontmatter-missing"):
            raise
        message = f"the server has no skill at {uri!r:.300}: {error.message}"
        raise NotFoundError("skill-unknown", message, "list its skills") from error
    name = document.frontmatter.get("name")
    if name != root.segments[-1]:
        raise invalid_entry(f"the name {name!r:.80} differs from the URI's last segment", "U3")
    check_name(root.segments[-1], "I4")
    if files is None:
        return SkillEntry(uri, document.frontmatter, Partial((Resource(uri, None, None),)))
    entry = SkillEntry(uri, document.frontmatter, files)
    verify_file(entry, uri, data, connection.limits)
    return entry


def is_manifest(data: bytes, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether ``data`` has the format of FastMCP's manifest: an object with ``files`` that have paths."""
    files = _files(data, limits)
    return bool(files) and all("path" in as_object(file) for file in files)


def parse_manifest(data: bytes, root: SkillUri, limits: Limits = DEFAULT_LIMITS) -> tuple[Resource, ...]:
    """Parse FastMCP's ``{skill, files: [{path, size, hash}]}``; ``FormatError`` if it is invalid."""
    resources: dict[str, Resource] = {}
    for file in map(as_object, _files(data, limits)):
        path, size = parse_path(as_text(file.get("path"))), as_size(file.get("size"))
        if size is None:
            raise invalid_entry(f"the size of {path!r:.200} is not a number of bytes", "E3")
        uri = str(parse_uri(format_uri(f"{root.path}/{path}", root.scheme)))
        if uri in resources:
            raise invalid_entry(f"the manifest lists {path!r:.200} twice", "E2")
        resources[uri] = Resource(uri, _digest(file.get("hash")), size, path)
    if format_uri(f"{root.path}/{SKILL_MD}", root.scheme) not in resources:
        raise invalid_entry("the manifest does not list the SKILL.md", "E2")
    return tuple(sorted(resources.values()))


def _files(data: bytes, limits: Limits) -> list[Any]:
    try:
        return as_list(as_object(parse_json(data, MANIFEST, limits)).get("files"))
    except ValueError:
        return []


def _digest(value: object) -> str:
    text = as_text(value).lower()
    return parse_digest(text if ":" in text else f"sha256:{text}")


def _entry(uri: str, item: dict[str, Any], files: list[Resource], limits: Limits) -> SkillEntry:
    root = root_of(uri)
    frontmatter = {"name": root.segments[-1], "description": as_text(item.get("description"))}
    check_name(root.segments[-1], "I4")
    check_frontmatter_size(frontmatter, limits)
    return SkillEntry(uri, frontmatter, Partial(tuple(sorted(files))), whole_frontmatter=False)
