"""The skills of a local catalog as an immutable snapshot, and a catalog base class that answers from one.

Folders on disk, trees in memory and packages all become ``ReadFolder`` values by the same rules (``apply_rules``):
for each folder a skill that is served, or the problems that prevent it.

A change creates a new snapshot; readers of the old one are not affected. The work is proportional to the change
(plus a copy of the list of paths if skills were added or removed).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, TypeVar

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    Change,
    ChangeFeed,
    ChangeStream,
    DirectoryChild,
    Page,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import beginning_with, page_of
from skillwire.errors import FormatError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.declarations import check_declared
from skillwire.skill.diagnostics import Diagnostic, from_error
from skillwire.skill.entry import DEFAULT_META, SkillMeta, build_entry, collisions, fold
from skillwire.skill.frontmatter import SkillDocument, check_frontmatter, parse_skill_md
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, format_uri, parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set

    from skillwire.catalog.safe_open import LocalFile
    from skillwire.skill import SkillEntry

V = TypeVar("V")

_MAX_LAYER = 1000  # keys


@dataclass(frozen=True, slots=True)
class SkillRecord:
    """A served skill: its entry, its files by path inside the skill, and its folders."""

    entry: SkillEntry
    files: Mapping[str, LocalFile]
    folders: Set[str]

    @property
    def executables(self) -> set[str]:
        """Files with the executable bit. Only archives transmit it (I2)."""
        return {path for path, file in self.files.items() if file.executable}


@dataclass(frozen=True, slots=True)
class ReadFolder:
    """The result of reading a folder: its skill, if it can be served, its problems, and ignored paths."""

    is_skill: bool = False  # the folder has a SKILL.md, served or not
    record: SkillRecord | None = None
    problems: tuple[Diagnostic, ...] = ()
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillSource:
    """The content of a skill's folder, before the rules are applied."""

    path: str
    skill_md: bytes
    files: Mapping[str, LocalFile]
    folders: Set[str]
    problems: Iterable[Diagnostic] = ()
    ignored: Iterable[str] = ()


def apply_rules(
    source: SkillSource,
    *,
    scheme: str = DEFAULT_SCHEME,
    meta: SkillMeta = DEFAULT_META,
    limits: Limits = DEFAULT_LIMITS,
) -> ReadFolder:
    """Apply the rules: all problems, and a record if none of them refuses the skill."""
    problems = list(source.problems)
    document: SkillDocument | None = None
    file = f"{source.path}/{SKILL_MD}"
    try:
        document = parse_skill_md(source.skill_md, limits)
    except FormatError as error:
        problems.append(from_error(error, file))
    else:
        problems += check_frontmatter(document, source.path.rpartition("/")[2], file)
        problems += check_declared(document, file)
    problems += check_files(source, limits)
    record: SkillRecord | None = None
    if document is not None and not any(problem.refuses for problem in problems):
        facts = ((path, item.digest, item.size) for path, item in source.files.items())
        entry = build_entry(
            source.path,
            document.frontmatter,
            facts,
            scheme=scheme,
            meta=meta,
            modified=source.files[SKILL_MD].modified,
        )
        record = SkillRecord(entry, source.files, source.folders)
    return ReadFolder(
        True, record, tuple(_named(problem, source.path) for problem in problems), tuple(source.ignored)
    )


def check_files(source: SkillSource, limits: Limits) -> Iterator[Diagnostic]:
    """Check the limits of one skill (E6), and names that collide on other file systems (B5)."""
    count, size = len(source.files), sum(file.size for file in source.files.values())
    if count > limits.skill_resources or size > limits.skill_bytes:
        yield Diagnostic(
            "over-limit",
            f"the skill has {count} files and {size} bytes; hosts are not required to accept more than"
            f" {limits.skill_resources} files and {limits.skill_bytes} bytes",
            "split the skill, or move large files elsewhere",
            file=source.path,
        )
    for first, second in collisions((*source.files, *source.folders)):
        yield Diagnostic(
            "path-collision",
            f"{first!r} and {second!r} are the same name on file systems that ignore case or Unicode form",
            "rename one of them",
            file=f"{source.path}/{second}",
        )


