"""The ``index`` dialect beside the extension: ``skill://index.json`` and packed skills (I1, I2).

The index is made when it is first read and kept until something changes, one for each view that callers have of
the skills. What an archive's URI returns hashes to what the index says, as long as nothing changed. Whatever a
caller may not see answers exactly like what does not exist, and a file of a skill always wins over an archive.

``resources/list`` ends with the index, and clients can subscribe to it. Archives are not listed: the
index names them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import anyio
from anyio import lowlevel
from mcp_types import ReadResourceRequestParams

from skillwire.catalog.packed import FORMS, Packer
from skillwire.catalog.snapshot import no_file
from skillwire.errors import FormatError, NotFoundError, SkillwireError, UpstreamError, VerificationError
from skillwire.server.binding import OWN, Answer, Binding, ask, is_modern
from skillwire.server.extension import lists_file
from skillwire.skill.archive import archive_uri
from skillwire.skill.uri import DEFAULT_SCHEME, format_uri, parse_uri, skill_md_uri
from skillwire.wire import index
from skillwire.wire.errors import resource_unknown, to_rpc_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import CallNext, HandlerResult

    from skillwire.catalog.changes import ChangeStream
    from skillwire.catalog.contract import Catalog
    from skillwire.server.binding import Context, Served
    from skillwire.server.notifications import Notices
    from skillwire.skill import SkillEntry
    from skillwire.skill.archive import ArchiveFormat

_READ_PACKED = f"{OWN}index/read"
_ATTEMPTS = 3


class IndexBinding(Binding):
    """The index, and the archives that it names."""

    def __init__(self, served: Served, notices: Notices) -> None:
        super().__init__(served)
        self._packer = Packer()
        self._indexes = _Indexes(self._make_index)
        self._uri = format_uri(index.INDEX_NAME, served.scheme)
        self._notices = notices
        notices.index_uris = frozenset({self._uri, format_uri(index.INDEX_NAME, DEFAULT_SCHEME)})
        self.routes |= {
            "resources/read": self._read,
            "resources/list": self._list,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._subscribe,
        }
        self.handle(_READ_PACKED, ReadResourceRequestParams, self._read_packed)

    async def _read(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        uri = (ctx.params or {}).get("uri")
        if isinstance(uri, str) and await self._is_ours(ctx, uri):
            return await ask(ctx, call_next, _READ_PACKED)
        return await call_next(ctx)

    async def _list(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """The index follows everything else."""
        page = cast("Answer", await call_next(ctx))
        if page.get("nextCursor"):
            return page
        return {**page, "resources": [*page.get("resources", ()), index.index_resource(self._uri)]}

    async def _subscribe(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        uri = (ctx.params or {}).get("uri")
        if is_modern(ctx) or not isinstance(uri, str) or not self._is_index(uri):
            return await call_next(ctx)
        change = self._notices.subscribe if ctx.method == "resources/subscribe" else self._notices.unsubscribe
        try:
            change(ctx.session, str(parse_uri(uri)))
        except SkillwireError as error:
            raise to_rpc_error(error) from error
        return {}

    async def may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool | None:  # noqa: ARG002
        """Everybody may, and hears of it when something changes that they see."""
        return True if self._is_index(uri) else None

    async def _is_ours(self, ctx: Context, uri: str) -> bool:
        if self._is_index(uri):
            return True
        skill = self._packed_skill(uri)
        if skill is None:
            return False
        catalog, (path, form) = self.served.catalog_for(ctx), skill
        return await self._skill(catalog, path) is not None and not await self._is_file(catalog, path, form)

    async def _read_packed(self, ctx: Context, params: ReadResourceRequestParams) -> Answer:
        uri, catalog = str(params.uri), self.served.catalog_for(ctx)
        if self._is_index(uri):
            return index.index_result(uri, await self._indexes.text(catalog, self.served.whole()))
        path, form = self._packed_skill(uri) or ("", "zip")
        data = await self._archive(catalog, path, form)
        if data is None:
            raise resource_unknown(no_file(uri), uri)
        return index.archive_result(archive_uri(path, form, self.served.scheme), form, data)

    async def _archive(self, catalog: Catalog, path: str, form: ArchiveFormat) -> bytes | None:
        """The archive of the skill as it is now; one that changes meanwhile is looked at again."""
        for _ in range(_ATTEMPTS):
            entry = await self._skill(catalog, path)
            if entry is None:
                return None
            try:
                return await self._packer.archive(catalog, entry, form)
            except (NotFoundError, VerificationError):
                continue
        raise UpstreamError(
            "file-changing",
            f"the skill {path!r:.200} changes faster than it can be packed",
            "try again in a moment",
        )

    async def _make_index(self, catalog: Catalog) -> str:
        lines: list[str] = []
        async for entry in catalog.entries():
            await lowlevel.checkpoint()  # what is remembered is found at once, and others wait for their turn
            archives = dict(await self._packer.digests(catalog, entry))
            for form in FORMS:
                if form in archives and await self._is_file(catalog, entry.path, form):
                    del archives[form]
            came_packed = await catalog.ready_archive(entry.uri) is not None
            item = index.index_entry(entry, archives, self.served.scheme, came_packed=came_packed)
            lines.append(index.index_line(item))
        templates = (index.index_template(template, self.served.scheme) for template in catalog.templates())
        lines += map(index.index_line, templates)
        return index.index_text(lines)

    async def _skill(self, catalog: Catalog, path: str) -> SkillEntry | None:
        try:
            return await catalog.peek_skill(skill_md_uri(path, self.served.scheme))
        except FormatError:
            return None

    async def _is_file(self, catalog: Catalog, path: str, form: ArchiveFormat) -> bool:
        """Whether a skill has a file of its own where this archive would be."""
        return await lists_file(catalog, archive_uri(path, form, self.served.scheme), self.served.scheme)

    def _is_index(self, uri: str) -> bool:
        """The index has one well-known place, and one beside skills of another scheme."""
        try:
            parsed = parse_uri(uri)
        except FormatError:
            return False
        return parsed.path == index.INDEX_NAME and parsed.scheme in (self.served.scheme, DEFAULT_SCHEME)

    def _packed_skill(self, uri: str) -> tuple[str, ArchiveFormat] | None:
        """The path of the skill whose archive is at ``uri``, and the archive's format."""
        try:
            parsed = parse_uri(uri)
        except FormatError:
            return None
        if parsed.scheme != self.served.scheme:
            return None
        for form in FORMS:
            path = parsed.path.removesuffix(f".{form}")
            if path != parsed.path and not path.endswith("/"):
                return path, form
        return None


