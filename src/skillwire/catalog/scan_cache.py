"""Caches the result of the last scan of a folder on disk, so that the next start reads only changed files (S1).

The next scan walks the folder again and compares the stamp of each file (inode, size, times) with the cached one.
Only files with another stamp are read and hashed. A stamp that was younger than three seconds when the file was
read is not cached, because two writes within one tick of the clock look the same.

The cache cannot make a server send wrong bytes: every read compares the bytes with their digest (R2). A cache file
that other users can write is ignored.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager, suppress
from dataclasses import astuple
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.catalog.safe_open import LocalFile, Stamp
from skillwire.catalog.snapshot import ReadFolder, SkillRecord
from skillwire.limits import KIB
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.entry import DEFAULT_META, Resource, SkillEntry
from skillwire.skill.uri import format_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from skillwire.catalog.directory import DirectoryCatalog
    from skillwire.limits import Limits

    Progress = Callable[[], AbstractContextManager[Callable[[int], None]]]  # shows a running count of skills

_FORM = 2
_DIGEST = "sha256:"
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_OTHERS_WRITE = 0o022
_FOLDERS = 32  # number of cached scans
_MIN_BYTES = 64 * KIB  # reading a few dozen skills is as fast as reading their cache
_UNFINISHED_SECONDS = 3600


def cache_folder(kind: str) -> Path:
    """The folder of the user for one kind of cached data: ``$XDG_CACHE_HOME/skillwire/KIND``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "skillwire" / kind


class ScanConditions(NamedTuple):
    """How a folder was scanned. A cached scan is used only under the same conditions."""

    root: str
    base: str
    scheme: str
    limits: Limits

    def key(self) -> list[Any]:
        """Everything that must be equal, including our version and the identity of the folder."""
        status = os.stat(self.root)
        place = [self.root, status.st_dev, status.st_ino]
        reader = [os.geteuid(), sorted(os.getgroups())]  # another user may be able to read other files
        return [_FORM, version("skillwire"), *place, *reader, self.base, self.scheme, list(astuple(self.limits))]


def encode(found: Mapping[str, ReadFolder], conditions: ScanConditions) -> Iterator[bytes]:
    """The lines of a cache file. ``ValueError`` if JSON cannot express a value."""
    write = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
    yield f"{write(conditions.key())}\n".encode()
    for path, item in found.items():
        yield f"{write([path, *_plain(path, item, conditions.scheme)])}\n".encode()
    yield f"{len(found)}\n".encode()  # a truncated file has no such line


def decode(lines: Iterable[bytes], conditions: ScanConditions) -> dict[str, ReadFolder] | None:
    """The cached scan; ``None`` if the conditions differ or the file is damaged."""
    found: dict[str, ReadFolder] = {}
    try:
        rest = iter(lines)
        if json.loads(next(rest, b"null")) != json.loads(json.dumps(conditions.key())):
            return None
        for line in rest:
            match json.loads(line):
                case int(count):
                    return found if count == len(found) else None
                case [path, is_skill, record, problems, ignored]:
                    problems = tuple(Diagnostic(*problem) for problem in problems)
                    found[path] = ReadFolder(is_skill, _record(record), problems, tuple(ignored))
                case _:
                    return None
    except (ValueError, TypeError, RecursionError, OSError):
        pass
    return None


def load_cached(catalog: DirectoryCatalog, cache: Path | None, progress: Progress) -> None:
    """Load ``catalog``, reading only files that changed since the cached scan; then update the cache."""
    if cache is not None:
        with read_cache(cache, str(catalog.root)) as lines:
            catalog.use_cached_scan(lines)
    with progress() as count:
        catalog.load(count)
    if cache is not None and not catalog.is_as_cached:
        with suppress(ValueError):
            lines = list(catalog.scan_lines())
            if sum(map(len, lines)) >= _MIN_BYTES:
                write_cache(cache, str(catalog.root), lines)


@contextmanager
def read_cache(cache: Path, root: str) -> Generator[Iterable[bytes]]:
    """The lines of the cached scan of ``root``; none without a usable file."""
    place = _place(cache, root)
    try:
        descriptor = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield ()
        return
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & _OTHERS_WRITE:
            yield ()
            return
        with suppress(OSError):
            os.utime(place)  # marks it as used, see ``_remove_oldest``
        yield file


def write_cache(cache: Path, root: str, lines: Iterable[bytes]) -> None:
    """Write the cache file of ``root``. A failure only makes the next start slower."""
    place = _place(cache, root)
    new = place.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        cache.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(lines)
            os.replace(new, place)
        except BaseException:
            os.unlink(new)
            raise
        _remove_oldest(cache)


def _remove_oldest(cache: Path) -> None:
    """Remove the least recently used files, and files of interrupted writes."""
    by_age = sorted((-place.stat().st_mtime, place) for place in cache.iterdir())
    kept = [place for _, place in by_age if place.suffix == ".json"][:_FOLDERS]
    for age, place in by_age:
        if place not in kept and (place.suffix == ".json" or -age < time.time() - _UNFINISHED_SECONDS):
            place.unlink(missing_ok=True)


def _place(cache: Path, root: str) -> Path:
    return cache / f"{sha256(os.fsencode(root)).hexdigest()[:32]}.json"


def _plain(folder: str, found: ReadFolder, scheme: str) -> list[Any]:
    problems = [list(astuple(problem)) for problem in found.problems]
    return [found.is_skill, _plain_record(folder, found.record, scheme), problems, list(found.ignored)]


def _plain_record(folder: str, record: SkillRecord | None, scheme: str) -> list[Any] | None:
    if record is None:
        return None
    entry = record.entry
    files: list[list[Any]] = []
    for path, file in record.files.items():
        uri, digest = format_uri(f"{folder}/{path}", scheme), file.digest.removeprefix(_DIGEST)
        files.append([path, uri, digest, file.size, file.modified, file.stamp, file.executable])
    return [entry.uri, dict(entry.frontmatter), entry.modified, files, sorted(record.folders)]


def _record(plain: list[Any] | None) -> SkillRecord | None:
    if plain is None:
        return None
    uri, frontmatter, modified, files, folders = plain
    resources: list[Resource] = []
    known: dict[str, LocalFile] = {}
    for path, file_uri, digest, size, changed, stamp, executable in files:
        digest = _DIGEST + digest
        resources.append(Resource(file_uri, digest, size, path))
        known[path] = LocalFile(digest, size, changed, Stamp(*stamp) if stamp else None, executable=executable)
    resources.sort()
    entry = SkillEntry(uri, frontmatter, tuple(resources), DEFAULT_META, modified, local=True)
    return SkillRecord(entry, known, frozenset(folders))
