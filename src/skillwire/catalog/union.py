"""Several catalogs as one.

Each source is mounted under an optional prefix. If two sources have a skill at one path, each is served under its
source's label (``team-a/refunds`` and ``team-b/refunds``), a request for the bare path names both, and the
collision is reported (N1).

The rule: a path that begins with a source's label belongs to that source alone. A source *claims* any other path
at which it has a skill. A path is *contested* if two sources claim it, or if one claims it inside another's skill.
A skill is visible at its own path if that can be claimed and is not contested, else at its source's label before
that path. So every skill has exactly one URI, no file's URI can mean two things, and nothing is shadowed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import anyio

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    Change,
    ChangeStream,
    DirectoryChild,
    Page,
    ReadyArchive,
    RelayStream,
    SkillFile,
    SkillTemplate,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import page_of_sources
from skillwire.catalog.uri_map import UriMap
from skillwire.errors import FormatError, NotFoundError, SkillwireError
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.uri import (
    DEFAULT_SCHEME,
    SKILL_MD,
    format_uri,
    parse_path,
    parse_uri,
    root_of,
    skill_md_uri,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from skillwire.skill import SkillEntry


@dataclass(frozen=True, slots=True, eq=False)
class Mount:
    """A catalog, its unique label, and the prefix under which its skills are served."""

    catalog: Catalog
    label: str
    prefix: str = ""

    def outer(self, path: str) -> str:
        """The path with the prefix."""
        return f"{self.prefix}/{path}" if self.prefix else path

    def inner(self, path: str) -> str | None:
        """The path without the prefix; ``None`` if it does not begin with it."""
        if not self.prefix:
            return path
        return path[len(self.prefix) + 1 :] if path.startswith(f"{self.prefix}/") else None

    def qualified(self, path: str) -> str:
        """The path below the label, which no other source can have."""
        return f"{self.label}/{path}"


class Home(NamedTuple):
    """The source that has a skill, the path of the skill there, and the path at which it is visible."""

    mount: Mount
    inner: str
    visible: str

    def uri(self, path: str, scheme: str) -> str:
        """The URI at the source of the file or directory that is visible at ``path``."""
        return format_uri(f"{self.inner}{path[len(self.visible) :]}", scheme)


class Claims:
    """Which source claims which path, cached for one request.

    For example, the sources ``a`` and ``b`` both have ``refunds``. ``b`` also has ``notes``, ``refunds/eu`` and
    ``a/tools``. Neither has a prefix.

    ============== ============ ================================= ==============================
    path           claimed by   contested                         visible at
    ============== ============ ================================= ==============================
    ``notes``      ``b``        no                                ``notes``
    ``refunds``    ``a``, ``b`` yes: claimed twice                ``a/refunds``, ``b/refunds``
    ``refunds/eu`` ``b``        yes: inside ``refunds`` of ``a``  ``b/refunds/eu``
    ``a/tools``    none         no                                ``b/a/tools``
    ============== ============ ================================= ==============================

    The source ``b`` may not claim ``a/tools``: there it would be confused with a skill ``tools`` of ``a``.
    """

    def __init__(self, mounts: Sequence[Mount], scheme: str) -> None:
        self._mounts = mounts
        self._by_label = {mount.label: mount for mount in mounts}
        self._scheme = scheme
        self._known: dict[str, list[Mount]] = {}

    async def of(self, path: str) -> list[Mount]:
        """The sources that claim ``path``: those that may, and have a skill there."""
        if path not in self._known:
            self._known[path] = [
                mount
                for mount in self._mounts
                if self.may_claim(mount, path) and await self._has(mount, mount.inner(path))
            ]
        return self._known[path]

    def may_claim(self, mount: Mount, path: str) -> bool:
        """Whether ``mount`` may serve a skill at ``path``, without its label before it, if it has one there.

        It may not if the path begins with a label: that of another source, or its own. For its own label there is
        one exception: its prefix begins with it, so all its paths do.
        """
        owner = self._by_label.get(path.partition("/")[0])
        return owner is None or (owner is mount and mount.prefix.partition("/")[0] == mount.label)

    async def is_contested(self, path: str) -> bool:
        """Whether more than one source claims ``path``, or one claims it inside another's skill."""
        if len(self._mounts) < 2:  # one source cannot collide
            return False
        mounts = set(await self.of(path))
        above = path.rpartition("/")[0] if mounts else ""  # without a claim on the path, nothing to compare
        while above and len(mounts) < 2:
            mounts.update(await self.of(above))
            above = above.rpartition("/")[0]
        return len(mounts) > 1

    async def is_inside_other(self, mount: Mount, path: str) -> bool:
        """Whether ``path`` is inside a skill of another source."""
        while path := path.rpartition("/")[0]:
            if any(other is not mount for other in await self.of(path)):
                return True
        return False

    async def visible_path(self, mount: Mount, path: str) -> str:
        """The path at which a skill of ``mount``, whose path with its prefix is ``path``, is served."""
        if self.may_claim(mount, path) and not await self.is_contested(path):
            return path
        return mount.qualified(path)

    async def home(self, path: str, uri: str) -> Home | None:
        """The skill visible at exactly ``path``. ``NotFoundError`` with the candidates if it is contested.

        A skill is visible at its own path or below its source's label, never at both.
        """
        mounts = await self.of(path)
        if mounts and await self.is_contested(path):
            visible = [await self.visible_path(mount, path) for mount in mounts]
            candidates = " or ".join(skill_md_uri(each, self._scheme) for each in visible)
            raise NotFoundError("skill-ambiguous", f"{uri!r:.300} is ambiguous", f"use {candidates}")
        if mounts:
            return Home(mounts[0], mounts[0].inner(path) or "", path)
        label, _, rest = path.partition("/")  # no source claims it: perhaps it is a path below a label
        mount = self._by_label.get(label)
        inner = mount.inner(rest) if mount else None
        if mount is None or not inner or not await self._has(mount, inner):
            return None
        # ``a/refunds`` is the URI of ``refunds`` of ``a`` only while ``refunds`` is contested.
        return Home(mount, inner, path) if await self.visible_path(mount, rest) == path else None

    async def home_around(self, path: str, uri: str) -> Home | None:
        """The innermost skill visible at or around ``path``."""
        contested: NotFoundError | None = None
        while path:
            try:
                home = await self.home(path, uri)
            except NotFoundError as error:  # its files may still belong to a visible skill further out
                home, contested = None, contested or error
            if home is not None:
                return home
            path = path.rpartition("/")[0]
        if contested is not None:
            raise contested
        return None

    async def _has(self, mount: Mount, path: str | None) -> bool:
        return bool(path) and await mount.catalog.peek_skill(skill_md_uri(path, self._scheme)) is not None


