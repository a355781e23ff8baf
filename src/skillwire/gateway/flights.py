"""One fetch for everybody who waits for the same thing.

Whoever asks first fetches; whoever asks meanwhile waits for the same answer. A client that hangs up takes nothing
away from the others: its fetch goes on until it ends or the gateway does. How many run at once is bounded.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import anyio
from anyio import lowlevel

from skillwire.errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Hashable

T = TypeVar("T")

_AT_ONCE = 16  # fewer than the connections that our HTTP client keeps (20): more would be opened for each fetch


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.scope = anyio.CancelScope(shield=True)
        self.landed = anyio.Event()
        self.error: Exception | None = _closed()
        self.answer: T | None = None


class Flights:
    """Fetches that are under way, by what they fetch. They run while ``running`` does."""

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._under_way: dict[Hashable, _Flight[Any]] = {}
        self._room = anyio.Semaphore(at_once, fast_acquire=True)
        self._is_running = False

    @contextmanager
    def running(self) -> Generator[None]:
        """As long as the block runs there are fetches; those that are under way at its end are given up."""
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False
            for flight in self._under_way.values():
                flight.scope.cancel()

    async def share(self, key: Hashable, fetch: Callable[[], Awaitable[T]]) -> T:
        """What ``fetch`` returns or raises, for everybody who asks for ``key`` meanwhile."""
        flight = cast("_Flight[T] | None", self._under_way.get(key))
        if flight is None:
            if not self._is_running:
                raise _closed()
            flight = self._under_way[key] = _Flight[T]()
            await self._fly(key, flight, fetch)  # here, not in a task: that would take turns of the loop
            await lowlevel.checkpoint_if_cancelled()
        else:
            await flight.landed.wait()
        if flight.error is not None:
            raise flight.error
        return cast("T", flight.answer)

    async def _fly(self, key: Hashable, flight: _Flight[T], fetch: Callable[[], Awaitable[T]]) -> None:
        try:
            with flight.scope:
                async with self._room:
                    flight.answer, flight.error = await fetch(), None
        except Exception as error:  # whatever it is: those who wait are told, and the gateway goes on
            flight.error = error
        finally:
            flight.landed.set()
            self._under_way.pop(key, None)


def _closed() -> UpstreamError:
    return UpstreamError("gateway-closed", "the gateway is being stopped", "try again later")
