"""What changed between two listings, by digests alone: no file is read (rules A2, C1 build on this)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skillwire.skill.verify import differing_fields

if TYPE_CHECKING:
    from collections.abc import Iterable

    from skillwire.skill import SkillEntry


@dataclass(frozen=True, slots=True)
class Refresh:
    """The skills of a server now, sorted by what became of them.

    A skill that promises no digests is among ``changed`` whenever anything it says differs, and among
    ``unchanged`` otherwise: its bytes may be new all the same, and nothing tells.
    """

    new: tuple[SkillEntry, ...]
    changed: tuple[SkillEntry, ...]
    gone: tuple[SkillEntry, ...]
    unchanged: tuple[SkillEntry, ...]

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)


def compare(previous: Iterable[SkillEntry], current: Iterable[SkillEntry]) -> Refresh:
    """How ``current`` differs from ``previous``, skill by skill. The order of files does not matter."""
    before = {entry.uri: entry for entry in previous}
    now = {entry.uri: entry for entry in current}
    kept = [entry for uri, entry in now.items() if uri in before]
    return Refresh(
        new=tuple(entry for uri, entry in now.items() if uri not in before),
        changed=tuple(entry for entry in kept if not is_same(entry, before[entry.uri])),
        gone=tuple(entry for uri, entry in before.items() if uri not in now),
        unchanged=tuple(entry for entry in kept if is_same(entry, before[entry.uri])),
    )


def is_same(one: SkillEntry, other: SkillEntry) -> bool:
    """Whether two entries claim the same."""
    return (
        one.uri == other.uri
        and not differing_fields(one.frontmatter, other.frontmatter, one.frontmatter.keys() | other.frontmatter)
        and type(one.resources) is type(other.resources)
        and set(one.files) == set(other.files)
    )