def unique_labels(names: Sequence[str]) -> list[str]:
    """Make the names unique: ``skills``, ``skills-2``, ``skills-3``."""
    labels: list[str] = []
    for name in names:
        label, count = name, 1
        while label in labels:
            count += 1
            label = f"{name}-{count}"
        labels.append(label)
    return labels


class CombinedCatalog(Catalog):
    """A catalog of catalogs, in the order given. Labels must differ."""

    def __init__(self, mounts: Sequence[Mount], *, scheme: str = DEFAULT_SCHEME) -> None:
        self.mounts = tuple(mounts)
        self._scheme = scheme
        labels = [mount.label for mount in self.mounts]
        if len(set(labels)) != len(labels):
            raise FormatError(
                "label-duplicate", "two sources have the same label", "give each source a unique label"
            )
        for mount in self.mounts:
            if "/" in parse_path(mount.label):
                raise FormatError("label-invalid", f"the label {mount.label!r:.80} has a '/'", "use one word")
            if mount.prefix:
                parse_path(mount.prefix)

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page: the sources in order, and the skills of each in its order."""
        claims = self._claims()

        async def list_moved(mount: Mount, cursor: str | None, limit: int) -> Page[SkillEntry]:
            page = await mount.catalog.list_skills(cursor, limit)
            return Page([await _moved(claims, mount, entry) for entry in page.items], page.next_cursor)

        sources = {mount.label: partial(list_moved, mount) for mount in self.mounts}
        return await page_of_sources("combined", sources, cursor, limit)

    async def unlisted(self) -> list[SkillEntry]:
        """The unlisted skills of every source, under their visible URIs."""
        claims = self._claims()
        return [
            await _moved(claims, mount, entry) for mount in self.mounts for entry in await mount.catalog.unlisted()
        ]

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of one skill, under its visible URI."""
        home, inner = await self._skill_at(uri)
        return _at(await home.mount.catalog.get_skill(inner), home.visible)

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """The entry, if its source knows it without work."""
        with suppress(NotFoundError):
            home, inner = await self._skill_at(uri)
            entry = await home.mount.catalog.peek_skill(inner)
            return None if entry is None else _at(entry, home.visible)
        return None

    async def ready_archive(self, uri: str) -> ReadyArchive | None:
        """The original archive of one skill, from its source."""
        with suppress(NotFoundError):
            home, inner = await self._skill_at(uri)
            return await home.mount.catalog.ready_archive(inner)
        return None

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """Whether all sources are unchanged: a skill of one source can change the URI of a skill of another."""
        tests = [await mount.catalog.unchanged() for mount in self.mounts]
        if uri is not None:
            try:
                path = self._path(uri)
                home = await self._claims().home_around(path.rpartition("/")[0], uri)
            except SkillwireError:
                return None
            if home is None:
                return None
            tests.append(await home.mount.catalog.unchanged(home.uri(path, self._scheme)))
        known = [test for test in tests if test is not None]
        return (lambda: all(test() for test in known)) if len(known) == len(tests) else None

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file, from the source of its skill."""
        path = self._path(uri)
        home = await self._claims().home_around(path.rpartition("/")[0], uri)
        if home is None:
            raise no_file(uri)
        file = await home.mount.catalog.read_file(home.uri(path, self._scheme))
        return file._replace(uri=format_uri(path, self._scheme))

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory, from the source of its skill."""
        path = self._path(uri)
        home = await self._claims().home_around(path, uri)
        if home is None:
            raise no_directory(uri)
        page = await home.mount.catalog.read_directory(home.uri(path, self._scheme), cursor, limit)
        items = [child._replace(uri=format_uri(f"{path}/{child.name}", self._scheme)) for child in page.items]
        return Page(items, page.next_cursor)

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> list[str]:
        """Paths of listed skills, as they are visible, that begin with ``beginning``."""
        claims, found = self._claims(), set[str]()
        for mount in self.mounts:
            for plain in (beginning, beginning.removeprefix(f"{mount.label}/")):
                for inner in await mount.catalog.suggest(mount.inner(plain) or "", limit):
                    found.add(await claims.visible_path(mount, mount.outer(inner)))
        return sorted(path for path in found if path.startswith(beginning))[:limit]

    def templates(self) -> list[SkillTemplate]:
        """The templates of every source, under its prefix, or under its label if they begin with another label."""
        claims, found = self._claims(), list[SkillTemplate]()
        for mount in self.mounts:
            for template in mount.catalog.templates():
                path = mount.outer(template.path)
                visible = path if claims.may_claim(mount, path) else mount.qualified(path)
                found.append(template._replace(path=visible))
        return found

    async def problems(self) -> list[Diagnostic]:
        """The problems of every source, and every collision between them."""
        problems: list[Diagnostic] = []
        claims = self._claims()
        for mount in self.mounts:
            own = await mount.catalog.problems()
            problems += [problem.under(mount.prefix) if mount.prefix else problem for problem in own]
            async for entry in mount.catalog.entries():
                plain = mount.outer(entry.path)
                visible = await claims.visible_path(mount, plain)
                if visible != plain:
                    problems.append(
                        Diagnostic(
                            "catalog-collision",
                            f"{plain!r} is also a label or the path of a skill of another source, or lies inside"
                            f" one; the one from {mount.label!r} is served at {visible!r}",
                            "rename one of them; in Python, Mount(catalog, label, prefix=…) sets a source apart",
                            file=f"{plain}/{SKILL_MD}",
                            skill=plain,
                            other=visible,
                        )
                    )
        return problems

    async def ignored(self) -> list[str]:
        """Files that a source ignores because of their names."""
        return [mount.outer(path) for mount in self.mounts for path in await mount.catalog.ignored()]

    def changes(self) -> ChangeStream:
        """Changes of any source, under visible URIs."""
        return _CombinedStream(self.mounts, self._scheme)

    async def follow(self) -> None:
        """Watch every source until cancelled."""
        async with anyio.create_task_group() as group:
            for mount in self.mounts:
                group.start_soon(mount.catalog.follow)

    def _claims(self) -> Claims:
        return Claims(self.mounts, self._scheme)

    async def _skill_at(self, uri: str) -> tuple[Home, str]:
        """The skill whose ``SKILL.md`` is at ``uri``, and its URI at its source."""
        path, home = self._path(uri), None
        if path.endswith(f"/{SKILL_MD}"):
            home = await self._claims().home(path[: -len(SKILL_MD) - 1], uri)
        if home is None:
            raise no_skill(uri)
        return home, home.uri(path, self._scheme)

    def _path(self, uri: str) -> str:
        parsed = parse_uri(uri)
        if parsed.scheme != self._scheme:
            raise no_skill(uri)
        return parsed.path


