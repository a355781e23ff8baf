"""The ``index`` dialect beside the extension: ``skill://index.json`` and packed skills (I1, I2).

The index is built by the first read and kept until something changes, one for each view that callers have of the
skills. An archive has the digest that the index contains, as long as nothing has changed. A hidden skill is
answered exactly like a missing one. A file of a skill always takes precedence over an archive.

``resources/list`` ends with the index, and clients can subscribe to it. Archives are only in the index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import anyio
from anyio import lowlevel
from mcp_types import ReadResourceRequestParams

from skillwire.catalog.packer import FORMS, Packer
from skillwire.catalog.snapshot import no_file
from skillwire.errors import FormatError, NotFoundError, UpstreamError, VerificationError
from skillwire.server.dialect import Answer, DialectHandlers, is_modern
from skillwire.server.skill_files import lists_file
from skillwire.skill.archive import archive_uri
from skillwire.skill.uri import DEFAULT_SCHEME, format_uri, parse_uri, skill_md_uri
from skillwire.wire import index
from skillwire.wire.errors import resource_unknown, rpc_errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import CallNext, HandlerResult

    from skillwire.catalog.changes import ChangeStream
    from skillwire.catalog.contract import Catalog
    from skillwire.server.dialect import Context, Served
    from skillwire.server.notifications import Notifier
    from skillwire.skill import SkillEntry
    from skillwire.skill.archive import ArchiveFormat

_ATTEMPTS = 3


class IndexHandlers(DialectHandlers):
    """The index and the archives in it."""

    def __init__(self, served: Served, notifier: Notifier) -> None:
        super().__init__(served)
        self._packer = Packer()
        self._indexes = _Indexes(self._make_index)
        self._uri = format_uri(index.INDEX_NAME, served.scheme)
        self._read_own = served.answering(ReadResourceRequestParams, self._read_packed)
        self._notifier = notifier
        notifier.index_uris = frozenset({self._uri, format_uri(index.INDEX_NAME, DEFAULT_SCHEME)})
        self.handlers |= {
            "resources/read": self._read,
            "resources/list": self._list,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._subscribe,
        }

    async def _read(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        uri = (ctx.params or {}).get("uri")
        if isinstance(uri, str) and await self._is_ours(uri):
            return await self._read_own(ctx, call_next)
        return await call_next(ctx)

    async def _list(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Add the index after everything else."""
        page = cast("Answer", await call_next(ctx))
        if page.get("nextCursor"):
            return page
        return {**page, "resources": [*page.get("resources", ()), index.index_resource(self._uri)]}

    async def _subscribe(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        uri = (ctx.params or {}).get("uri")
        if is_modern(ctx) or not isinstance(uri, str) or not self._is_index(uri):
            return await call_next(ctx)
        change = self._notifier.subscribe if ctx.method == "resources/subscribe" else self._notifier.unsubscribe
        with rpc_errors():
            change(ctx.session, str(parse_uri(uri)))
        return {}

    async def may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool | None:  # noqa: ARG002
        """Every caller may subscribe to the index, and is notified when something changes that it may see."""
        return True if self._is_index(uri) else None

    async def _is_ours(self, uri: str) -> bool:
        if self._is_index(uri):
            return True
        skill = self._packed_skill(uri)
        if skill is None:
            return False
        catalog, (path, form) = self.served.visible(), skill
        return await self._skill(catalog, path) is not None and not await self._is_file(catalog, path, form)

    async def _read_packed(self, params: ReadResourceRequestParams) -> Answer:
        uri, catalog = str(params.uri), self.served.visible()
        if self._is_index(uri):
            return index.index_result(uri, await self._indexes.text(catalog, self.served.whole()))
        path, form = self._packed_skill(uri) or ("", "zip")
        data = await self._archive(catalog, path, form)
        if data is None:
            raise resource_unknown(no_file(uri), uri)
        return index.archive_result(archive_uri(path, form, self.served.scheme), form, data)

    async def _archive(self, catalog: Catalog, path: str, form: ArchiveFormat) -> bytes | None:
        """The archive of the current version of the skill; a change in the meantime starts it again."""
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
            await lowlevel.checkpoint()  # cached digests never wait, and other requests need their turn
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
        """Whether a skill has a file at the URI of this archive."""
        return await lists_file(catalog, archive_uri(path, form, self.served.scheme), self.served.scheme)

    def _is_index(self, uri: str) -> bool:
        """The index has one well-known URI, and another one if the skills have another scheme."""
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
    """The index of each view, built on first use and kept until anything changes."""

    def __init__(self, make: Callable[[Catalog], Awaitable[str]]) -> None:
        self._make = make
        self._texts: WeakKeyDictionary[Catalog, str] = WeakKeyDictionary()
        self._making: WeakKeyDictionary[Catalog, anyio.Lock] = WeakKeyDictionary()
        self._generation = 0
        self._watch: tuple[Catalog, ChangeStream] | None = None

    async def text(self, view: Catalog, whole: Catalog) -> str:
        """The index of ``view``, which is ``whole`` or a part of it. Only one caller at a time builds it."""
        self._listen(whole)
        async with self._making.setdefault(view, anyio.Lock()):
            text = self._texts.get(view)
            for _ in range(_ATTEMPTS if text is None else 0):
                generation = self._generation
                text = await self._make(view)
                if generation == self._generation:
                    self._texts[view] = text
                    break
            return text or ""  # for a catalog that changes all the time, the last text is used once

    def _listen(self, whole: Catalog) -> None:
        """Follow the changes of ``whole``, which is another catalog after a skill was declared later."""
        if self._watch is not None and self._watch[0] is whole:
            return
        if self._watch is not None:
            self._watch[1].close()
        self._watch = (whole, whole.changes())
        self._watch[1].forward(self._forget)
        self._forget()

    def _forget(self, change: Any = None) -> None:  # noqa: ARG002 - any change outdates all indexes
        self._generation += 1
        self._texts.clear()