class _Indexes:
    """The index of each view, made on first use and kept until something changes anywhere."""

    def __init__(self, make: Callable[[Catalog], Awaitable[str]]) -> None:
        self._make = make
        self._texts: WeakKeyDictionary[Catalog, str] = WeakKeyDictionary()
        self._making: WeakKeyDictionary[Catalog, anyio.Lock] = WeakKeyDictionary()
        self._generation = 0
        self._watch: tuple[Catalog, ChangeStream] | None = None

    async def text(self, view: Catalog, whole: Catalog) -> str:
        """The index of ``view``, which is ``whole`` or a part of it. It is made by one at a time."""
        self._listen(whole)
        async with self._making.setdefault(view, anyio.Lock()):
            text = self._texts.get(view)
            for _ in range(_ATTEMPTS if text is None else 0):
                generation = self._generation
                text = await self._make(view)
                if generation == self._generation:
                    self._texts[view] = text
                    break
            return text or ""  # of a catalog that never rests, the last one made; it is not kept

    def _listen(self, whole: Catalog) -> None:
        """What is served can become another catalog when a skill is declared later."""
        if self._watch is not None and self._watch[0] is whole:
            return
        if self._watch is not None:
            self._watch[1].close()
        self._watch = (whole, whole.changes())
        self._watch[1].forward(self._forget)
        self._forget()

    def _forget(self, change: Any = None) -> None:  # noqa: ARG002 - that there is a change is enough
        self._generation += 1
        self._texts.clear()