class _CombinedStream(RelayStream):
    """The streams of several sources. Visible names are computed when a change is taken (S1, N1)."""

    def __init__(self, mounts: Sequence[Mount], scheme: str) -> None:
        self._mounts = mounts
        self._scheme = scheme
        self._waiting: dict[Mount, Change] = {}
        super().__init__((mount.catalog.changes(), partial(self._note, mount)) for mount in mounts)

    async def pending(self) -> Change:
        """What changed, under the names that are visible now."""
        await super().pending()
        waiting, self._waiting = self._waiting, {}
        claims = Claims(self._mounts, self._scheme)
        merged = Change()
        try:
            for mount, change in waiting.items():
                merged = merged.then(await self._outside(claims, mount, change))
        except BaseException:  # cancelled, or a source failed: keep the changes for the next call
            later, self._waiting = self._waiting, waiting
            for mount, change in later.items():
                self._note(mount, change)
            raise
        return merged

    def _note(self, mount: Mount, change: Change) -> Change:
        if self._sink is None:  # a forwarded change is not taken later
            self._waiting[mount] = self._waiting.get(mount, Change()).then(change)
        return change

    async def _outside(self, claims: Claims, mount: Mount, change: Change) -> Change:
        """The change under visible names. A skill that takes or leaves a path also moves another skill there."""
        added, changed, removed = set[str](), set[str](), set[str]()
        for uri in change.changed:
            path = mount.outer(root_of(uri).path)
            changed.add(await claims.visible_path(mount, path))
        for uri in change.added:
            path = mount.outer(root_of(uri).path)
            others = await self._others(claims, mount, path)
            added.add(await claims.visible_path(mount, path))
            if len(others) == 1:
                removed.add(path)
                added.add(others[0].qualified(path))
        for uri in change.removed:
            path = mount.outer(root_of(uri).path)
            others = await self._others(claims, mount, path)
            plain = claims.may_claim(mount, path) and not others and not await claims.is_inside_other(mount, path)
            removed.add(path if plain else mount.qualified(path))
            if len(others) == 1:
                removed.add(others[0].qualified(path))
                added.add(path)
        return Change(*(frozenset(skill_md_uri(p, self._scheme) for p in s) for s in (added, changed, removed)))

    async def _others(self, claims: Claims, mount: Mount, path: str) -> list[Mount]:
        """The other mounts that claim ``path``, if ``mount`` may claim it."""
        if not claims.may_claim(mount, path):
            return []
        return [other for other in await claims.of(path) if other is not mount]


async def _moved(claims: Claims, mount: Mount, entry: SkillEntry) -> SkillEntry:
    """An entry of ``mount`` under its visible URI."""
    return _at(entry, await claims.visible_path(mount, mount.outer(entry.path)))


def _at(entry: SkillEntry, path: str) -> SkillEntry:
    """The entry with its URIs below ``path``, which ends with its path at the source."""
    return UriMap(path.removesuffix(entry.path).rstrip("/")).entry(entry)
