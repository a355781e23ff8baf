"""The skills of a local catalog as an immutable snapshot, and a catalog base class that answers from one.

Folders on disk, trees in memory and packages all become ``ReadFolder`` values by the same rules (``apply_rules``):
for each folder a skill that is served, or the problems that prevent it.

A change creates a new snapshot; readers of the old one are not affected. Only changed folders are checked again.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from anyio import to_thread

from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    Catalog,
    Change,
    ChangeFeed,
    ChangeStream,
    DirectoryChild,
    Page,
    SkillFile,
    no_directory,
    no_file,
    no_skill,
)
from skillwire.catalog.cursor import beginning_with, page_of
from skillwire.errors import FormatError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.declarations import check_declared
from skillwire.skill.diagnostics import Diagnostic, from_error
from skillwire.skill.entry import DEFAULT_META, SkillMeta, build_entry, collisions
from skillwire.skill.frontmatter import SkillDocument, check_frontmatter, parse_skill_md
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, fold, format_uri, parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
    from pathlib import Path

    from skillwire.catalog.safe_open import LocalFile
    from skillwire.catalog.settings import Describe
    from skillwire.skill import SkillEntry


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


def apply_rules(
    path: str,
    skill_md: bytes,
    files: Mapping[str, LocalFile],
    *,
    folders: Set[str],
    problems: Iterable[Diagnostic] = (),
    ignored: Iterable[str] = (),
    scheme: str = DEFAULT_SCHEME,
    meta: SkillMeta = DEFAULT_META,
    limits: Limits = DEFAULT_LIMITS,
    local: bool = True,
) -> ReadFolder:
    """The folder of the skill at ``path``: all problems, and a record if none of them refuses the skill.

    ``files`` and ``folders`` are paths inside the skill. ``problems`` are those of reading it.
    """
    found = list(problems)
    document: SkillDocument | None = None
    file = f"{path}/{SKILL_MD}"
    try:
        document = parse_skill_md(skill_md, limits)
    except FormatError as error:
        found.append(from_error(error, file))
    else:
        found += check_frontmatter(document, path.rpartition("/")[2], file)
        found += check_declared(document, file)
    found += _check_files(path, files, folders, limits)
    record: SkillRecord | None = None
    if document is not None and not any(problem.refuses for problem in found):
        facts = ((inside, item.digest, item.size) for inside, item in files.items())
        modified = files[SKILL_MD].modified
        entry = build_entry(
            path, document.frontmatter, facts, scheme=scheme, meta=meta, modified=modified, local=local
        )
        record = SkillRecord(entry, files, folders)
    named = tuple(problem if problem.skill else replace(problem, skill=path) for problem in found)
    return ReadFolder(True, record, named, tuple(ignored))


def _check_files(
    path: str, files: Mapping[str, LocalFile], folders: Set[str], limits: Limits
) -> Iterator[Diagnostic]:
    """Check the limits of one skill (E6), and names that collide on other file systems (B5)."""
    count, size = len(files), sum(file.size for file in files.values())
    if count > limits.skill_resources or size > limits.skill_bytes:
        yield Diagnostic(
            "over-limit",
            f"the skill has {count} files and {size} bytes; hosts are not required to accept more than"
            f" {limits.skill_resources} files and {limits.skill_bytes} bytes",
            "split the skill, or move large files elsewhere",
            file=path,
        )
    for first, second in collisions((*files, *folders)):
        yield Diagnostic(
            "path-collision",
            f"{first!r} and {second!r} are the same name on file systems that ignore case or Unicode form",
            "rename one of them",
            file=f"{path}/{second}",
        )


def files_by_skill(paths: Iterable[str]) -> dict[str, dict[str, str]]:
    """The skills of a tree of files: by path, their files by path inside the skill.

    An enclosing skill lists the files of a nested one (E4).
    """
    paths = list(paths)
    skills = {path[: -len(SKILL_MD) - 1]: dict[str, str]() for path in paths if path.endswith(f"/{SKILL_MD}")}
    for path in paths:
        for folder in parents(path):
            if folder in skills:
                skills[folder][path[len(folder) + 1 :]] = path
    return skills


def parents(path: str) -> Iterator[str]:
    """The folders around ``path``, outermost first."""
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)


class Snapshot:
    """The results of a scan by path, with an index of colliding names and the sorted listing."""

    __slots__ = ("_found", "_names", "_order", "keys", "mark")

    def __init__(self) -> None:
        self._found: dict[str, ReadFolder] = {}
        self._names: dict[str, tuple[str, ...]] = {}  # fold(path) -> paths of skills; several paths collide (B5)
        self._order: list[str] = []  # every path of _found, sorted
        self.keys: list[str] = []  # the listed paths, sorted
        self.mark = object()  # identifies this snapshot without keeping all of it in memory

    def found(self, path: str) -> ReadFolder | None:
        """The result for the folder at ``path``, served or not."""
        return self._found.get(path)

    def record(self, path: str) -> SkillRecord | None:
        """The served skill at ``path``."""
        found = self._found.get(path)
        if found is None or found.record is None or len(self._names.get(fold(path), ())) > 1:
            return None
        return found.record

    def has_skills(self) -> bool:
        """Whether there is any skill, served or not."""
        return any(found.is_skill for found in self._found.values())

    def all_found(self) -> dict[str, ReadFolder]:
        """All results, in the order of paths."""
        return {path: self._found[path] for path in self._order}

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
        return next((folder for folder in (*parents(path), path) if self._is_skill(folder)), None)

    def locate(self, path: str) -> tuple[str, SkillRecord] | None:
        """The innermost served skill at or around ``path``."""
        while path:
            record = self.record(path)
            if record is not None:
                return path, record
            path = path.rpartition("/")[0]
        return None

    def updated(self, removed: Iterable[str], found: Mapping[str, ReadFolder]) -> tuple[Snapshot, Change]:
        """A new snapshot without ``removed`` and with ``found``, and the change of its skills."""
        new, changes = Snapshot(), {*removed, *found}
        new._found = {**self._found, **found}
        for path in changes - found.keys():
            new._found.pop(path, None)
        new._names = dict(self._names)
        touched = set[str]()
        for path in changes:
            was, now = self._is_skill(path), new._is_skill(path)
            if was or now:
                touched.add(path)
            if was != now:
                key = fold(path)
                others = tuple(other for other in new._names.get(key, ()) if other != path)
                new._names[key] = (*others, path) if now else others
                if not new._names[key]:
                    del new._names[key]
                touched.update(others)  # a new or resolved collision affects the other skills too
        new._order = _merged(self._order, {path for path in changes if path in self._found}, found.keys())
        new.keys = _merged(self.keys, self._listed(touched), new._listed(touched))
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
            seen.update(dict.fromkeys(self._found[path].problems))
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


def _merged(keys: list[str], removed: Set[str], added: Set[str]) -> list[str]:
    """The sorted ``keys`` without ``removed`` and with ``added``."""
    if removed == added:
        return keys
    merged = [key for key in keys if key not in removed] + sorted(added)
    merged.sort()  # fast for two sorted parts
    return merged


class SnapshotCatalog(Catalog):
    """A catalog that answers from its current snapshot. Subclasses replace it and publish changes."""

    def __init__(self, scheme: str) -> None:
        self._scheme = scheme
        self._snapshot = Snapshot()
        self._feed = ChangeFeed()

    def snapshot(self) -> Snapshot:
        """The current snapshot, which is empty before the source is read."""
        return self._snapshot

    async def _current(self) -> Snapshot:
        """The current snapshot, read now if the source was not read before."""
        return self._snapshot

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of the listing."""
        snapshot = await self._current()

        def entry(path: str) -> SkillEntry:
            return cast("SkillRecord", snapshot.record(path)).entry

        return page_of("skills", snapshot.keys, entry, cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """The entry of one skill."""
        entry = self._known_entry(await self._current(), uri)
        if entry is None:
            raise no_skill(uri)
        return entry

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file, which are in memory."""
        path, _, file = self._find_file(await self._current(), uri)
        if file.data is None:
            raise no_file(uri)
        return SkillFile(format_uri(path, self._scheme), file.data, file.modified)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory of a skill."""
        located = (await self._current()).locate(self._path(uri))
        if located is None:
            raise no_directory(uri)
        return self._read_directory(*located, uri, cursor, limit)

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

    def _known_entry(self, snapshot: Snapshot, uri: str) -> SkillEntry | None:
        path = self._path(uri)
        record = snapshot.record(path[: -len(SKILL_MD) - 1]) if path.endswith(f"/{SKILL_MD}") else None
        return None if record is None else record.entry

    def _read_directory(
        self, skill: str, record: SkillRecord, uri: str, cursor: str | None, limit: int
    ) -> Page[DirectoryChild]:
        """One page of a directory of the skill at the path ``skill``."""
        path = self._path(uri)
        folder = path[len(skill) + 1 :]
        if folder and folder not in record.folders:
            raise no_directory(uri)
        prefix = f"{folder}/" if folder else ""
        children = {
            inside[len(prefix) :]
            for inside in (*record.files, *record.folders)
            if inside.startswith(prefix) and "/" not in inside[len(prefix) :]
        }

        def child(name: str) -> DirectoryChild:
            place, file = format_uri(f"{path}/{name}", self._scheme), record.files.get(prefix + name)
            if file is None:
                return DirectoryChild(place, name, is_directory=True)
            return DirectoryChild(place, name, False, file.size, file.modified, file.executable)

        return page_of(f"directory {path}", sorted(children), child, cursor, limit)

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


class LoadedCatalog(SnapshotCatalog):
    """The skills of a folder or an archive, which is read in a thread by ``load`` or the first call.

    Subclasses implement ``demand_root`` and ``_reload``.
    """

    root: Path
    base = ""  # the beginning of every path, if the source itself is a skill

    def __init__(self, scheme: str, limits: Limits, describe: Describe | None) -> None:
        super().__init__(scheme)
        self._limits = limits
        self._describe = describe
        self._loaded = False
        self._lock = threading.Lock()

    def load(self, on_skill: Callable[[int], None] | None = None) -> None:
        """Read everything. ``NotFoundError`` if the source does not exist. ``on_skill`` gets a count."""
        self.demand_root()
        with self._lock:
            self._reload(on_skill)

    def demand_root(self) -> None:
        """Raise ``NotFoundError`` if the source does not exist."""
        raise NotImplementedError

    def _reload(self, on_skill: Callable[[int], None] | None = None) -> Change:
        """Read everything into a new snapshot and set ``_loaded``. The caller holds the lock."""
        raise NotImplementedError

    async def _current(self) -> Snapshot:
        if not self._loaded:
            await to_thread.run_sync(self._load_once)
        return self._snapshot

    def _load_once(self) -> None:
        with self._lock:
            if not self._loaded:
                self._reload()
