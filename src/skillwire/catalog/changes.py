"""Changes of a catalog, and the streams that deliver them to subscribers (S1).

A slow subscriber does not block the publisher and does not accumulate events: pending changes are merged into one.
A stream must be used in the event loop of its publisher.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


@dataclass(frozen=True, slots=True)
class Change:
    """The URIs of the ``SKILL.md`` files of skills that were added, changed or removed."""

    added: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    @property
    def uris(self) -> frozenset[str]:
        """The URIs of all affected skills."""
        return self.added | self.changed | self.removed

    def then(self, later: Change) -> Change:
        """Both changes merged. Added then removed is nothing; removed then added is a change."""
        returned = self.removed & later.added
        vanished = self.added & later.removed
        added = (self.added | later.added) - returned - vanished
        removed = (self.removed | later.removed) - returned - vanished
        changed = (self.changed | later.changed | returned) - added - removed - vanished
        return Change(added, changed, removed)


class ChangeFeed:
    """Publishes changes to any number of streams."""

    def __init__(self) -> None:
        self._streams: list[ChangeStream] = []
        self.published = 0  # number of calls of ``publish``

    def subscribe(self) -> ChangeStream:
        """A stream of all changes from now on."""
        stream = ChangeStream(self)
        self._streams.append(stream)
        return stream

    def publish(self, change: Change) -> None:
        """Send ``change`` to every stream."""
        self.published += 1
        if change:
            for stream in tuple(self._streams):
                stream.push(change)

    def drop(self, stream: ChangeStream) -> None:
        """Remove a closed stream."""
        with suppress(ValueError):
            self._streams.remove(stream)


class ChangeStream:
    """An async iterator of changes that ends when it is closed."""

    def __init__(self, feed: ChangeFeed) -> None:
        self._feed = feed
        self._pending = Change()
        self._wake = anyio.Event()
        self._closed = False
        self._sink: Callable[[Change], None] | None = None

    def forward(self, sink: Callable[[Change], None]) -> None:
        """Call ``sink`` with every further change immediately, instead of storing it.

        Use it only as a signal that something changed: the URIs may belong to a source and not be visible.
        """
        self._sink = sink

    def push(self, change: Change) -> None:
        """Merge ``change`` into the pending change, or forward it."""
        if not change:
            return
        if self._sink is not None:
            self._sink(change)
            return
        self._pending = self._pending.then(change)
        self._wake.set()

    async def pending(self) -> Change:
        """Take the pending change, which may be empty. Does not wait."""
        change, self._pending = self._pending, Change()
        return change

    def close(self) -> None:
        """Unsubscribe. A running iteration ends."""
        self._closed = True
        self._feed.drop(self)
        self._wake.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while True:
            self._wake = anyio.Event()  # before ``pending``, so that no change in between is missed
            change = await self.pending()
            if change:
                return change
            if self._closed:
                raise StopAsyncIteration
            await self._wake.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
