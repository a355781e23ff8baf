"""The tools of the ``fallback`` (X1, X2): list, search, load and read the skills that a caller may see.

A path never leaves its skill, in any spelling (U6, U7). The bytes are the catalog's, so they are the same as those
of the extension. Every failure is one of our errors, with a hint.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import asynccontextmanager, suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias

from skillwire.errors import FormatError, LimitError, NotFoundError
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.skill.hidden import encode_hidden
from skillwire.skill.model import text_for_model
from skillwire.skill.uri import SKILL_MD, SkillUri, is_within, parse_uri, resolve_reference, segment_problem
from skillwire.wire import fallback as wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from mcp.server.lowlevel import Server

    from skillwire.catalog.contract import Catalog, SkillFile
    from skillwire.search.index import Hit, SearchIndex
    from skillwire.server.dialect import Answer, Served
    from skillwire.skill import SkillEntry

    Block: TypeAlias = dict[str, Any]

_MAX_INDEXES = 16
_MAX_LISTED = 100  # a model reads every line
_MAX_FILE = MIB
_SIMILAR_FILES = 3
_MAX_COMPARED = 512  # files of a skill that are compared with an unknown path


class SkillSearch:
    """Search in the skills that a caller may see: one index for each view, built by the first search in it.

    An index contains only what its callers may see, so that not even the order of results depends on the rest. The
    most recently used indexes are kept, up to a limit, while ``server`` runs.
    """

    def __init__(self, server: Server[Any]) -> None:
        self._indexes: OrderedDict[Catalog, SearchIndex] = OrderedDict()  # the most recently used one is last
        self._runs = 0
        self._close_with(server)

    async def search(self, catalog: Catalog, query: str, limit: int) -> list[tuple[Hit, SkillEntry]]:
        """The best matches for ``query`` in ``catalog``, best first."""
        hits = await self._index(catalog).search(query, limit)
        found = [(hit, await catalog.peek_skill(hit.uri)) for hit in hits]
        return [(hit, entry) for hit, entry in found if entry is not None]

    def _index(self, catalog: Catalog) -> SearchIndex:
        from skillwire.search.index import SearchIndex  # late: only the first search needs it

        index = self._indexes.pop(catalog, None) or SearchIndex(catalog)
        self._indexes[catalog] = index
        while len(self._indexes) > _MAX_INDEXES:
            self._indexes.popitem(last=False)[1].close()
        return index

    def _close_with(self, server: Server[Any]) -> None:
        """Close all indexes when the last run of the server ends. In memory each connection is a run."""
        inner = server.lifespan

        @asynccontextmanager
        async def lifespan(app: Server[Any]) -> AsyncGenerator[Any]:
            self._runs += 1
            try:
                async with inner(app) as state:
                    yield state
            finally:
                self._runs -= 1
                while not self._runs and self._indexes:
                    self._indexes.popitem()[1].close()

        server.lifespan = lifespan


class SkillTools:
    """The four tools over the served skills."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._server = served.server.name

    async def call(self, tool: str, given: Mapping[str, Any]) -> Answer:
        """The result of one tool. Raises our errors."""
        arguments = wire.read_arguments(tool, given)
        match tool:
            case wire.LIST:
                return await self._list(arguments.get("cursor") or None)
            case wire.SEARCH:
                return await self._search(arguments["query"], int(arguments.get("limit", wire.DEFAULT_HITS)))
            case wire.LOAD:
                return wire.tool_result(await self.load(await self.find(arguments["skill"])))
            case _:
                entry = await self.find(arguments["skill"])
                return wire.tool_result(await self._read(entry, arguments["path"]))

    async def find(self, skill: str) -> SkillEntry:
        """The skill with this name, path or URI. A URI may omit ``SKILL.md``."""
        named = skill.strip()
        if "://" in named and not named.endswith(f"/{SKILL_MD}"):
            named = f"{named.rstrip('/')}/{SKILL_MD}"
        try:
            return await self._served.names().find(named)
        except (NotFoundError, FormatError) as error:
            raise NotFoundError(error.reference, error.message, wire.find_hint(error.hint)) from error

    async def load(self, entry: SkillEntry) -> list[Block]:
        """X2: the source of the skill and its other files, then its ``SKILL.md``."""
        file = await self._file(entry, entry.uri)
        label = await self._served.label(entry)
        return [wire.text_block(wire.loaded_text(self._server, label, entry)), wire.file_block(file)]

    async def _list(self, cursor: str | None) -> Answer:
        limit = min(self._served.page_size, _MAX_LISTED)
        page = await self._served.visible().list_skills(cursor, limit)
        labels = [await self._served.label(entry) for entry in page.items]
        lines = [wire.skill_line(label, entry) for label, entry in zip(labels, page.items, strict=True)]
        text = wire.listed_text(self._server, lines, page.next_cursor)
        return wire.skills_result(text, _as_data(labels, page.items), wire.LOAD_NEXT, page.next_cursor)

    async def _search(self, query: str, limit: int) -> Answer:
        found = await self._served.search.search(self._served.visible(), query, limit)
        entries = [entry for _, entry in found]
        labels = [await self._served.label(entry) for entry in entries]
        lines = [wire.skill_line(label, entry) for label, entry in zip(labels, entries, strict=True)]
        text = wire.found_text(self._server, query, lines)
        next_step = wire.LOAD_NEXT if lines else wire.SEARCH_AGAIN
        return wire.skills_result(text, _as_data(labels, entries), next_step, None)

    async def _read(self, entry: SkillEntry, path: str) -> list[Block]:
        label = await self._served.label(entry)
        for place in _meanings(entry, path, label):
            inside = wire.relative_path(entry, str(place))
            with suppress(NotFoundError):
                file = await self._file(entry, str(place))
                return [wire.text_block(wire.file_text(self._server, label, inside, file)), wire.file_block(file)]
            with suppress(NotFoundError):
                return [wire.text_block(await self._folder(label, inside, str(place)))]
        similar = get_close_matches(path[:200], _paths(entry), _SIMILAR_FILES)
        raise NotFoundError(
            "file-unknown", f"the skill {label!r:.100} has no file {path!r:.100}", wire.file_hint(label, similar)
        )

    async def _folder(self, label: str, path: str, uri: str) -> str:
        page = await self._served.visible().read_directory(uri, None, DEFAULT_LIMITS.max_page_size)
        return wire.folder_text(self._server, label, path, page.items, more=page.next_cursor is not None)

    async def _file(self, entry: SkillEntry, uri: str) -> SkillFile:
        known = entry.resource(uri)
        if known is not None and known.size is not None:
            _refuse_large(known.size, uri)
        file = await self._served.visible().read_file(uri)
        _refuse_large(len(file.data), uri)
        return file


def _as_data(labels: Sequence[str], entries: Sequence[SkillEntry]) -> list[dict[str, Any]]:
    return [
        {"name": label, "description": text_for_model(entry.description), "uri": encode_hidden(entry.uri)}
        for label, entry in zip(labels, entries, strict=True)
    ]


def _paths(entry: SkillEntry) -> list[str]:
    return [wire.relative_path(entry, file.uri) for file in entry.files[:_MAX_COMPARED]]


def _meanings(entry: SkillEntry, path: str, label: str) -> list[SkillUri]:
    """The URIs that ``path`` may mean in the skill: as a path, or as a link in its ``SKILL.md``."""
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
    if size > _MAX_FILE:
        raise LimitError(
            "file-too-large",
            f"{uri} has {size:,} bytes, more than a tool can return",
            "read it as a resource, with resources/read; if that is not possible, continue without it",
        )
