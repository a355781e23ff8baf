"""One request for all callers that need the same thing at the same time.

The first caller sends the request, and later callers wait for its result. If the first caller is cancelled, the
request goes on for the others. The number of requests at once is bounded.
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

# Fewer than the 20 connections that our HTTP client keeps open: more would open a new one for each request.
_AT_ONCE = 16


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.scope = anyio.CancelScope(shield=True)
        self.landed = anyio.Event()
        self.error: Exception | None = _closed()
        self.result: T | None = None


class SingleFlight:
    """Requests in progress, by key. Outside of ``running`` nothing is shared: each caller sends its own."""

    def __init__(self, at_once: int = _AT_ONCE) -> None:
        self._flights: dict[Hashable, _Flight[Any]] = {}
        self._slots = anyio.Semaphore(at_once, fast_acquire=True)
        self._is_running = False

    @contextmanager
    def running(self) -> Generator[None]:
        """Share requests for the duration of the block. Its end cancels those in progress."""
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False
            for flight in self._flights.values():
                flight.scope.cancel()

    async def share(self, key: Hashable, fetch: Callable[[], Awaitable[T]]) -> T:
        """The result of ``fetch``, or its error, for every caller with the same ``key``."""
        flight = cast("_Flight[T] | None", self._flights.get(key))
        if flight is None:
            if not self._is_running:
                return await fetch()
            flight = self._flights[key] = _Flight[T]()
            await self._fly(key, flight, fetch)  # in the caller's task: a new task costs turns of the event loop
            await lowlevel.checkpoint_if_cancelled()
        else:
            await flight.landed.wait()
        if flight.error is not None:
            raise flight.error
        return cast("T", flight.result)

    async def _fly(self, key: Hashable, flight: _Flight[T], fetch: Callable[[], Awaitable[T]]) -> None:
        try:
            with flight.scope:
                async with self._slots:
                    flight.result, flight.error = await fetch(), None
        except Exception as error:  # every waiting caller gets it
            flight.error = error
        finally:
            flight.landed.set()
            self._flights.pop(key, None)


def _closed() -> UpstreamError:
    return UpstreamError("gateway-closed", "the server is shutting down", "try again later")
