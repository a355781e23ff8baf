"""What changed in a catalog, told to whoever listens (S1).

A listener that is slow does not make anybody wait and does not pile up events: what it has not taken yet is
merged into one. It must be used from the event loop that publishes.
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
    """URIs of the ``SKILL.md`` files of skills that came, changed or went."""

    added: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)

    @property
    def uris(self) -> frozenset[str]:
        """Everything that is no longer as it was."""
        return self.added | self.changed | self.removed

    def then(self, later: Change) -> Change:
        """Both, as if they had been one: added and then removed is nothing, removed and then added a change."""
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
        self.told = 0  # how often something was published

    def subscribe(self) -> ChangeStream:
        """A stream that hears everything published from now on."""
        stream = ChangeStream(self)
        self._streams.append(stream)
        return stream

    def publish(self, change: Change) -> None:
        """Tell every stream."""
        self.told += 1
        if change:
            for stream in tuple(self._streams):
                stream.push(change)

    def drop(self, stream: ChangeStream) -> None:
        """Forget a stream that was closed."""
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
        """From now on hand every change to ``sink`` at once instead of keeping it.

        That something changed is all that it tells: its URIs may be those of a source, and not visible at all.
        """
        self._sink = sink

    def push(self, change: Change) -> None:
        """Add to what the listener has not taken yet."""
        if not change:
            return
        if self._sink is not None:
            self._sink(change)
            return
        self._pending = self._pending.then(change)
        self._wake.set()

    async def pending(self) -> Change:
        """What changed since it was last taken, or nothing. Never waits for a change."""
        change, self._pending = self._pending, Change()
        return change

    def close(self) -> None:
        """Stop listening; an iteration under way ends."""
        self._closed = True
        self._feed.drop(self)
        self._wake.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while True:
            self._wake = anyio.Event()  # before looking: what comes while we look is not missed
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
