"""Skills that functions generate.

A *stable* skill is generated once and then served like any other, with digests; ``regenerate`` generates it again.
A *dynamic* skill is generated on each read. The resources of its entry are ``"dynamic"``, because there are no
digests of bytes that do not exist yet (E2). A function that fails affects only its own skill.
"""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

import anyio
from anyio import to_thread

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Change,
    DirectoryChild,
    Page,
    SkillFile,
    no_file,
    no_skill,
)
from skillwire.catalog.memory import Skill, find_skills
from skillwire.catalog.safe_open import read_tree
from skillwire.catalog.snapshot import ReadFolder, SkillRecord, Snapshot, SnapshotCatalog
from skillwire.errors import LimitError, SkillwireError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import KINDS, Diagnostic
from skillwire.skill.entry import DEFAULT_META, DYNAMIC, SkillMeta
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, format_uri, parse_path, skill_md_uri

if TYPE_CHECKING:
    from skillwire.skill import SkillEntry

Files = Mapping[str, "bytes | str"]
Made: TypeAlias = "Files | Skill | str | os.PathLike[str]"
MakeFiles = Callable[[], "Made | Awaitable[Made]"]
F = TypeVar("F", bound=MakeFiles)
T = TypeVar("T")

log = logging.getLogger("skillwire.catalog")


class _Maker(NamedTuple):
    make: MakeFiles
    dynamic: bool
    meta: SkillMeta


