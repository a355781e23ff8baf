"""What of an upstream is served: what the policy allows and, in ``admit`` mode, what was approved as it is now.

A catalog around a catalog. What is not admitted answers, by every method, exactly like what does not exist; only
``problems`` tells that it waits.

- An approval is for exactly one content (A1). It stands in the store, where ``skillwire approve`` puts it too, or
  in the policy. An entry that changed is not covered any more: it disappears, its approval is revoked (A2), and
  it comes back when somebody said yes to the new content. Bytes are compared with the entry that was approved, so
  that nothing slips in between (V1, V3).
- A skill that promises no digests cannot be approved (V7). Some dialects list less than they promise: what has a
  yes is then asked for in full, and listed so (``completing.py``).
- A nested skill needs its own yes (A3); its files are also files of the skill around it, and served as those (E4).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from skillwire.catalog.changes import Change, ChangeFeed, ChangeStream
from skillwire.catalog.contract import (
    DEFAULT_PAGE_SIZE,
    DirectoryChild,
    Page,
    ReadyArchive,
    SkillFile,
)
from skillwire.catalog.cursor import page_of
from skillwire.catalog.manifest import children_in
from skillwire.catalog.snapshot import beginning_with, no_directory, no_file, no_skill
from skillwire.catalog.wrapper import GatedCatalog
from skillwire.client.entry_table import root_of
from skillwire.errors import NotFoundError, StoreError, VerificationError
from skillwire.gateway.completing import Completion
from skillwire.skill.review import review_entry, with_text
from skillwire.skill.uri import SKILL_MD, SkillUri, parse_uri, skill_md_uri
from skillwire.skill.verify import verify_file, verify_skill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from skillwire.catalog.contract import Catalog
    from skillwire.gateway.admission import Admission
    from skillwire.gateway.recording import Recorder
    from skillwire.skill import Diagnostic, SkillEntry
    from skillwire.skill.review import Review

log = logging.getLogger("skillwire.gateway")


class AdmittingCatalog(GatedCatalog):
    """``inner``, as far as ``admission`` lets it through. ``recorder`` hears what is served."""

    def __init__(self, inner: Catalog, admission: Admission, recorder: Recorder | None = None) -> None:
        super().__init__(inner)
        self.admission = admission
        self._recorder = recorder
        self._listing: dict[str, SkillEntry] = {}  # what is admitted and listed, by canonical URI
        self._keys: list[str] = []
        self._waiting: tuple[SkillEntry, ...] = ()
        self._short: tuple[SkillEntry, ...] = ()  # has a yes, and has to be asked for in full
        self._is_old = True
        self._wake = anyio.Event()
        self._decided = anyio.Event()
        self._lock = anyio.Lock()
        self._feed = ChangeFeed()
        self._completion = Completion(inner, admission, self._age)
        self._watch = inner.changes()
        self._watch.forward(lambda _: self._age())
        admission.listen(self._age)

    async def list_skills(self, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE) -> Page[SkillEntry]:
        """One page of what is admitted."""
        await self._renew(cursor)
        return page_of("skills", self._keys, self._listing.__getitem__, cursor, limit)

    async def get_skill(self, uri: str) -> SkillEntry:
        """One entry, if it is admitted."""
        try:
            entry = await self.inner.get_skill(uri)
        except NotFoundError as error:
            raise no_skill(uri) from error
        if not await self.admission.admits_by_now(entry):
            raise no_skill(uri)
        self._note(entry)
        return entry

    async def peek_skill(self, uri: str) -> SkillEntry | None:
        """One entry as it is known, if it is admitted."""
        entry = await self.inner.peek_skill(uri)
        return entry if entry is not None and self.admission.admits(entry) else None

    async def read_file(self, uri: str) -> SkillFile:
        """One file of an admitted skill, exactly as that was approved."""
        place = parse_uri(uri)
        entry, is_known = await self._around(place.parent)
        if is_known and (entry is None or _is_unlisted(entry, uri)):
            raise no_file(uri)
        try:
            file = await self.inner.read_file(uri)  # of an unknown skill this says why it is unknown
        except NotFoundError as error:
            raise no_file(uri) from error
        if entry is None:
            raise no_file(uri)
        if self.admission.is_strict:
            await self._check(entry, file, uri)
        self._note(entry)
        return file._replace(meta=entry.meta.meta)

    async def read_directory(
        self, uri: str, cursor: str | None = None, limit: int = DEFAULT_PAGE_SIZE
    ) -> Page[DirectoryChild]:
        """One page of a directory of an admitted skill."""
        place = parse_uri(uri)
        entry, is_known = await self._around(place)
        if is_known and entry is None:
            raise no_directory(uri)
        if entry is None or not self.admission.is_strict:
            try:
                return await self.inner.read_directory(uri, cursor, limit)
            except NotFoundError as error:
                raise no_directory(uri) from error
        children = children_in(entry, place)
        if not children:
            raise no_directory(uri)
        return page_of(f"directory {place.path}", sorted(children), lambda name: children[name], cursor, limit)

    async def is_local(self, uri: str) -> bool:
        """As it is inside, if the skill is admitted."""
        return await self.peek_skill(uri) is not None and await self.inner.is_local(uri)

    async def ready_archive(self, uri: str) -> ReadyArchive | None:
        """The archive that an admitted skill came in."""
        return await self.inner.ready_archive(uri) if await self.peek_skill(uri) is not None else None

    async def suggest(self, beginning: str, limit: int = DEFAULT_PAGE_SIZE) -> Sequence[str]:
        """Paths of admitted skills that begin with ``beginning``."""
        await self._renew(None)
        return beginning_with(sorted(root_of(key).path for key in self._keys), beginning, limit)

    async def unchanged(self, uri: str | None = None) -> Callable[[], bool] | None:
        """As it is inside, as long as the same is admitted. Whoever asks serves it again: that is noted too."""
        is_same = await self.inner.unchanged(uri)
        if is_same is None:
            return None
        if uri is None:
            await self._renew(None)
            decided = self._decided
            return lambda: is_same() and self._decided is decided and not self._is_old
        entry, _ = await self._around(parse_uri(uri).parent)
        if entry is None:
            return None
        generation = self.admission.generation  # another yes may bring a skill nearer to the file
        return lambda: is_same() and self.admission.generation == generation and self._note(entry)

    def changes(self) -> ChangeStream:
        """What comes, changes and goes of what is admitted; while ``follow`` runs."""
        return self._feed.subscribe()

    async def problems(self) -> Sequence[Diagnostic]:
        """The problems of the catalog inside, and what waits for a yes."""
        await self._renew(None)
        return [*await self.inner.problems(), *self.admission.waiting_problems(self._waiting)]

    async def problems_for_operator(self) -> Sequence[Diagnostic]:
        """The same, with commands that can be run as they are: they say where files of this machine are."""
        await self._renew(None)
        waiting = self.admission.waiting_problems(self._waiting, for_operator=True)
        return [*await self.inner.problems(), *waiting]

    async def ignored(self) -> Sequence[str]:
        """What the catalog inside left out because of its name."""
        return await self.inner.ignored()

    async def follow(self) -> None:
        """Follow the catalog inside, and tell what that means for what is admitted."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.inner.follow)
            group.start_soon(self._complete)
            while True:
                await self._renew(None)
                await self._wake.wait()

    async def waiting(self) -> Sequence[SkillEntry]:
        """Skills that the policy allows and nobody said yes to."""
        await self._renew(None)
        return self._waiting

    async def waiting_around(self, uri: str) -> SkillEntry | None:
        """The innermost skill at or around ``uri`` if nothing but a yes is missing for it to be served."""
        for root in parse_uri(uri).upwards():
            entry = await self.inner.peek_skill(skill_md_uri(root.path, root.scheme))
            if entry is not None:
                is_missing = self.admission.is_waiting(entry) and not await self.admission.admits_by_now(entry)
                return entry if is_missing else None
        return None

    async def review(self, entry: SkillEntry) -> tuple[Review, str]:
        """The ``SKILL.md`` for a person who wants to see it before they say yes, and what is hidden in it (B6)."""
        data = (await self.inner.read_file(entry.uri)).data
        text = verify_skill(entry, data).text
        return await to_thread.run_sync(with_text, review_entry(entry), SKILL_MD, text), text

    def decided(self) -> anyio.Event:
        """Is set when it was decided again about everything that is listed."""
        return self._decided

    def _age(self) -> None:
        self._is_old = True
        self._wake.set()

    async def _renew(self, cursor: str | None) -> None:
        """Decide again about everything that is listed, if anything changed since."""
        if cursor is None:
            await self.inner.list_skills(None, 1)  # waits for a first listing, if that is on its way
        while self._is_old:
            async with self._lock:
                if not self._is_old:
                    return
                self._is_old, self._wake = False, anyio.Event()
                listed = [entry async for entry in self.inner.entries()]
                await self._decide(await self._completion.known(listed))

    async def _complete(self) -> None:
        while self.admission.is_strict:
            decided = self._decided
            await self._completion.ask(self._short)
            await decided.wait()

    async def _decide(self, entries: Sequence[SkillEntry]) -> None:
        admitted = {str(parse_uri(entry.uri)): entry for entry in entries if self.admission.admits(entry)}
        waiting, completion = [each for each in entries if self.admission.is_waiting(each)], self._completion
        self._short = tuple(each for each in waiting if completion.is_short(each))
        self._waiting = tuple(
            each for each in waiting if not completion.is_short(each) or completion.was_in_vain(each)
        )
        before, self._listing, self._keys = self._listing, admitted, sorted(admitted)
        self._feed.publish(_difference(before, admitted))
        self._decided.set()
        self._decided = anyio.Event()
        try:
            await self.admission.revoke_outdated(entries, self._completion.seen_at)
        except StoreError as error:
            log.warning("an approval of what changed is still in the store: %s", error.message)

    async def _around(self, place: SkillUri) -> tuple[SkillEntry | None, bool]:
        """The innermost admitted skill at or around ``place``, and whether any skill is known there."""
        is_known = False
        for root in place.upwards():
            entry = await self.inner.peek_skill(skill_md_uri(root.path, root.scheme))
            if entry is not None:
                is_known = True
                admitted = await self._completion.admitted(entry)
                if admitted is not None:
                    return admitted, True
        return None, is_known

    async def _check(self, entry: SkillEntry, file: SkillFile, uri: str) -> None:
        """V1, A2: what was read is what was approved. The skill may have changed while it was read."""
        try:
            verify_file(entry, uri, file.data)
        except VerificationError as error:
            self._age()
            raise no_file(uri) from error

    def _note(self, entry: SkillEntry) -> bool:
        if self._recorder is not None:
            self._recorder.note(self.admission.label, entry)
        return True


def _is_unlisted(entry: SkillEntry, uri: str) -> bool:
    return entry.is_complete and entry.resource(uri) is None


def _difference(before: Mapping[str, SkillEntry], now: Mapping[str, SkillEntry]) -> Change:
    return Change(
        frozenset(now[key].uri for key in now.keys() - before.keys()),
        frozenset(now[key].uri for key in now.keys() & before.keys() if now[key] != before[key]),
        frozenset(before[key].uri for key in before.keys() - now.keys()),
    )
