"""The ``index`` dialect beside the extension: ``skill://index.json`` and packed skills (I1, I2).

The index is built by the first read and cached until something changes, one for each view that callers have of the
skills. An archive has the digest that the index contains, as long as nothing has changed. A hidden skill is
answered exactly like a missing one. A file of a skill always takes precedence over an archive.

``resources/list`` ends with the index, and clients can subscribe to it. Archives are only in the index.

One document has to hold everything, so its size is limited (B1). Entries with very long frontmatter, and those
beyond the size that clients read, are only in ``skills/list``. Of a ``LargeCatalog`` the index has the first
skills, without archives.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import anyio
from anyio import lowlevel

from skillwire.catalog.contract import LargeCatalog, no_file
from skillwire.catalog.packer import FORMS, Packer
from skillwire.errors import FormatError, NotFoundError, UpstreamError, VerificationError
from skillwire.limits import DEFAULT_LIMITS, KIB
from skillwire.server.dialect import lists_file
from skillwire.skill.archive import archive_uri
from skillwire.skill.uri import DEFAULT_SCHEME, format_uri, parse_uri, skill_md_uri
from skillwire.wire import index
from skillwire.wire.errors import resource_unknown

if TYPE_CHECKING:
    from mcp_types import ReadResourceRequestParams

    from skillwire.catalog.contract import Catalog
    from skillwire.server.dialect import MethodResult, ServedSkills
    from skillwire.skill import SkillEntry
    from skillwire.skill.archive import ArchiveFormat

_ATTEMPTS = 3
_MAX_ENTRY_BYTES = 16 * KIB
_MOST_OF_LARGE = 1_000  # a page of it is read for each 100 skills

log = logging.getLogger("skillwire.server")


class SkillIndex:
    """The index, and the archives in it. ``uris`` are those of the index."""

    def __init__(self, served: ServedSkills) -> None:
        self._served = served
        self._packer = Packer()
        self.uri = format_uri(index.INDEX_NAME, served.scheme)
        self.uris = frozenset({self.uri, format_uri(index.INDEX_NAME, DEFAULT_SCHEME)})
        self._texts: WeakKeyDictionary[Catalog, tuple[int, str]] = WeakKeyDictionary()
        self._building: WeakKeyDictionary[Catalog, anyio.Lock] = WeakKeyDictionary()

    def is_index(self, uri: str) -> bool:
        """Whether ``uri`` is the index: it has one well-known URI, and another if skills have another scheme."""
        try:
            return str(parse_uri(uri)) in self.uris
        except FormatError:
            return False

    async def has(self, uri: str) -> bool:
        """Whether ``uri`` is the index, or the archive of a visible skill."""
        if self.is_index(uri):
            return True
        skill = self._packed_skill(uri)
        if skill is None:
            return False
        catalog, (path, form) = self._served.visible(), skill
        return await self._skill(catalog, path) is not None and not await self._is_file(catalog, path, form)

    async def read(self, params: ReadResourceRequestParams) -> MethodResult:
        """The result of ``resources/read``."""
        uri, catalog = str(params.uri), self._served.visible()
        if self.is_index(uri):
            return index.index_result(uri, await self._text(catalog))
        path, form = self._packed_skill(uri) or ("", "zip")
        data = await self._archive(catalog, path, form)
        if data is None:
            raise resource_unknown(no_file(uri), uri)
        return index.archive_result(archive_uri(path, form, self._served.scheme), form, data)

    async def _text(self, catalog: Catalog) -> str:
        """The index of one view. Only one caller at a time builds it."""
        async with self._building.setdefault(catalog, anyio.Lock()):
            text = ""
            for _ in range(_ATTEMPTS):
                version = self._served.version()
                built = self._texts.get(catalog)
                if built is not None and built[0] == version:
                    return built[1]
                text = await self._build(catalog)
                self._texts[catalog] = (version, text)
            return text  # the catalog changes all the time

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

    async def _build(self, catalog: Catalog) -> str:
        lines: list[str] = []
        size = skipped = 0
        is_large = isinstance(catalog, LargeCatalog)
        async for entry in catalog.entries():
            await lowlevel.checkpoint()  # cached digests never wait, and other requests need their turn
            if is_large and len(lines) + skipped == _MOST_OF_LARGE:
                break
            # Packing reads every file, so the skills of a large catalog are listed without archives.
            archives = {} if is_large else dict(await self._packer.digests(catalog, entry))
            for form in FORMS:
                if form in archives and await self._is_file(catalog, entry.path, form):
                    del archives[form]
            came_packed = await catalog.ready_archive(entry.uri) is not None
            item = index.index_entry(entry, archives, self._served.scheme, came_packed=came_packed)
            line = index.index_line(item)
            added = len(line.encode(errors="surrogatepass"))
            if added > _MAX_ENTRY_BYTES or size + added > DEFAULT_LIMITS.max_index_bytes:
                skipped += 1
            else:
                size += added
                lines.append(line)
        if skipped:
            log.warning("skills that are too large for %s, and only in skills/list: %d", self.uri, skipped)
        templates = (index.index_template(template, self._served.scheme) for template in catalog.templates())
        lines += map(index.index_line, templates)
        return index.index_text(lines)

    async def _skill(self, catalog: Catalog, path: str) -> SkillEntry | None:
        try:
            return await catalog.peek_skill(skill_md_uri(path, self._served.scheme))
        except FormatError:
            return None

    async def _is_file(self, catalog: Catalog, path: str, form: ArchiveFormat) -> bool:
        """Whether a skill has a file at the URI of this archive."""
        return await lists_file(catalog, archive_uri(path, form, self._served.scheme), self._served.scheme)

    def _packed_skill(self, uri: str) -> tuple[str, ArchiveFormat] | None:
        """The path of the skill whose archive is at ``uri``, and the archive's format."""
        try:
            parsed = parse_uri(uri)
        except FormatError:
            return None
        if parsed.scheme != self._served.scheme:
            return None
        for form in FORMS:
            path = parsed.path.removesuffix(f".{form}")
            if path != parsed.path and not path.endswith("/"):
                return path, form
        return None
