"""What was found in a folder, as text: to remember from one start to the next, or to hand to another process.

Whoever reads it back goes through the folder again and compares each file's stamp (inode, size, times) with the
one it had: only what differs is read and hashed anew. A stamp that was younger than three seconds when the file
was read is not written down, so a file that is written afterwards is not missed. No byte is served that does not
match its digest (R2), whoever computed it; for the rest, memory is as good as the file it is in, so only a file
that nobody else can write is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import astuple
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

from skillwire.catalog.records import Found, LocalFile, SkillRecord, Stamp
from skillwire.skill.diagnostics import Diagnostic
from skillwire.skill.entry import DEFAULT_META, Resource, SkillEntry
from skillwire.skill.uri import format_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
    from pathlib import Path

    from skillwire.limits import Limits

_FORM = 2
_DIGEST = "sha256:"
_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_OTHERS_WRITE = 0o022
_FOLDERS = 32  # so many are remembered
_UNFINISHED_SECONDS = 3600


class Reading(NamedTuple):
    """Under which conditions a folder was read. Under others, what was found does not count."""

    root: str
    base: str
    scheme: str
    limits: Limits

    def key(self) -> list[Any]:
        """All of it, and what else must be the same: our version, and the folder itself."""
        status = os.stat(self.root)
        place = [self.root, status.st_dev, status.st_ino]
        reader = [os.geteuid(), sorted(os.getgroups())]  # others may not be able to read the same
        return [_FORM, version("skillwire"), *place, *reader, self.base, self.scheme, list(astuple(self.limits))]


class Recalled(NamedTuple):
    """What was found at a path, and the line that said so."""

    found: Found
    line: bytes


def encode(
    found: Mapping[str, Found], reading: Reading, recalled: Mapping[str, Recalled] | None = None
) -> Iterator[bytes]:
    """``found``, as read under ``reading``, in lines. ``ValueError`` if some of it cannot be written down.

    What is as it was ``recalled`` is said in the same line.
    """
    known = recalled or {}
    write = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
    yield f"{write(reading.key())}\n".encode()
    for path, item in found.items():
        before = known.get(path)
        if before is not None and before.found is item:
            yield before.line
        else:
            yield f"{write([path, *_plain(path, item, reading.scheme)])}\n".encode()
    yield f"{len(found)}\n".encode()  # so that a part is not taken for all of it


def decode(lines: Iterable[bytes], reading: Reading) -> dict[str, Recalled] | None:
    """What was found, or ``None`` if it was read under other conditions, or is not what ``encode`` wrote."""
    loads = _fast_loads()
    found: dict[str, Recalled] = {}
    try:
        rest = iter(lines)
        if json.loads(next(rest, b"null")) != json.loads(json.dumps(reading.key())):
            return None
        for line in rest:
            match loads(line):
                case int(count):
                    return found if count == len(found) else None
                case [path, is_skill, record, problems, ignored]:
                    found[path] = Recalled(_found(is_skill, record, problems, ignored), line)
                case _:
                    return None
    except (ValueError, TypeError, RecursionError, OSError):
        pass
    return None


def _fast_loads() -> Callable[[bytes], Any]:
    """A faster reader of JSON where something else has imported it already, as the SDK does."""
    core = sys.modules.get("pydantic_core")
    return json.loads if core is None else core.from_json


@contextmanager
def remembered(folder: Path, root: str) -> Generator[Iterable[bytes]]:
    """What was remembered of ``root`` in ``folder``, line by line; nothing if there is nothing."""
    place = _place(folder, root)
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
            os.utime(place)  # what is used stays; see ``_forget_oldest``
        yield file


def remember(folder: Path, root: str, lines: Iterable[bytes]) -> None:
    """Keep ``lines`` in ``folder`` for the next time. Where that fails, the next start only takes longer."""
    place = _place(folder, root)
    new = place.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE_FILE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.writelines(lines)
            os.replace(new, place)
        except BaseException:
            os.unlink(new)
            raise
        _forget_oldest(folder)


def _forget_oldest(folder: Path) -> None:
    """Folders come and go; what was not used for longest is forgotten first. So is what was never finished."""
    by_age = sorted((-place.stat().st_mtime, place) for place in folder.iterdir())
    kept = [place for _, place in by_age if place.suffix == ".json"][:_FOLDERS]
    for age, place in by_age:
        if place not in kept and (place.suffix == ".json" or -age < time.time() - _UNFINISHED_SECONDS):
            place.unlink(missing_ok=True)


def _place(folder: Path, root: str) -> Path:
    return folder / f"{hashlib.sha256(os.fsencode(root)).hexdigest()[:32]}.json"


def _plain(folder: str, found: Found, scheme: str) -> list[Any]:
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


def _found(is_skill: bool, record: list[Any] | None, problems: list[Any], ignored: list[str]) -> Found:
    return Found(is_skill, _record(record), tuple(Diagnostic(*problem) for problem in problems), tuple(ignored))


def _record(plain: list[Any] | None) -> SkillRecord | None:
    if plain is None:
        return None
    uri, frontmatter, modified, files, folders = plain
    resources: list[Resource] = []
    known: dict[str, LocalFile] = {}
    for path, file_uri, digest, size, changed, stamp, executable in files:
        digest = _DIGEST + digest
        resources.append(Resource(file_uri, digest, size))
        known[path] = LocalFile(digest, size, changed, Stamp(*stamp) if stamp else None, executable=executable)
    resources.sort()
    entry = SkillEntry(uri, frontmatter, tuple(resources), DEFAULT_META, modified)
    return SkillRecord(entry, known, frozenset(folders))