def _named(problem: Diagnostic, skill: str) -> Diagnostic:
    return problem if problem.skill else replace(problem, skill=skill)


class PersistentMap(Generic[V]):
    """An immutable mapping of text to values other than ``None``. A changed copy costs what changed.

    Copies share one large base. Differences from it are in a small layer. When the layer has grown, the next copy
    gets a new base.
    """

    __slots__ = ("_base", "_layer")

    def __init__(self, base: Mapping[str, V] | None = None, layer: Mapping[str, V | None] | None = None) -> None:
        self._base = base or {}
        self._layer = layer or {}

    def get(self, key: str) -> V | None:
        """The value at ``key``, or ``None``."""
        return self._layer[key] if key in self._layer else self._base.get(key)

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key) is not None

    def values(self) -> Iterator[V]:
        """Every value. Takes linear time."""
        for key, value in self._base.items():
            if key not in self._layer:
                yield value
        yield from (value for value in self._layer.values() if value is not None)

    def changed(self, changes: Mapping[str, V | None]) -> PersistentMap[V]:
        """A copy with ``changes``; ``None`` removes a key."""
        if not changes:
            return self
        layer = {**self._layer, **changes}
        if len(layer) <= _MAX_LAYER:
            return PersistentMap(self._base, layer)
        whole: dict[str, V | None] = {**self._base, **layer}
        return PersistentMap({key: value for key, value in whole.items() if value is not None})


class Snapshot:
    """The results of a scan by path, with an index of colliding names and the sorted listing."""

    __slots__ = ("_found", "_names", "_order", "keys", "mark")

    def __init__(self) -> None:
        self._found: PersistentMap[ReadFolder] = PersistentMap()
        # fold(path) -> paths of skills; several paths collide (B5)
        self._names: PersistentMap[tuple[str, ...]] = PersistentMap()
        self._order: list[str] = []  # every path of _found, sorted
        self.keys: list[str] = []  # the listed paths, sorted
        self.mark = object()  # identifies this snapshot without keeping all of it in memory

    def found(self, path: str) -> ReadFolder | None:
        """The result for the folder at ``path``, served or not."""
        return self._found.get(path)

    def record(self, path: str) -> SkillRecord | None:
        """The served skill at ``path``."""
        found = self._found.get(path)
        if found is None or found.record is None or len(self._names.get(fold(path)) or ()) > 1:
            return None
        return found.record

    def all_found(self) -> dict[str, ReadFolder]:
        """All results, in the order of paths."""
        return {path: found for path in self._order if (found := self._found.get(path)) is not None}

    def records(self) -> Iterator[tuple[str, SkillRecord]]:
        """Every served skill, listed or not."""
        for path in self._order:
            record = self.record(path)
            if record is not None:
                yield path, record

    def paths_below(self, path: str) -> list[str]:
        """Every known path at or below ``path``; all paths for ``""``."""
        if not path:
            return list(self._order)
        start, stop = bisect_left(self._order, f"{path}/"), bisect_left(self._order, f"{path}0")  # '/' < '0'
        return [path, *self._order[start:stop]] if path in self._found else self._order[start:stop]

    def topmost_skill(self, path: str) -> str | None:
        """The outermost folder at or around ``path`` that contains a ``SKILL.md``."""
        end = path.find("/")
        while True:
            prefix = path if end < 0 else path[:end]
            found = self._found.get(prefix)
            if found is not None and found.is_skill:
                return prefix
            if end < 0:
                return None
            end = path.find("/", end + 1)

    def locate(self, path: str) -> tuple[str, SkillRecord] | None:
        """The innermost served skill at or around ``path``."""
        while path:
            record = self.record(path)
            if record is not None:
                return path, record
            path = path.rpartition("/")[0]
        return None

    def updated(self, removed: Sequence[str], found: Mapping[str, ReadFolder]) -> tuple[Snapshot, Change]:
        """A new snapshot without ``removed`` and with ``found``, and the change of its skills."""
        new = Snapshot()
        changes: dict[str, ReadFolder | None] = {**dict.fromkeys(removed), **found}
        new._found = self._found.changed(changes)
        names: dict[str, tuple[str, ...] | None] = {}
        touched: dict[str, None] = {}
        for path in changes:
            was, now = self._is_skill(path), new._is_skill(path)
            if was or now:
                touched[path] = None
            if was != now:
                key = fold(path)
                known = names[key] if key in names else self._names.get(key)
                others = tuple(other for other in known or () if other != path)
                names[key] = ((*others, path) if now else others) or None
                touched.update(dict.fromkeys(others))  # a new or resolved collision affects the other skills too
        new._names = self._names.changed(names)
        new._order = _resorted(self._order, changes, self._found, new._found)
        new.keys = _resorted(self.keys, touched, self._listed(touched), new._listed(touched))
        return new, _difference(self, new, touched)

    def _is_skill(self, path: str) -> bool:
        found = self._found.get(path)
        return found is not None and found.is_skill

    def _listed(self, paths: Iterable[str]) -> set[str]:
        records = ((path, self.record(path)) for path in paths)
        return {path for path, record in records if record is not None and record.entry.listed}

    def problems(self) -> list[Diagnostic]:
        """Every problem once, in the order of paths."""
        seen: dict[Diagnostic, None] = {}
        for path in self._order:
            found = self._found.get(path)
            seen.update(dict.fromkeys(found.problems if found else ()))
        for paths in self._names.values():
            if len(paths) > 1:
                seen.update(dict.fromkeys(_collided(sorted(paths))))
        return list(seen)

    def ignored(self) -> list[str]:
        """Paths that are ignored because of their names, each once."""
        return sorted({path for found in self._found.values() for path in found.ignored})


