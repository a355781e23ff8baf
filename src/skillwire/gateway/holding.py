"""What is held about an upstream's skills: its last listing, and what was asked for since.

Pure bookkeeping. Identity is the decoded URI of a skill's root (E5, U7), so that spellings do not matter.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from skillwire.catalog.changes import Change
from skillwire.client.refresh import compare, is_same
from skillwire.skill.uri import SkillUri, parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from skillwire.skill import SkillEntry

_MOST_ASKED = 4096  # entries that nobody lists; those that are fuller than the listing's are as many as that has


class Holding:
    """Entries by root. What was asked for is newer, and in some dialects fuller, than what was listed."""

    def __init__(self) -> None:
        self.keys: list[str] = []  # canonical URIs of what is listed, sorted
        self._version = 0  # grows with every change
        self._listed: dict[SkillUri, SkillEntry] = {}
        self._asked: OrderedDict[SkillUri, SkillEntry] = OrderedDict()
        self._whole = (-1, False)

    def __iter__(self) -> Iterator[SkillEntry]:
        return iter(self._listed.values())

    def __len__(self) -> int:
        return len(self._listed)

    def listed(self, key: str) -> SkillEntry:
        """The listed entry with the canonical URI ``key``."""
        return self._listed[root_of(key)]

    def at(self, root: SkillUri) -> SkillEntry | None:
        """What is held about the skill at ``root``."""
        return self._asked.get(root) or self._listed.get(root)

    def around(self, place: SkillUri) -> SkillEntry | None:
        """The innermost skill around a file or at a directory."""
        return next((entry for root in place.upwards() if (entry := self.at(root)) is not None), None)

    def unchanged(self, file: SkillUri | None) -> Callable[[], bool] | None:
        """A test for later: whether the skill around ``file`` is held as it is now; without one, whether all are.

        ``None`` where an upstream is asked anew each time: for files without a digest, for folders without a list.
        """
        if file is None:
            version = self._version
            return (lambda: self._version == version) if self._is_whole() else None
        entry = self.around(file.parent)
        resource = None if entry is None else entry.resource(str(file))
        if entry is None or not entry.is_complete or resource is None or resource.digest is None:
            return None
        return lambda: self.around(file.parent) is entry

    def _is_whole(self) -> bool:
        """Whether every entry lists all its files; looked at once for each version."""
        if self._whole[0] != self._version:
            entries = (entry for held in (self._listed, self._asked) for entry in held.values())
            self._whole = self._version, all(entry.is_complete for entry in entries)
        return self._whole[1]

    def is_short(self, entry: SkillEntry) -> bool:
        """Whether the upstream may promise more about the skill than its listing says, if it is asked."""
        return not entry.is_complete and not entry.is_dynamic and root_of(entry.uri) not in self._asked

    def replace(self, entries: Iterable[SkillEntry]) -> Change:
        """A new listing; how it differs. What was asked for before is forgotten where the listing changed."""
        entries = tuple(entries)
        refresh = compare(self._listed.values(), entries)
        for entry in (*refresh.changed, *refresh.gone):
            self._asked.pop(root_of(entry.uri), None)
        self._listed = {root: _known(self._listed.get(root), entry) for root, entry in _by_root(entries)}
        self._version += 1
        self.keys = sorted(str(parse_uri(entry.uri)) for entry in entries)
        return Change(_uris(refresh.new), changed=_uris(refresh.changed), removed=_uris(refresh.gone))

    def restate(self, told: Callable[[SkillEntry], SkillEntry]) -> Change:
        """The same skills, with other things said about them: who shows those has to look again."""
        self._listed = {root: told(entry) for root, entry in self._listed.items()}
        self._asked = OrderedDict((root, told(entry)) for root, entry in self._asked.items())
        self._version += 1
        return Change(changed=_uris((*self._listed.values(), *self._asked.values())))

    def put(self, entry: SkillEntry) -> Change:
        """The answer to a question about one skill; how it differs from what was held."""
        root = root_of(entry.uri)
        self._version += 1
        known, listed = self.at(root), self._listed.get(root)
        if listed is not None and listed.is_complete:
            self._listed[root] = entry
            self._asked.pop(root, None)
        else:
            self._asked[root] = entry
            self._asked.move_to_end(root)
            while len(self._asked) > _MOST_ASKED + len(self._listed):
                self._asked.popitem(last=False)
        # A short listing and a full answer differ although nothing changed.
        is_other = known is not None and known.is_complete and not is_same(known, entry)
        return Change(changed=frozenset({entry.uri})) if is_other else Change()

    def drop(self, root: SkillUri) -> Change:
        """The upstream says that there is no such skill any more."""
        self._version += 1
        known = self._asked.pop(root, None) or self._listed.get(root)
        if self._listed.pop(root, None) is not None:
            self.keys = sorted(str(parse_uri(entry.uri)) for entry in self._listed.values())
        return Change(removed=frozenset({known.uri})) if known is not None else Change()


def root_of(uri: str) -> SkillUri:
    """The root of the skill whose ``SKILL.md`` is at ``uri``."""
    return skill_root(parse_uri(uri))


def _by_root(entries: Iterable[SkillEntry]) -> Iterator[tuple[SkillUri, SkillEntry]]:
    return ((root_of(entry.uri), entry) for entry in entries)


def _known(known: SkillEntry | None, entry: SkillEntry) -> SkillEntry:
    """The object that is held already, if it says the same: what was made of it elsewhere is still right."""
    return known if known is not None and known == entry and known.meta == entry.meta else entry


def _uris(entries: Iterable[SkillEntry]) -> frozenset[str]:
    return frozenset(entry.uri for entry in entries)
