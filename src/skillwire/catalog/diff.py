"""The differences between two catalogs: by skill, by file, by line.

Skills are matched by path, files are compared by digest. Only files that differ are read, and only for a text
diff.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from skillwire.errors import SkillwireError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Resource, SkillEntry

Kind = Literal["new", "gone", "changed"]
_COMPARED_LINES = 2000  # the lines are untrusted, and comparing them can take quadratic time


@dataclass(frozen=True, slots=True)
class FileDifference:
    """One new, removed or changed file, with a unified diff, or a note why there is none."""

    path: str
    kind: Kind
    lines: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class SkillDifference:
    """One new, removed or changed skill."""

    path: str
    kind: Kind
    files: tuple[FileDifference, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON values."""
        return asdict(self)


class _Side(NamedTuple):
    catalog: Catalog
    entry: SkillEntry

    @property
    def files(self) -> dict[str, Resource]:
        """The files by path inside the skill."""
        depth = len(parse_uri(self.entry.uri).segments) - 1
        return {"/".join(parse_uri(file.uri).segments[depth:]): file for file in self.entry.files}


async def differences(old: Catalog, new: Catalog, *, with_text: bool = True) -> AsyncIterator[SkillDifference]:
    """Every skill that differs, in the order of paths."""
    before = {entry.path: entry async for entry in old.entries()}
    after = {entry.path: entry async for entry in new.entries()}
    for path in sorted(before.keys() | after.keys()):
        if path not in before:
            yield SkillDifference(path, "new")
        elif path not in after:
            yield SkillDifference(path, "gone")
        else:
            sides = _Side(old, before[path]), _Side(new, after[path])
            files = [file async for file in _file_differences(*sides, with_text=with_text)]
            if files or before[path].frontmatter != after[path].frontmatter:
                yield SkillDifference(path, "changed", tuple(files))


def content_differences(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[FileDifference]:
    """The differences between two versions of one skill, given as bytes by path."""
    for path in sorted(old.keys() | new.keys()):
        if path not in old:
            yield FileDifference(path, "new")
        elif path not in new:
            yield FileDifference(path, "gone")
        elif old[path] != new[path]:
            yield _compared(path, old[path], new[path])


def _compared(path: str, old: bytes, new: bytes) -> FileDifference:
    try:
        texts = old.decode(), new.decode()
    except UnicodeDecodeError:
        return FileDifference(path, "changed", note="not text")
    if max(text.count("\n") for text in texts) > _COMPARED_LINES:
        return FileDifference(path, "changed", note="too long to compare")
    lines = unified_diff(texts[0].splitlines(), texts[1].splitlines(), lineterm="", n=2)
    return FileDifference(path, "changed", tuple(lines)[2:])  # the first two would repeat the path


async def _file_differences(old: _Side, new: _Side, *, with_text: bool) -> AsyncIterator[FileDifference]:
    before, after = old.files, new.files
    for path in sorted(before.keys() | after.keys()):
        if path not in before:
            yield FileDifference(path, "new")
        elif path not in after:
            yield FileDifference(path, "gone")
        elif before[path].digest != after[path].digest or None in (before[path].digest, after[path].digest):
            difference = await _changed(old, new, path, with_text=with_text)
            if difference is not None:
                yield difference


async def _changed(old: _Side, new: _Side, path: str, *, with_text: bool) -> FileDifference | None:
    one, other = old.files[path], new.files[path]
    if not with_text:
        return None if None in (one.digest, other.digest) else FileDifference(path, "changed")
    if max(one.size or 0, other.size or 0) > DEFAULT_LIMITS.max_checked_text:
        return FileDifference(path, "changed", note="too large to compare")
    try:
        before = (await old.catalog.read_file(one.uri)).data
        after = (await new.catalog.read_file(other.uri)).data
    except SkillwireError as error:
        return FileDifference(path, "changed", note=f"not read: {error.reference}")
    return None if before == after else _compared(path, before, after)