def _collided(paths: Sequence[str]) -> Iterator[Diagnostic]:
    for path in paths:
        other = paths[0] if path != paths[0] else paths[1]
        yield Diagnostic(
            "path-collision",
            f"{path!r} and {other!r} are the same name on file systems that ignore case or Unicode form",
            "rename all but one of them",
            file=path,
            skill=path,
            other=other,
        )


def _difference(old: Snapshot, new: Snapshot, paths: Iterable[str]) -> Change:
    added, changed, removed = set[str](), set[str](), set[str]()
    for path in paths:
        before, after = old.record(path), new.record(path)
        if before is None and after is not None:
            added.add(after.entry.uri)
        elif before is not None and after is None:
            removed.add(before.entry.uri)
        elif before is not None and after is not None and before.entry.listed != after.entry.listed:
            # Reported as added or removed, so that cached listings are updated.
            (added if after.entry.listed else removed).add(after.entry.uri)
        elif before is not None and after is not None and _differs(before, after):
            changed.add(after.entry.uri)
    return Change(frozenset(added), frozenset(changed), frozenset(removed))


def _differs(before: SkillRecord, after: SkillRecord) -> bool:
    """Whether the entry, its settings, or its directories and archives differ."""
    if before.entry != after.entry or before.entry.meta != after.entry.meta:
        return True
    return before.folders != after.folders or before.executables != after.executables


def _resorted(keys: list[str], paths: Iterable[str], before: Container[str], after: Container[str]) -> list[str]:
    """``keys``, sorted, without ``paths`` that are not in ``after`` and with those that are."""
    removed = [path for path in paths if path in before and path not in after]
    added = [path for path in paths if path in after and path not in before]
    if not removed and not added:
        return keys
    if len(removed) + len(added) > 16:  # one sort is faster than many insertions
        return sorted({*keys, *added}.difference(removed))
    keys = list(keys)
    for path in removed:
        del keys[bisect_left(keys, path)]
    for path in added:
        insort(keys, path)
    return keys


