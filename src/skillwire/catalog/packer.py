"""Packs skills of any catalog into archives on request (I2).

Only verified bytes are packed, so an archive contains exactly the files of the entry. Skills whose bytes are on
another server are not packed, because an index would fetch all of them (V5). Digests are cached by the content of
a skill, so after a change only changed skills are packed again. Archives are not cached: packing costs little more
than hashing (docs/adr/0008). The event loop is never blocked for long: reading yields between files, and large
skills are packed in a thread.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple, TypeVar, get_args

import anyio
from anyio import to_thread

from skillwire.catalog.verification import read_verified
from skillwire.errors import FormatError, LimitError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS, KIB, Limits
from skillwire.skill.archive import ArchiveFormat, pack
from skillwire.skill.entry import digest_of
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import SkillEntry

FORMS: tuple[ArchiveFormat, ...] = get_args(ArchiveFormat)
_INLINE_BYTES = 256 * KIB  # smaller skills are packed in the event loop: a thread would cost more than the work

T = TypeVar("T")


class Packer:
    """Packs skills, and caches digests."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self._digests: OrderedDict[bytes, Mapping[ArchiveFormat, str]] = OrderedDict()  # by content
        self._turn = anyio.Lock()

    async def digests(self, catalog: Catalog, entry: SkillEntry) -> Mapping[ArchiveFormat, str]:
        """The digest of each archive of the skill. Empty if it cannot be packed now."""
        ready = await catalog.ready_archive(entry.uri)
        packed = await self._packed_digests(catalog, entry)
        return packed if ready is None else {**packed, ready.form: ready.digest}

    async def archive(self, catalog: Catalog, entry: SkillEntry, form: ArchiveFormat) -> bytes | None:
        """The skill as an archive; ``None`` if it cannot be packed.

        ``VerificationError`` or ``NotFoundError`` if the skill no longer matches ``entry``.
        """
        ready = await catalog.ready_archive(entry.uri)
        if ready is not None and ready.form == form:
            return ready.data
        if not self._may_pack(entry):
            return None
        async with self._turn:  # one after another, because a skill and its archive are in memory
            tree = await tree_of(catalog, entry)
            files = await read_verified(catalog, entry, limits=self._limits)
            return await _run(entry.size, lambda: _pack_or_none(files, tree, form, self._limits))

    def _may_pack(self, entry: SkillEntry) -> bool:
        """Whether the skill can be verified and packed without another server."""
        return (
            entry.is_complete
            and not entry.gaps
            and entry.size <= min(self._limits.max_archive_bytes, self._limits.max_skill_bytes)
            and len(entry.files) <= self._limits.max_resources
            and entry.local
        )

    async def _packed_digests(self, catalog: Catalog, entry: SkillEntry) -> Mapping[ArchiveFormat, str]:
        if not self._may_pack(entry):
            return {}
        try:
            tree = await tree_of(catalog, entry)
            key = _contents(entry, tree)
            if key not in self._digests:
                files = await read_verified(catalog, entry, limits=self._limits)
                self._digests[key] = await _run(entry.size, lambda: _digests_of(files, tree, self._limits))
        except SkillwireError:  # unreadable, or it no longer matches the entry: not cached
            return {}
        known = self._digests[key]
        self._digests.move_to_end(key)
        if len(self._digests) > self._limits.max_entries:
            self._digests.popitem(last=False)
        return known


class PackedTree(NamedTuple):
    """What an entry does not have: which files are executable, and which folders are empty."""

    executables: frozenset[str] = frozenset()
    empty_folders: tuple[str, ...] = ()


async def tree_of(catalog: Catalog, entry: SkillEntry) -> PackedTree:
    """Read the directories of a skill. Directories of another server do not have this information."""
    executables, empty = list[str](), list[str]()
    begin, pending = len(entry.path) + 1, [str(parse_uri(entry.uri).parent)] if entry.local else []
    while pending:
        folder = pending.pop()
        children = [child async for child in catalog.children(folder)]
        pending += [child.uri for child in children if child.is_directory]
        executables += [parse_uri(child.uri).path[begin:] for child in children if child.executable]
        if not children:
            empty.append(parse_uri(folder).path[begin:])
    return PackedTree(frozenset(executables), tuple(sorted(empty)))


def _contents(entry: SkillEntry, tree: PackedTree) -> bytes:
    """A hash of the files (path in the skill, digest) and the tree. Equal hashes mean equal archives."""
    begin = entry.uri.rindex("/") + 1
    lines = sorted(f"{resource.uri[begin:]} {resource.digest}" for resource in entry.files)
    lines += [f"+x {path}" for path in sorted(tree.executables)] + [f"{path}/" for path in tree.empty_folders]
    return sha256("\n".join(lines).encode()).digest()


def _digests_of(files: Mapping[str, bytes], tree: PackedTree, limits: Limits) -> Mapping[ArchiveFormat, str]:
    digests: dict[ArchiveFormat, str] = {}
    for form in FORMS:
        data = _pack_or_none(files, tree, form, limits)
        if data is not None:
            digests[form] = digest_of(data)
    return digests


def _pack_or_none(
    files: Mapping[str, bytes], tree: PackedTree, form: ArchiveFormat, limits: Limits
) -> bytes | None:
    with suppress(FormatError, LimitError):  # a name or a size that ``unpack`` would refuse
        return pack(files, form, limits, executables=tree.executables, empty_folders=tree.empty_folders)
    return None


async def _run(size: int, work: Callable[[], T]) -> T:
    return work() if size < _INLINE_BYTES else await to_thread.run_sync(work)
