"""What the files of a skill contain: the review, and the problems that ``check`` finds in its text.

Nothing is read from another server without a request of the user (V5): ``Examiner`` reads only skills whose bytes
are on this machine. Its results are cached by content. No page waits for a list of skills to be examined: the
examiner works in the background, and pages show what is known.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio import to_thread

from skillwire.catalog.packer import tree_of
from skillwire.catalog.snapshot import parents
from skillwire.errors import SkillwireError
from skillwire.limits import MIB
from skillwire.skill.approval import claimed_contents, fingerprint
from skillwire.skill.check import check_skill
from skillwire.skill.review import Review, review_files
from skillwire.skill.uri import SKILL_MD, path_in_skill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.skill import Diagnostic, SkillEntry
    from skillwire.skill.review import Risk

_MAX_BYTES = 32 * MIB  # of one skill; files beyond it are counted as not searched
_MAX_SKILLS = 20_000
_MAX_FIRST = 1000
_TELL_SECONDS = 2.0  # between two calls of ``on_progress`` while all others are examined
_PAUSE = 3.0  # times the duration of an examination
_MAX_PAUSE_SECONDS = 0.1
log = logging.getLogger("skillwire.examination")


async def read_files(catalog: Catalog, entry: SkillEntry) -> tuple[dict[str, bytes], frozenset[str]]:
    """The files of a skill that can be read, by path inside it, and which of them are executable."""
    files, left = dict[str, bytes](), _MAX_BYTES
    for uri in dict.fromkeys([entry.uri, *(file.uri for file in entry.files)]):
        known = entry.resource(uri)
        left -= (known.size or 0) if known else 0
        if left >= 0:
            with suppress(SkillwireError):  # counted as not searched
                files[path_in_skill(entry.uri, uri)] = (await catalog.read_file(uri)).data
    executables = frozenset[str]()
    with suppress(SkillwireError):  # the endings and the first lines of files are known
        executables = (await tree_of(catalog, entry)).executables
    return files, executables


async def review_skill(catalog: Catalog, entry: SkillEntry) -> Review:
    """Read the files of a skill, and return the facts in them."""
    files, executables = await read_files(catalog, entry)
    return await to_thread.run_sync(review_files, entry, files.items(), executables)


class Examined(NamedTuple):
    """The risk of one content of a skill, and the problems that ``check`` finds in its text."""

    risk: Risk
    problems: tuple[Diagnostic, ...]

    @property
    def others(self) -> list[Diagnostic]:
        """The problems that the risk does not show: hidden text is a part of it."""
        return [each for each in self.problems if each.severity != "note" and each.reference != "hidden-text"]


class Examiner:
    """Examines skills once per content, in the background: first those that were asked for, then all others.

    Nothing waits for it. ``on_progress`` is called when there are new results that a page may show.
    """

    def __init__(self, on_progress: Callable[[], None] = lambda: None) -> None:
        self._on_progress = on_progress
        self._known: dict[str, tuple[SkillEntry, str, Examined]] = {}  # by URI
        self._problematic: dict[str, None] = {}  # the URIs with problems, in their order
        self._first: dict[str, tuple[Catalog, SkillEntry]] = {}  # by URI; the last one is examined first
        self._others: dict[Catalog, list[SkillEntry]] = {}  # the last one is examined first
        self._work = anyio.Event()

    def known(self, entry: SkillEntry) -> Examined | None:
        """The result for exactly this content, if it was examined."""
        found = self._known.get(entry.uri)
        if found is None or found[0] is entry:
            return None if found is None else found[2]
        if found[1] != fingerprint(claimed_contents(entry)):
            return None
        self._known[entry.uri] = entry, *found[1:]  # the next comparison is by identity
        return found[2]

    def problematic(self) -> Iterator[str]:
        """The URIs of skills with problems, when they were examined."""
        yield from list(self._problematic)

    def remaining(self, catalog: Catalog) -> int:
        """The number of skills of ``catalog`` that are not examined yet."""
        return len(self._others.get(catalog, ()))

    def ask(self, catalog: Catalog, entries: Iterable[SkillEntry]) -> None:
        """Examine these next. Of too many, the ones of older requests are dropped: they are among all others."""
        for entry in reversed(list(entries)):
            if _is_examinable(entry) and self.known(entry) is None:
                self._first.pop(entry.uri, None)
                self._first[entry.uri] = catalog, entry
        while len(self._first) > _MAX_FIRST:
            self._first.pop(next(iter(self._first)))
        self._work.set()

    def ask_all(self, catalog: Catalog, entries: Iterable[SkillEntry]) -> None:
        """Examine these when there is nothing else to do."""
        unknown = [entry for entry in entries if _is_examinable(entry) and self.known(entry) is None]
        self._others.pop(catalog, None)
        if unknown:
            self._others[catalog] = unknown[:_MAX_SKILLS][::-1]
        self._work.set()

    async def run(self) -> None:
        """Examine in the background, until cancelled."""
        told = time.monotonic()
        while True:
            begun, is_asked = time.monotonic(), bool(self._first)
            if is_asked:
                await self._try(*self._first.popitem()[1])
            elif self._others:
                catalog, entries = next(iter(self._others.items()))
                await self._try(catalog, entries[-1])
                entries.pop()
                if not self._others.get(catalog):  # meanwhile it may have another list
                    self._others.pop(catalog, None)
            else:
                self._work = anyio.Event()
                await self._work.wait()
                continue
            now = time.monotonic()
            if not self._first and (is_asked or not self._others or now - told > _TELL_SECONDS):
                told = now
                self._on_progress()
            if not self._first:  # leave most of the processor to requests
                await anyio.sleep(min(_PAUSE * (now - begun), _MAX_PAUSE_SECONDS))

    async def examine(self, catalog: Catalog, entry: SkillEntry) -> Examined | None:
        """The result for one skill, now. ``None`` for skills of other servers and dynamic ones."""
        known = self.known(entry)
        if known is not None or not _is_examinable(entry):
            return known
        files, executables = await read_files(catalog, entry)
        found = await to_thread.run_sync(_examined, entry, files, executables)
        self._first.pop(entry.uri, None)
        self._known.pop(entry.uri, None)
        self._problematic.pop(entry.uri, None)
        while len(self._known) >= _MAX_SKILLS:
            oldest = next(iter(self._known))
            self._known.pop(oldest)
            self._problematic.pop(oldest, None)
        self._known[entry.uri] = entry, fingerprint(claimed_contents(entry)), found
        if found.problems:
            self._problematic[entry.uri] = None
        return found

    async def _try(self, catalog: Catalog, entry: SkillEntry) -> None:
        try:
            await self.examine(catalog, entry)
        except Exception:  # one skill must not end the work on all others
            log.exception("%s cannot be examined", entry.uri)


def _is_examinable(entry: SkillEntry) -> bool:
    return entry.local and not entry.is_dynamic


def _examined(entry: SkillEntry, files: Mapping[str, bytes], executables: frozenset[str]) -> Examined:
    paths = [file.path for file in entry.files] or list(files)
    names = {"", *paths, *(folder for path in paths for folder in parents(path))}
    nested = tuple(path.removesuffix(SKILL_MD) for path in paths if path.endswith(f"/{SKILL_MD}"))
    own = ((path, data) for path, data in files.items() if not path.startswith(nested))
    problems = tuple(check_skill(entry.path, own, names))
    return Examined(review_files(entry, files.items(), executables).risk, problems)