class SnapshotCatalog(Catalog):
    """A catalog that answers from its current snapshot. Subclasses implement ``read_file``."""

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme
        self._snapshot = Snapshot()
        self._feed = ChangeFeed()

    async def _current(self) -> Snapshot:
        return self._snapshot

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing."""
        snapshot = await self._current()
        return page_of("skills", snapshot.keys, lambda path: _entry(snapshot, path), cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of one skill."""
        snapshot = await self._current()
        path = self._path(uri)
        record = snapshot.record(path[: -len(SKILL_MD) - 1]) if path.endswith(f"/{SKILL_MD}") else None
        if record is None:
            raise no_skill(uri)
        return record.entry

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory of a skill."""
        snapshot = await self._current()
        path = self._path(uri)
        located = snapshot.locate(path)
        if located is None:
            raise no_directory(uri)
        skill_path, record = located
        folder = path[len(skill_path) + 1 :]
        if folder and folder not in record.folders:
            raise no_directory(uri)
        children = children_of(record.files, record.folders, folder)
        names = sorted(children)
        return page_of(
            f"directory {path}",
            names,
            lambda name: child_of(f"{path}/{name}", children[name], self._scheme),
            cursor,
            limit,
        )

    async def unlisted(self) -> list[SkillEntry]:
        """Entries of skills that are not listed."""
        records = (await self._current()).records()
        return [record.entry for _, record in records if not record.entry.listed]

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """Whether the snapshot, or the skill of ``uri`` in it, is still the same."""
        snapshot = await self._current()
        mark, published = snapshot.mark, self._feed.published
        if uri is None:  # subscribers learn of a new snapshot shortly after it is set, so wait for both
            return lambda: self._snapshot.mark is mark and self._feed.published == published
        try:
            _, path, _ = self._find_file(snapshot, uri)
        except SkillwireError:
            return None
        record = snapshot.record(path)
        return lambda: self._snapshot.mark is mark or self._snapshot.record(path) is record

    async def is_local(self, uri: str) -> bool:  # noqa: ARG002 - true for every skill
        """Always true."""
        return True

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> list[str]:
        """Paths of listed skills that begin with ``beginning``."""
        return beginning_with((await self._current()).keys, beginning, limit)

    def changes(self) -> ChangeStream:
        """A stream of all further changes."""
        return self._feed.subscribe()

    async def problems(self) -> list[Diagnostic]:
        """All problems, including those of skills that are not served."""
        await self._current()
        return self.known_problems()

    def known_problems(self) -> list[Diagnostic]:
        """The problems that are known without reading the source."""
        problems = self._snapshot.problems()
        return [problem if self._is_listed(problem) else replace(problem, listed=False) for problem in problems]

    def _is_listed(self, problem: Diagnostic) -> bool:
        return all(self._meta_of(path).listed for path in (problem.skill, problem.other) if path)

    def _meta_of(self, path: str) -> SkillMeta:  # noqa: ARG002 - most sources have no settings
        """The settings of the skill at ``path``, served or not."""
        return DEFAULT_META

    def _path(self, uri: str) -> str:
        parsed = parse_uri(uri)
        if parsed.scheme != self._scheme:
            raise no_skill(uri)
        return parsed.path

    def _find_file(self, snapshot: Snapshot, uri: str) -> tuple[str, str, LocalFile]:
        """The canonical path of the file, the path of its skill, and its record."""
        path = self._path(uri)
        located = snapshot.locate(path.rpartition("/")[0])
        if located is not None:
            skill_path, record = located
            file = record.files.get(path[len(skill_path) + 1 :])
            if file is not None:
                return path, skill_path, file
        raise no_file(uri)


def _entry(snapshot: Snapshot, path: str) -> SkillEntry:
    record = snapshot.record(path)
    if record is None:  # a key without a record would be a defect of Snapshot.updated
        raise KeyError(path)
    return record.entry


def children_of(
    files: Mapping[str, LocalFile], folders: Iterable[str], folder: str
) -> dict[str, LocalFile | None]:
    """The names directly inside ``folder``: files with their record, folders with ``None``."""
    prefix = f"{folder}/" if folder else ""
    children: dict[str, LocalFile | None] = {}
    for path, file in files.items():
        if path.startswith(prefix) and "/" not in path[len(prefix) :]:
            children[path[len(prefix) :]] = file
    for path in folders:
        if path.startswith(prefix) and "/" not in path[len(prefix) :]:
            children[path[len(prefix) :]] = None
    return children


def child_of(path: str, file: LocalFile | None, scheme: str) -> DirectoryChild:
    """The child at ``path``: a file, or a folder if ``file`` is ``None``."""
    uri, name = format_uri(path, scheme), path.rpartition("/")[2]
    if file is None:
        return DirectoryChild(uri, name, is_directory=True)
    return DirectoryChild(uri, name, False, file.size, file.modified, file.executable)
