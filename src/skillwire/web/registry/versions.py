"""The versions of a skill in a registry, and the differences between two of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from anyio import to_thread

from skillwire.limits import MIB
from skillwire.registry.catalog import entry_of
from skillwire.registry.model import SkillRef
from skillwire.skill.approval import claimed_contents
from skillwire.skill.uri import SKILL_MD, skill_md_uri
from skillwire.web.desk.history import MAX_COMPARED, Comparison, compare_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from skillwire.registry.contract import RegistryStore, Release, ReviewRequest, VersionLine
    from skillwire.registry.model import Identity

_MAX_READ: Final = 32 * MIB  # of both versions
_LARGE: Final = "too large to compare here; read the whole file"


class VersionRow(NamedTuple):
    """A version, the one before it, and the number of the review that it waits for."""

    line: VersionLine
    before: str | None
    waits: int | None


class Difference(NamedTuple):
    """The differences between two versions. ``modes``: files that are executable only in one of them."""

    comparison: Comparison
    modes: Sequence[tuple[str, bool]]


def version_rows(lines: Sequence[VersionLine], reviews: Iterable[ReviewRequest]) -> list[VersionRow]:
    """The rows of a history, the newest first."""
    waiting = {each.version: each.number for each in reviews}
    rows: list[VersionRow] = []
    before: str | None = None
    for line in reversed(lines):
        rows.append(VersionRow(line, before, waiting.get(line.version)))
        if line.deleted is None:
            before = line.version
    return rows[::-1]


async def difference(store: RegistryStore, who: Identity, old: Release | None, new: Release) -> Difference:
    """The differences between two versions that the caller may see; without ``old``, everything is added."""
    ref = SkillRef(new.path)  # the same addresses for both
    files = [{} if each is None else {file.path: file for file in each.manifest.files} for each in (old, new)]
    digests = [{(path, file.digest) for path, file in side.items()} for side in files]
    changed = sorted({path for path, _ in digests[0] ^ digests[1]}, key=lambda path: (path != SKILL_MD, path))
    left, texts = _MAX_READ, list[dict[str, bytes]]()
    for release, side in zip((old, new), files, strict=True):
        found = dict[str, bytes]()
        for path in changed[:MAX_COMPARED]:
            if release is None or path not in side or side[path].size > left:
                continue
            data = await store.read(who, SkillRef(release.path, version=release.version), path)
            if data is not None:
                found[path] = data
                left -= len(data)
        texts.append(found)
    before = frozenset[tuple[str, str]]() if old is None else claimed_contents(entry_of(old, ref))
    after = claimed_contents(entry_of(new, ref))
    uri = skill_md_uri(new.path)
    compared = await to_thread.run_sync(compare_versions, uri, before, after, texts[0], texts[1], _LARGE)
    if old is None:
        compared = replace(compared, has_other_frontmatter=False)
    modes = [
        (path, file.executable)
        for path, file in files[1].items()
        if path in files[0] and files[0][path].executable != file.executable
    ]
    return Difference(compared, modes)
