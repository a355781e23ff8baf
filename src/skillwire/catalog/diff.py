"""The differences between two catalogs: by skill, by file, by line.

Skills are matched by path, files are compared by digest. Only files that differ are read.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from skillwire.errors import SkillwireError
from skillwire.limits import DEFAULT_LIMITS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Resource

DifferenceKind: TypeAlias = Literal["new", "gone", "changed"]
_SHOWN_LINES = 400
_COMPARED_LINES = 2000  # the lines are untrusted, and comparing them can take quadratic time


@dataclass(frozen=True, slots=True)
class FileDifference:
    """One new, removed or changed file, with a unified diff, or a note why there is none."""

    path: str
    kind: DifferenceKind
    lines: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class SkillDifference:
    """One new, removed or changed skill."""

    path: str
    kind: DifferenceKind
    files: tuple[FileDifference, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON values."""
        return asdict(self)


async def differences(old: Catalog, new: Catalog) -> AsyncIterator[SkillDifference]:
    """Every skill that differs, in the order of paths."""
    before = {entry.path: entry async for entry in old.entries()}
    after = {entry.path: entry async for entry in new.entries()}
    for path, kind in _kinds(before, after):
        if kind != "changed":
            yield SkillDifference(path, kind)
            continue
        files: list[FileDifference] = []
        ours, theirs = ({file.path: file for file in each[path].files} for each in (before, after))
        for inside, file_kind in _kinds(ours, theirs):
            if file_kind != "changed":
                files.append(FileDifference(inside, file_kind))
            elif ours[inside].digest != theirs[inside].digest or ours[inside].digest is None:
                difference = await _file_difference(old, new, ours[inside], theirs[inside])
                if difference is not None:
                    files.append(difference)
        if files or before[path].frontmatter != after[path].frontmatter:
            yield SkillDifference(path, "changed", tuple(files))


def content_differences(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[FileDifference]:
    """The differences between two versions of one skill, given as bytes by path."""
    for path, kind in _kinds(old, new):
        if kind != "changed":
            yield FileDifference(path, kind)
        elif old[path] != new[path]:
            yield _compared(path, old[path], new[path])


def changed_lines(path: str, old: bytes, new: bytes) -> Iterator[str]:
    """The changed lines of one file as text for a person, or why they cannot be shown."""
    for found in content_differences({path: old}, {path: new}):
        yield f"~ {path}" + (f": {found.note}" if found.note else "")
        yield from found.lines[:_SHOWN_LINES]
        if len(found.lines) > _SHOWN_LINES:
            yield f"… and {len(found.lines) - _SHOWN_LINES} more lines"


def _kinds(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[tuple[str, DifferenceKind]]:
    """Every key, sorted. A key of both is "changed"; the caller decides whether it really is."""
    for key in sorted(old.keys() | new.keys()):
        yield key, "changed" if key in old and key in new else "gone" if key in old else "new"


async def _file_difference(old: Catalog, new: Catalog, one: Resource, other: Resource) -> FileDifference | None:
    """The difference of a file whose digests differ or are unknown; ``None`` if its bytes are equal."""
    if max(one.size or 0, other.size or 0) > DEFAULT_LIMITS.max_checked_text:
        return FileDifference(one.path, "changed", note="too large to compare")
    try:
        before = (await old.read_file(one.uri)).data
        after = (await new.read_file(other.uri)).data
    except SkillwireError as error:
        return FileDifference(one.path, "changed", note=f"not read: {error.reference}")
    return None if before == after else _compared(one.path, before, after)


def _compared(path: str, old: bytes, new: bytes) -> FileDifference:
    try:
        texts = old.decode(), new.decode()
    except UnicodeDecodeError:
        return FileDifference(path, "changed", note="not text")
    if max(text.count("\n") for text in texts) > _COMPARED_LINES:
        return FileDifference(path, "changed", note="too long to compare")
    lines = unified_diff(texts[0].splitlines(), texts[1].splitlines(), lineterm="", n=2)
    return FileDifference(path, "changed", tuple(lines)[2:])  # the first two would repeat the path
