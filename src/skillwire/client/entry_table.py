"""The entries of one server: its last listing, and the entries that were requested since.

Pure bookkeeping. The key is the decoded URI of a skill's root, so that spellings do not matter (E5, U7). In some
dialects a requested entry has more detail than the listed one. Listings are compared by digests and fields; no
file is read (A2, C1).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from skillwire.catalog.contract import Change
from skillwire.skill.uri import SkillUri, parse_uri, root_of
from skillwire.skill.verify import is_same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from skillwire.skill import SkillEntry

_MAX_UNLISTED = 4096  # requested entries that are in no listing


class EntryTable:
    """Entries by root. Each method that changes the table returns what changed for its readers."""

    def __init__(self) -> None:
        self.keys: list[str] = []  # canonical URIs of the listed entries, sorted
        self._version = 0  # grows with every change
        self._listed: dict[SkillUri, SkillEntry] = {}
        self._asked: OrderedDict[SkillUri, SkillEntry] = OrderedDict()
        self._all_complete = (-1, False)  # for which version, and the answer
        self._known: tuple[int, tuple[SkillEntry, ...]] = (-1, ())

    def __iter__(self) -> Iterator[SkillEntry]:
        return iter(self._listed.values())

    def __len__(self) -> int:
        return len(self._listed)

    @property
    def known(self) -> tuple[SkillEntry, ...]:
        """Every listed skill, with its requested entry if there is one. The same object until a change."""
        if self._known[0] != self._version:
            known = tuple(self._asked.get(root, entry) for root, entry in self._listed.items())
            self._known = self._version, known
        return self._known[1]

    def listed_at(self, root: SkillUri) -> SkillEntry | None:
        """The entry of the skill at ``root``, as it was listed."""
        return self._listed.get(root)

    def listed(self, key: str) -> SkillEntry:
        """The listed entry with the canonical URI ``key``."""
        return self._listed[root_of(key)]

    def at(self, root: SkillUri) -> SkillEntry | None:
        """The entry of the skill at ``root``."""
        return self._asked.get(root) or self._listed.get(root)

    def around(self, place: SkillUri) -> SkillEntry | None:
        """The entry of the innermost skill at or around ``place``."""
        return next((entry for root in place.upwards() if (entry := self.at(root)) is not None), None)

    def is_short(self, entry: SkillEntry) -> bool:
        """Whether the server may have a more detailed entry that was not requested yet."""
        return entry.is_short and entry.root not in self._asked

    def unchanged(self, file: SkillUri | None) -> Callable[[], bool] | None:
        """A function that tests whether the entry around ``file`` (or, without a file, every entry) is unchanged.

        ``None`` if a request goes to the server each time: for a file without a digest, and for partial entries.
        """
        if file is None:
            version = self._version
            return (lambda: self._version == version) if self._is_all_complete() else None
        entry = self.around(file.parent)
        resource = None if entry is None else entry.resource(str(file))
        if entry is None or not entry.is_complete or resource is None or resource.digest is None:
            return None
        return lambda: self.around(file.parent) is entry

    def replace(self, entries: Iterable[SkillEntry]) -> Change:
        """Take a new listing. A requested entry is dropped if its listed entry changed.

        A skill without digests has changed if any of its fields or files differ: its bytes may have changed too,
        but a listing does not show that.
        """
        before, now = self._listed, {entry.root: entry for entry in entries}
        new = [entry for root, entry in now.items() if root not in before]
        changed = [entry for root, entry in now.items() if root in before and not is_same(entry, before[root])]
        gone = [entry for root, entry in before.items() if root not in now]
        for entry in (*changed, *gone):
            self._asked.pop(entry.root, None)
        self._listed = {root: _same_object(before.get(root), entry) for root, entry in now.items()}
        self._version += 1
        self._sort_keys()
        return Change(_uris(new), changed=_uris(changed), removed=_uris(gone))

    def update_all(self, update: Callable[[SkillEntry], SkillEntry]) -> Change:
        """Replace every entry by ``update(entry)``, the same skill with other metadata."""
        self._listed = {root: update(entry) for root, entry in self._listed.items()}
        self._asked = OrderedDict((root, update(entry)) for root, entry in self._asked.items())
        self._version += 1
        return Change(changed=_uris((*self._listed.values(), *self._asked.values())))

    def put(self, entry: SkillEntry) -> Change:
        """Take a requested entry."""
        root = entry.root
        self._version += 1
        known, listed = self.at(root), self._listed.get(root)
        if listed is not None and listed.is_complete:
            self._listed[root] = entry
            self._asked.pop(root, None)
        else:
            self._asked[root] = entry
            self._asked.move_to_end(root)
            while len(self._asked) > _MAX_UNLISTED + len(self._listed):
                self._asked.popitem(last=False)
        # A short entry and the requested one differ even if the skill did not change.
        is_changed = known is not None and known.is_complete and not is_same(known, entry)
        return Change(changed=frozenset({entry.uri})) if is_changed else Change()

    def forget_asked(self) -> None:
        """Drop the requested entries, so that they are requested again."""
        self._asked.clear()
        self._version += 1

    def drop(self, root: SkillUri) -> Change:
        """Remove a skill that the server no longer has."""
        self._version += 1
        known = self._asked.pop(root, None) or self._listed.get(root)
        if self._listed.pop(root, None) is not None:
            self._sort_keys()
        return Change(removed=frozenset({known.uri})) if known is not None else Change()

    def _sort_keys(self) -> None:
        self.keys = sorted(str(parse_uri(entry.uri)) for entry in self)

    def _is_all_complete(self) -> bool:
        if self._all_complete[0] != self._version:
            entries = (entry for held in (self._listed, self._asked) for entry in held.values())
            self._all_complete = self._version, all(entry.is_complete for entry in entries)
        return self._all_complete[1]


def _same_object(known: SkillEntry | None, entry: SkillEntry) -> SkillEntry:
    """The known object if it is equal: caches of wrappers are keyed by identity."""
    return known if known is not None and known == entry and known.meta == entry.meta else entry


def _uris(entries: Iterable[SkillEntry]) -> frozenset[str]:
    return frozenset(entry.uri for entry in entries)