class GeneratedCatalog(SnapshotCatalog):
    """Skills from functions, added with ``add`` or the decorator ``skill``."""

    def __init__(self, *, scheme: str = DEFAULT_SCHEME, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(scheme)
        self._limits = limits
        self._makers: dict[str, _Maker] = {}
        self._unmade: dict[str, None] = {}
        self._lock = anyio.Lock()

    def add(self, path: str, make: MakeFiles, *, dynamic: bool = False, meta: SkillMeta = DEFAULT_META) -> None:
        """Serve the result of ``make``, a function or a coroutine function, at ``path``.

        The result is the text of a ``SKILL.md``, a mapping of file names to content, a ``Skill``, or the ``Path``
        of a skill's folder. The change is published at once, and the first reader of it calls ``make``.
        """
        uris = frozenset({skill_md_uri(parse_path(path), self._scheme)})
        change = Change(changed=uris) if path in self._makers else Change(added=uris)
        self._makers[path] = _Maker(make, dynamic, meta)
        self._unmade[path] = None
        self._feed.publish(change)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was added."""
        return not self._makers

    def has(self, path: str) -> bool:
        """Whether a function was added for ``path``."""
        return path in self._makers

    def discard(self, path: str) -> None:
        """Stop serving the skill at ``path``."""
        self._makers.pop(path, None)
        self._unmade.pop(path, None)
        self._replace(path, {}, None)

    def skill(self, path: str, *, dynamic: bool = False, meta: SkillMeta = DEFAULT_META) -> Callable[[F], F]:
        """``add``, as a decorator."""

        def decorate(make: F) -> F:
            self.add(path, make, dynamic=dynamic, meta=meta)
            return make

        return decorate

    async def regenerate(self, path: str) -> None:
        """Call the function for ``path`` again. ``UpstreamError`` if it fails; then the skill is not served."""
        async with self._lock:
            self._unmade.pop(path, None)
            maker = self._maker(path)
            found, error = await self._attempt(path, maker)
            self._replace(path, found, maker)
        if error is not None:
            raise error

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of one skill. A dynamic one is generated again, so that its frontmatter is current."""
        known = await self.peek_skill(uri)
        owner = self._owner(self._path(uri))
        if (
            owner is not None
            and self._makers[owner].dynamic
            and (known or uri == skill_md_uri(owner, self._scheme))
        ):
            await self.regenerate(owner)
        return await super().get_skill(uri)

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """The entry as last generated."""
        return self._known_entry(await self._current(), uri)

    async def unchanged(self, uri: str | None = None) -> None:
        """Always ``None``: the results of functions can change at any time."""

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file, generated now if the skill is dynamic."""
        await self._current()
        path = self._path(uri)
        made = await self._make_dynamic(path)
        if made is None:
            return await super().read_file(uri)
        skill, record = made
        file = record.files.get(path[len(skill) + 1 :])
        if file is None or file.data is None:
            raise no_file(uri)
        return SkillFile(format_uri(path, self._scheme), file.data)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory, generated now if the skill is dynamic."""
        await self._current()
        made = await self._make_dynamic(self._path(uri))
        if made is None:
            return await super().read_directory(uri, cursor, limit)
        return self._read_directory(*made, uri, cursor, limit)

    async def _current(self) -> Snapshot:
        if self._unmade:
            async with self._lock:
                while self._unmade:
                    path = next(iter(self._unmade))
                    maker = self._makers[path]
                    found, _ = await self._attempt(path, maker)
                    if self._makers.get(path) is maker:
                        self._unmade.pop(path, None)
                    self._replace(path, found, maker, is_announced=True)
        return self._snapshot

    def _meta_of(self, path: str) -> SkillMeta:
        maker = self._makers.get(path)
        return DEFAULT_META if maker is None else maker.meta

    def _owner(self, path: str) -> str | None:
        while path and path not in self._makers:
            path = path.rpartition("/")[0]
        return path or None

    async def _make_dynamic(self, path: str) -> tuple[str, SkillRecord] | None:
        """The record, with bytes, of the dynamic skill around ``path``; ``None`` if the skill is stable."""
        owner = self._owner(path)
        if owner is None or not self._makers[owner].dynamic:
            return None
        async with self._lock:
            maker = self._maker(owner)
            found = await self._make(owner, maker)
            self._replace(owner, {key: _as_dynamic(item) for key, item in found.items()}, maker)
        record = found[owner].record
        if record is None:
            raise failed(owner, "its SKILL.md breaks a rule")
        return owner, record

    def _maker(self, path: str) -> _Maker:
        maker = self._makers.get(path)
        if maker is None:  # discarded while this task waited for the lock
            raise no_skill(skill_md_uri(path, self._scheme))
        return maker

    async def _attempt(self, path: str, maker: _Maker) -> tuple[dict[str, ReadFolder], SkillwireError | None]:
        try:
            found = await self._make(path, maker)
        except SkillwireError as error:
            reference = error.reference if error.reference in KINDS else "generator-failed"
            problem = Diagnostic(reference, error.message, error.hint, file=f"{path}/{SKILL_MD}", skill=path)
            return {path: ReadFolder(True, None, (problem,))}, error
        if maker.dynamic:
            found = {key: _as_dynamic(item) for key, item in found.items()}
        return found, None

    async def _make(self, path: str, maker: _Maker) -> dict[str, ReadFolder]:
        made = await call_maker(path, maker.make, self._limits)
        tree = Skill(path, await files_of(path, made, self._limits)).tree()
        metas = {path: maker.meta}
        found = find_skills(tree, scheme=self._scheme, limits=self._limits, metas=metas)
        if path not in found:
            raise failed(path, "it returned no SKILL.md")
        return found

    def _replace(
        self, path: str, found: Mapping[str, ReadFolder], maker: _Maker | None, *, is_announced: bool = False
    ) -> None:
        """Put ``found``, generated by ``maker``, into the snapshot, unless ``maker`` was replaced meanwhile.

        ``is_announced``: ``add`` has published the change of this skill.
        """
        if self._makers.get(path) is not maker:
            return
        self._snapshot, change = self._snapshot.updated(self._snapshot.paths_below(path), found)
        if is_announced:
            own = {skill_md_uri(path, self._scheme)}
            change = Change(change.added - own, change.changed - own, change.removed)
        self._feed.publish(change)


async def call_maker(path: str, make: Callable[[], object], limits: Limits) -> object:
    """The result of the function for ``path``, awaited if needed. ``UpstreamError`` if it fails or is slow."""
    try:
        with anyio.fail_after(limits.max_generate_seconds):
            return await call_either(make)
    except TimeoutError as error:
        raise failed(path, f"it took longer than {limits.max_generate_seconds} s") from error
    except Exception as error:
        log.warning("the function that generates the skill %r failed", path, exc_info=error)
        raise failed(path, f"it raised {type(error).__name__}") from error


async def call_either(function: Callable[[], T | Awaitable[T]]) -> T:
    """The result of a coroutine function, or of a plain function, which runs in a thread."""
    if inspect.iscoroutinefunction(function):
        return await cast("Awaitable[T]", function())
    result = await to_thread.run_sync(function, abandon_on_cancel=True)
    return await cast("Awaitable[T]", result) if inspect.isawaitable(result) else cast("T", result)


async def files_of(path: str, made: object, limits: Limits) -> Files:
    """The files that a function returned: as the text of a ``SKILL.md``, a mapping, a ``Skill`` or a folder."""
    if isinstance(made, str):
        return {SKILL_MD: made}
    if isinstance(made, Skill):
        return made.files
    if not isinstance(made, os.PathLike):
        return _checked(path, made)
    try:
        return await to_thread.run_sync(read_tree, os.fspath(cast("os.PathLike[str]", made)), limits)
    except (OSError, LimitError) as error:
        raise failed(path, "the folder it returned cannot be read") from error


def _checked(path: str, files: object) -> Files:
    if not isinstance(files, Mapping):
        raise failed(path, f"it returned {type(files).__name__}, not text, files, a Skill or a Path")
    for name, data in cast("Mapping[Any, Any]", files).items():
        if not isinstance(name, str) or not isinstance(data, bytes | str):
            raise failed(path, f"its file {name!r:.80} is {type(data).__name__}, not bytes or text")
    return cast("Files", files)


def _as_dynamic(found: ReadFolder) -> ReadFolder:
    if found.record is None:
        return found
    entry = replace(found.record.entry, resources=DYNAMIC)
    return replace(found, record=SkillRecord(entry, {}, frozenset()))


def failed(path: str, reason: str) -> UpstreamError:
    """The error for a function that failed to generate the skill at ``path``."""
    return UpstreamError(
        "generator-failed",
        f"the function that generates the skill {path!r} failed: {reason}",
        "see the server's log for details",
    )
