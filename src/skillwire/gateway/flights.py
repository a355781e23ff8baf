"""One fetch for everybody who waits for the same thing.

Whoever asks first starts it; whoever asks meanwhile waits for the same answer. The fetch belongs to nobody who
waits: a client that hangs up takes nothing away from the others. How many run at once is bounded.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import anyio

from skillwire.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable

    from anyio.abc import TaskGroup

T = TypeVar("T")

_AT_ONCE = 16  # fewer than the connections that our HTTP client keeps (20): more would be opened for each fetch


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = anyio.Event()
        self.error: Exception | None = _closed()
        self.answer: T | None = None


class Flights:
    """Fetches that are under way, by what they fetch. They run while ``running`` does."""

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._under_way: dict[Hashable, _Flight[Any]] = {}
        self._group: TaskGroup | None = None
        self._at_once = at_once

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """As long as the block runs there are fetches; those that are under way at its end are given up."""
        async with anyio.create_task_group() as group:
            self._group, self._room = group, anyio.Semaphore(self._at_once)
            try:
                yield
            finally:
                self._group = None
                group.cancel_scope.cancel()

    async def share(
        self, key: Hashable, fetch: Callable[[], Awaitable[T]], then: Callable[[T], Awaitable[None]] | None = None
    ) -> T:
        """What ``fetch`` returns or raises, for everybody who asks for ``key`` until ``then`` is done with it."""
        flight = cast("_Flight[T] | None", self._under_way.get(key))
        if flight is None:
            if self._group is None:
                raise _closed()
            flight = self._under_way[key] = _Flight[T]()
            self._group.start_soon(self._fly, key, flight, fetch, then)
        await flight.landed.wait()
        if flight.error is not None:
            raise flight.error
        return cast("T", flight.answer)

    async def _fly(
        self,
        key: Hashable,
        flight: _Flight[T],
        fetch: Callable[[], Awaitable[T]],
        then: Callable[[T], Awaitable[None]] | None,
    ) -> None:
        try:
            async with self._room:
                answer = await fetch()
            flight.answer, flight.error = answer, None
            flight.landed.set()
            if then is not None:
                await then(answer)
        except Exception as error:  # whatever it is: those who wait are told, and the gateway goes on
            if not flight.landed.is_set():
                flight.error = error
        finally:
            self._under_way.pop(key, None)
            flight.landed.set()


def _closed() -> UpstreamError:
    return UpstreamError("gateway-closed", "the gateway is being stopped", "try again later")
