"""What the tools and prompts of the ``fallback`` do (X1, X2): list, search, load and read what a caller may see.

Everything stays inside the skill that is named, in every spelling of a path (U6, U7). Bytes are the catalog's, so
they are the ones the extension serves. Whatever cannot be done is one of our errors, with what to do instead.
"""

from __future__ import annotations

from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from skillwire.errors import FormatError, LimitError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.skill.hidden import encode_hidden
from skillwire.skill.model import text_for_model
from skillwire.skill.uri import SKILL_MD, SkillUri, is_within, parse_uri, resolve_reference, segment_problem
from skillwire.wire import fallback as wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.catalog.contract import SkillFile
    from skillwire.server.binding import Answer, Context, Served
    from skillwire.skill import SkillEntry

    Block: TypeAlias = dict[str, Any]

_MOST_LISTED = 100  # a model reads every line
_LARGEST_FILE = MIB
_NEAR_FILES = 3
_MOST_COMPARED = 512  # of a skill's files, when one is meant that is not there


class SkillTools:
    """The four tools over what a server serves."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._server = served.server.name

    async def call(self, ctx: Context, tool: str, given: Mapping[str, Any]) -> Answer:
        """The result of one tool. Raises our errors."""
        arguments = wire.read_arguments(tool, given)
        match tool:
            case wire.LIST:
                return await self._list(ctx, arguments.get("cursor") or None)
            case wire.SEARCH:
                return await self._search(ctx, arguments["query"], int(arguments.get("limit", wire.DEFAULT_HITS)))
            case wire.LOAD:
                return wire.tool_result(await self.loaded(ctx, await self.find(ctx, arguments["skill"])))
            case _:
                entry = await self.find(ctx, arguments["skill"])
                return wire.tool_result(await self._read(ctx, entry, arguments["path"]))

    async def find(self, ctx: Context, skill: str) -> SkillEntry:
        """The skill of that name, path or URI; of a URI the ``SKILL.md`` may be left out."""
        named = skill.strip()
        if "://" in named and not named.endswith(f"/{SKILL_MD}"):
            named = f"{named.rstrip('/')}/{SKILL_MD}"
        try:
            return await self._served.names_for(ctx).find(named)
        except (NotFoundError, FormatError) as error:
            raise NotFoundError(error.reference, error.message, wire.find_hint(error.hint)) from error

    async def loaded(self, ctx: Context, entry: SkillEntry) -> list[Block]:
        """X2: where the skill comes from and what else it has, then its ``SKILL.md``."""
        file = await self._file(ctx, entry, entry.uri)
        label = await self._label(ctx, entry)
        return [wire.text_block(wire.loaded_text(self._server, label, entry)), wire.file_block(file)]

    async def _list(self, ctx: Context, cursor: str | None) -> Answer:
        limit = min(self._served.page_size, _MOST_LISTED)
        page = await self._served.catalog_for(ctx).list_skills(cursor, limit)
        labels = [await self._label(ctx, entry) for entry in page.items]
        lines = [wire.skill_line(label, entry) for label, entry in zip(labels, page.items, strict=True)]
        text = wire.listed_text(self._server, lines, page.next_cursor)
        return wire.skills_result(text, _for_programs(labels, page.items), wire.LOAD_NEXT, page.next_cursor)

    async def _search(self, ctx: Context, query: str, limit: int) -> Answer:
        found = await self._served.searching.search(self._served.catalog_for(ctx), query, limit)
        entries = [entry for _, entry in found]
        labels = [await self._label(ctx, entry) for entry in entries]
        lines = [wire.skill_line(label, entry) for label, entry in zip(labels, entries, strict=True)]
        text = wire.found_text(self._server, query, lines)
        next_step = wire.LOAD_NEXT if lines else wire.SEARCH_AGAIN
        return wire.skills_result(text, _for_programs(labels, entries), next_step, None)

    async def _read(self, ctx: Context, entry: SkillEntry, path: str) -> list[Block]:
        label = await self._label(ctx, entry)
        for place in _places(entry, path, label):
            inside = wire.relative_path(entry, str(place))
            with suppress(NotFoundError):
                file = await self._file(ctx, entry, str(place))
                return [wire.text_block(wire.file_text(self._server, label, inside, file)), wire.file_block(file)]
            with suppress(NotFoundError):
                return [wire.text_block(await self._folder(ctx, label, inside, str(place)))]
        near = get_close_matches(path[:200], _paths(entry), _NEAR_FILES)
        raise NotFoundError(
            "file-unknown", f"the skill {label!r:.100} has no file {path!r:.100}", wire.file_hint(label, near)
        )

    async def _folder(self, ctx: Context, label: str, path: str, uri: str) -> str:
        page = await self._served.catalog_for(ctx).read_directory(uri, None, DEFAULT_LIMITS.max_page_size)
        return wire.folder_text(self._server, label, path, page.items, more=page.next_cursor is not None)

    async def _file(self, ctx: Context, entry: SkillEntry, uri: str) -> SkillFile:
        known = entry.resource(uri)
        if known is not None and known.size is not None:
            _refuse_large(known.size, uri)
        file = await self._served.catalog_for(ctx).read_file(uri)
        _refuse_large(len(file.data), uri)
        return file

    async def _label(self, ctx: Context, entry: SkillEntry) -> str:
        return await self._served.names_for(ctx).label(entry)


def _for_programs(labels: Sequence[str], entries: Sequence[SkillEntry]) -> list[dict[str, Any]]:
    return [
        {"name": label, "description": text_for_model(entry.description), "uri": encode_hidden(entry.uri)}
        for label, entry in zip(labels, entries, strict=True)
    ]


def _paths(entry: SkillEntry) -> list[str]:
    return [wire.relative_path(entry, file.uri) for file in entry.files[:_MOST_COMPARED]]


def _places(entry: SkillEntry, path: str, label: str) -> list[SkillUri]:
    """What ``path`` may mean in the skill: as it is written, or as a link in the ``SKILL.md``. Never outside."""
    skill_md = parse_uri(entry.uri)
    root = skill_md.parent
    places: list[SkillUri | None] = []
    if "://" in path:
        places.append(parse_uri(path))
    else:
        segments = tuple(segment for segment in path.split("/") if segment not in ("", "."))
        if not path.startswith("/") and not any(map(segment_problem, segments)):
            places.append(SkillUri(root.scheme, root.segments + segments))
        with suppress(FormatError):
            places.append(resolve_reference(root, skill_md, path))
    inside = [place for place in places if place is not None and (place == root or is_within(root, place))]
    if not inside:
        raise FormatError(
            "path-outside", f"the path {path!r:.100} leaves the skill {label!r:.100}", wire.file_hint(label, ())
        )
    return list(dict.fromkeys(inside))


def _refuse_large(size: int, uri: str) -> None:
    if size > _LARGEST_FILE:
        raise LimitError(
            "file-too-large",
            f"{uri} has {size:,} bytes, more than a tool can give back",
            "it can be read as a resource, with resources/read; a model that cannot do that goes on without it",
        )
