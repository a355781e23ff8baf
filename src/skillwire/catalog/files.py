"""Skills in any storage that can list its files and read one: a bucket, a database, a wiki.

``FilesCatalog(list_files, read_file)`` needs two functions, plain or async. Everything else is done here: entries,
digests, cursors, directories and changes. A file is read once for each version, to compute its digest, and again
when a client asks for it. Bytes are not kept in memory, and never returned if they do not match their digest (R2).
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import anyio

from skillwire.catalog.contract import SkillFile, no_file
from skillwire.catalog.functions import call_either
from skillwire.catalog.safe_open import LocalFile, is_ignored
from skillwire.catalog.scan import printable
from skillwire.catalog.snapshot import ReadFolder, SnapshotCatalog, apply_rules, files_by_skill, parents
from skillwire.errors import LimitError, SkillwireError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.entry import digest_of
from skillwire.skill.uri import DEFAULT_SCHEME, SKILL_MD, format_uri, segment_problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from skillwire.catalog.contract import Change
    from skillwire.catalog.snapshot import Snapshot

log = logging.getLogger("skillwire.catalog")

_READERS = 8  # files that are read at the same time

T = TypeVar("T")


class StoredFile(NamedTuple):
    """One file of a storage. Its ``version`` differs whenever its bytes differ: an ETag, a revision, a time."""

    path: str
    version: Hashable
    size: int | None = None  # if it is known without reading the file
    executable: bool = False


class Stored(NamedTuple):
    """All files of a storage, and the problems of what it cannot offer, each with its ``file``."""

    files: Sequence[StoredFile]
    problems: Sequence[Diagnostic] = ()


@dataclass(frozen=True, slots=True)
class _Known:
    """One skill as it was read last: its files, and the result."""

    files: frozenset[StoredFile]
    problems: tuple[Diagnostic, ...]
    folder: ReadFolder


class StoredCatalog(SnapshotCatalog):
    """A catalog of files in a storage. Subclasses implement ``_list_stored`` and ``_read_stored``."""

    _is_local = True  # whether the bytes are on this machine

    def __init__(self, *, poll_seconds: float, scheme: str, limits: Limits) -> None:
        super().__init__(scheme)
        self._limits = limits
        self._poll_seconds = poll_seconds
        self._lock = anyio.Lock()
        self._is_loaded = False
        self._stored: Mapping[str, StoredFile] = {}  # every file of a skill, by path
        self._known: dict[str, _Known] = {}  # every skill, by path

    async def _list_stored(self) -> Stored:
        raise NotImplementedError

    async def _read_stored(self, files: Sequence[StoredFile]) -> Mapping[str, bytes]:
        """The bytes of ``files`` by path."""
        raise NotImplementedError

    async def refresh(self) -> Change:
        """List the storage, read the files that changed, and publish the changes."""
        async with self._lock:
            change = await self._load()
        self._feed.publish(change)
        return change

    async def follow(self) -> None:
        """Refresh regularly until cancelled. While the storage fails, its last state is served."""
        while True:
            await anyio.sleep(self._poll_seconds)
            try:
                await self.refresh()
            except SkillwireError as error:
                log.warning("%s; hint: %s", error.message, error.hint)

    async def read_file(self, uri: str) -> SkillFile:
        """The bytes of one file. If they changed since the last listing, the storage is listed again."""
        snapshot = await self._current()
        for attempt in (1, 2):
            path, _, file = self._find_file(snapshot, uri)
            stored = self._stored.get(path)
            if stored is None:  # a newer listing replaced it between the two lines above
                raise no_file(uri)
            data = (await self._read_stored([stored]))[path]
            if digest_of(data) == file.digest:
                return SkillFile(format_uri(path, self._scheme), data, file.modified)
            if attempt == 1:
                await self.refresh()
                snapshot = self._snapshot
        raise UpstreamError(
            "storage-inconsistent",
            f"the storage returned other bytes for {uri!r:.200} under the same version",
            "a version, such as an ETag, must differ whenever the bytes differ",
            rule="R2",
        )

    async def _current(self) -> Snapshot:
        if not self._is_loaded:
            async with self._lock:
                if not self._is_loaded:
                    await self._load()
        return self._snapshot

    async def _load(self) -> Change:
        listed = await self._list_stored()
        stored = {file.path: file for file in listed.files}
        problems: dict[str, list[Diagnostic]] = {}
        for problem in listed.problems:
            for folder in parents(problem.file):
                problems.setdefault(folder, []).append(problem)
        known: dict[str, _Known] = {}
        for folder, members in files_by_skill(stored).items():
            if _is_ignored(folder):
                continue
            files = {inside: stored[path] for inside, path in members.items()}
            reported = tuple(problems.get(folder, ()))
            before, contents = self._known.get(folder), frozenset(files.values())
            if before is not None and before.files == contents and before.problems == reported:
                known[folder] = before
            else:
                known[folder] = _Known(contents, reported, await self._read_skill(folder, files, reported))
        gone = [path for path in self._known if path not in known]
        found = {path: each.folder for path, each in known.items() if self._known.get(path) is not each}
        self._snapshot, change = self._snapshot.updated(gone, found)
        self._stored, self._known, self._is_loaded = stored, known, True
        return change

    async def _read_skill(
        self, folder: str, files: Mapping[str, StoredFile], problems: Iterable[Diagnostic]
    ) -> ReadFolder:
        found, ignored = list(problems), list[str]()
        members: dict[str, StoredFile] = {}
        for inside, file in files.items():
            if _is_ignored(inside):
                ignored.append(printable(file.path))
            elif bad := _bad_segment(inside):
                found.append(_invalid_name(bad, file.path))
            else:
                members[inside] = file
        if bad := _bad_segment(folder):
            return ReadFolder(True, None, (_invalid_name(bad, folder),), tuple(ignored))
        try:
            self._check_size(members)
            data = await self._read_stored(list(members.values()))
        except SkillwireError as error:
            reference = "too-large" if error.reference == "too-large" else "unreadable"
            found.append(Diagnostic(reference, error.message, error.hint, file=folder))
            return ReadFolder(True, None, tuple(replace(each, skill=folder) for each in found), tuple(ignored))
        local = {
            inside: LocalFile(digest_of(data[file.path]), len(data[file.path]), executable=file.executable)
            for inside, file in members.items()
        }
        return apply_rules(
            folder,
            data[f"{folder}/{SKILL_MD}"],
            local,
            folders={parent for inside in local for parent in parents(inside)},
            problems=found,
            ignored=ignored,
            scheme=self._scheme,
            limits=self._limits,
            local=self._is_local,
        )

    def _check_size(self, members: Mapping[str, StoredFile]) -> None:
        size = sum(file.size or 0 for file in members.values())
        if (
            len(members) > self._limits.max_resources
            or size > self._limits.max_skill_bytes
            or (members[SKILL_MD].size or 0) > self._limits.max_skill_md_bytes
        ):
            raise _too_large()


class FilesCatalog(StoredCatalog):
    """The skills of a storage, from two functions that may be plain or async.

    ``list_files()`` returns each path with a version of its bytes: an ETag, a revision or a time of change.
    Each skill is a folder of it. ``read_file(path)`` returns the bytes of one file. ``follow`` lists again every
    ``poll_seconds``; call ``refresh`` when the storage reports a change.
    """

    _is_local = False

    def __init__(
        self,
        list_files: Callable[[], Mapping[str, Hashable] | Awaitable[Mapping[str, Hashable]]],
        read_file: Callable[[str], bytes | Awaitable[bytes]],
        *,
        poll_seconds: float = 60.0,
        scheme: str = DEFAULT_SCHEME,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        super().__init__(poll_seconds=poll_seconds, scheme=scheme, limits=limits)
        self._list_function = list_files
        self._read_function = read_file
        self._readers = anyio.Semaphore(_READERS)

    async def _list_stored(self) -> Stored:
        listed = cast("object", await self._call("list its files", self._list_function))
        if not isinstance(listed, Mapping):
            raise _not_as_expected("list_files", f"{type(listed).__name__}, not a mapping of paths to versions")
        for path, version in cast("Mapping[object, object]", listed).items():
            if not isinstance(path, str) or not isinstance(version, Hashable):
                raise _not_as_expected("list_files", f"{path!r:.80}: {version!r:.80}, not a path and its version")
        files = cast("Mapping[str, Hashable]", listed)
        return Stored([StoredFile(path, version) for path, version in files.items()])

    async def _read_stored(self, files: Sequence[StoredFile]) -> Mapping[str, bytes]:
        data: dict[str, bytes] = {}
        failures: list[SkillwireError] = []

        async def read(path: str) -> None:
            try:
                async with self._readers:
                    given = await self._call(f"read {path!r:.200}", partial(self._read_function, path))
                content = cast("object", given)
                if not isinstance(content, bytes):
                    kind = type(content).__name__
                    raise _not_as_expected("read_file", f"{kind}, not bytes, for {path!r:.200}")
                data[path] = content
                if sum(map(len, data.values())) > self._limits.max_skill_bytes:
                    raise _too_large()
            except SkillwireError as error:
                failures.append(error)
                group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            for file in files:
                group.start_soon(read, file.path)
        if failures:
            raise failures[0]
        return data

    async def _call(self, task: str, function: Callable[[], T | Awaitable[T]]) -> T:
        """The result of one of the two functions. ``UpstreamError`` if it fails or takes too long."""
        try:
            with anyio.fail_after(self._limits.max_generate_seconds):
                return await call_either(function)
        except Exception as error:
            log.warning("the storage could not %s", task, exc_info=error)
            reason = "it took too long" if isinstance(error, TimeoutError) else f"it raised {type(error).__name__}"
            raise UpstreamError(
                "storage-failed", f"the storage could not {task}: {reason}", "see the log of 'skillwire.catalog'"
            ) from error


def _not_as_expected(function: str, result: str) -> UpstreamError:
    return UpstreamError("storage-failed", f"{function} returned {result}", f"correct {function}")


def _bad_segment(path: str) -> str | None:
    return next((segment or "(empty)" for segment in path.split("/") if segment_problem(segment)), None)


def _invalid_name(name: str, path: str) -> Diagnostic:
    return Diagnostic(
        "file-name-invalid",
        f"the name {printable(name)!r:.120} cannot be part of a URI",
        "rename it without control characters, backslashes or broken text",
        file=printable(path),
    )


def _too_large() -> LimitError:
    return LimitError(
        "too-large", "the skill has too many files or bytes", "split the skill, or move large files elsewhere"
    )


def _is_ignored(path: str) -> bool:
    *folders, name = path.split("/")
    return any(is_ignored(folder, is_folder=True) for folder in folders) or is_ignored(name, is_folder=False)
