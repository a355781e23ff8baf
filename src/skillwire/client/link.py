"""The connection of a remote catalog to its server: it is opened, watched, and opened again when it is lost.

- ``ServerLink`` opens its connection itself, or uses a client that the caller opened. Only ``run`` reconnects.
- ``CircuitBreaker``: after several failures in a row no request is sent for a while, so that callers do not wait
  for a server that does not respond.
- ``SingleFlight``: callers that need the same thing at the same time share one request.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, TypeVar, cast

import anyio
from anyio import lowlevel

from skillwire.client.connect import connect
from skillwire.client.connection import pause_before
from skillwire.client.skills import SkillsClient
from skillwire.errors import SkillwireError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Hashable
    from contextlib import AbstractAsyncContextManager

    from skillwire.client.connect import ConnectTarget
    from skillwire.client.dialects import DialectName
    from skillwire.client.skills import Listing

T = TypeVar("T")
CircuitState: TypeAlias = Literal["closed", "open", "half-open"]

_MAX_ATTEMPTS = 16  # the pause is at its maximum by then
# Errors that mean that the server did not respond. Every other error is a response.
_NO_RESPONSE = ("connection-lost", "timed-out", "not-connected", "not-mcp", "not-allowed", "server-budget")
# Fewer than the 20 connections that our HTTP client keeps open: more would open a new one for each request.
_AT_ONCE = 16

log = logging.getLogger("skillwire.client")


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """The failures of one server, and whether to send it requests. Pure: each method returns the next state.

        closed       every request is sent
           │ ▲       after several failures in a row
           ▼ │
        open ──────► half-open: after a pause one request tests recovery; success closes the circuit, failure
           ▲            │        opens it again for longer
           └────────────┘

    A failure is a request without a response. An error from the server, or an invalid response, is a response.
    """

    failures: int = 0
    open_until: float = 0.0
    is_probing: bool = False
    tolerated: int = 3
    first_pause: float = 1.0
    longest_pause: float = 60.0

    def state(self, now: float) -> CircuitState:
        """The state of the circuit."""
        if self.failures < self.tolerated:
            return "closed"
        return "open" if now < self.open_until else "half-open"

    def allows(self, now: float) -> bool:
        """Whether a request may be sent. A half-open circuit allows one request."""
        state = self.state(now)
        return state == "closed" or (state == "half-open" and not self.is_probing)

    def started(self, now: float) -> CircuitBreaker:
        """A request was sent."""
        return replace(self, is_probing=True) if self.state(now) == "half-open" else self

    def failed(self, now: float) -> CircuitBreaker:
        """A request got no response."""
        failures = self.failures + 1
        over = failures - self.tolerated
        if over < 0:
            return replace(self, failures=failures)
        pause = min(self.longest_pause, self.first_pause * 2.0 ** min(over, 30))
        return replace(self, failures=failures, open_until=now + pause, is_probing=False)

    def succeeded(self) -> CircuitBreaker:
        """A request got a response."""
        return replace(self, failures=0, open_until=0.0, is_probing=False)

    def pause(self, now: float) -> float:
        """How long the circuit stays open."""
        return max(0.0, self.open_until - now) if self.state(now) == "open" else 0.0


class _Flight(Generic[T]):
    """A request in progress. ``outcome`` is the result in a tuple, or the error; ``None`` if it was cancelled."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope(shield=True)
        self.landed = anyio.Event()
        self.outcome: tuple[T] | Exception | None = None


class SingleFlight:
    """Requests in progress, by key. The first caller sends the request, and later callers wait for its result.

    If the first caller is cancelled, the request goes on for the others. The number of requests at once is
    bounded. Outside of ``running`` nothing is shared: each caller sends its own request.
    """

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[Any]] = {}
        self._slots = anyio.Semaphore(_AT_ONCE, fast_acquire=True)
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
            try:  # in the caller's task: a new task costs turns of the event loop
                with flight.scope:
                    async with self._slots:
                        flight.outcome = (await fetch(),)
            except Exception as error:  # every waiting caller gets it
                flight.outcome = error
            finally:
                flight.landed.set()
                self._flights.pop(key, None)
            await lowlevel.checkpoint_if_cancelled()
        else:
            await flight.landed.wait()
        if flight.outcome is None:
            raise UpstreamError("gateway-closed", "the server is shutting down", "try again later")
        if isinstance(flight.outcome, Exception):
            raise flight.outcome
        return flight.outcome[0]


class ServerLink:
    """The connection to one server. ``ask`` sends requests; ``run`` keeps the connection open and reports changes.

    ``source`` is a target for ``connect``, or an open client. With an open client ``ask`` works without ``run``,
    and the client reconnects by itself.
    """

    def __init__(
        self,
        label: str,
        source: ConnectTarget | SkillsClient,
        *,
        limits: Limits = DEFAULT_LIMITS,
        dialect: DialectName | None = None,
        max_skills: int | None = None,
        instructions: bool = False,
        poll_seconds: float = 60.0,
    ) -> None:
        self.label = label
        self.max_skills = max_skills
        self.is_given = isinstance(source, SkillsClient)  # the caller opened the client
        self.client = source if isinstance(source, SkillsClient) else None  # the connected client, if there is one
        self.flights = SingleFlight()
        self.circuit = CircuitBreaker(
            first_pause=limits.first_rest_seconds, longest_pause=limits.longest_rest_seconds
        )
        self._limits = limits
        self._target = source
        self._dialect: DialectName | None = dialect
        self._instructions = instructions  # whether skills in the server's instructions count as listed (I5)
        self._poll_seconds = poll_seconds
        self._has_news = anyio.Event()

    async def run(self, refresh: Callable[[], Awaitable[object]], lost: Callable[[SkillwireError], None]) -> None:
        """Connect, call ``refresh``, and again after each change; reconnect when the connection is lost.

        Callers share requests while this runs.
        """
        attempt, given = 0, self.client
        with self.flights.running():
            while True:
                try:
                    async with self._opened() as client:
                        self.client = client
                        await refresh()
                        attempt = 0  # not earlier: a server that connects and then fails must get a pause
                        self.circuit = self.circuit.succeeded()
                        await self._keep_current(client, refresh)
                except SkillwireError as error:
                    self._failed(error, lost)
                except Exception:
                    log.exception("unexpected error in the connection to %r", self.label)
                    self._failed(self.away(), lost)
                finally:
                    self.client = given
                pause = max(self._limits.relist_seconds, pause_before(attempt, self._limits))
                await anyio.sleep(max(pause, self.circuit.pause(time.monotonic())))
                attempt = min(attempt + 1, _MAX_ATTEMPTS)

    def refresh_soon(self) -> None:
        """Refresh the listing soon: something may have changed."""
        self._has_news.set()

    async def list(self) -> Listing:
        """The current listing, up to an error. If there is no entry before the error, it is raised."""
        client = self._connected()
        client.connection.meter.start_over()
        listing = await client.collect(self.label, self.max_skills)
        if listing.error is not None and not listing.entries and listing.error.rule != "B3":
            raise listing.error
        return listing

    async def ask(self, question: Callable[[SkillsClient], Awaitable[T]]) -> T:
        """Call ``question`` with the client and return its result; an error while the circuit is open."""
        now = time.monotonic()
        if not self.is_given and not self.circuit.allows(now):
            raise self.away()
        client = self._connected()
        client.connection.meter.start_over()
        self.circuit = self.circuit.started(now)
        try:
            answer = await question(client)
        except SkillwireError as error:
            self._record(responded=error.reference not in _NO_RESPONSE)
            raise
        except BaseException:  # cancelled, or a defect: a half-open circuit must become free again
            self._record(responded=False)
            raise
        self._record(responded=True)
        return answer

    def away(self) -> UpstreamError:
        """The error for a server that is not connected, or has not responded for a while."""
        name = f"the server {self.label!r}" if self.label else "the server"
        return UpstreamError(
            "server-away",
            f"{name} cannot be reached now",
            "try again later; what is in the cache can be used without it",
            rule="C1",
        )

    def _opened(self) -> AbstractAsyncContextManager[SkillsClient]:
        if isinstance(self._target, SkillsClient):
            return nullcontext(self._target)
        return connect(self._target, limits=self._limits, dialect=self._dialect, instructions=self._instructions)

    def _connected(self) -> SkillsClient:
        if self.client is None:
            raise self.away()
        return self.client

    def _record(self, *, responded: bool) -> None:
        self.circuit = self.circuit.succeeded() if responded else self.circuit.failed(time.monotonic())
        if not responded:
            self.refresh_soon()

    def _failed(self, error: SkillwireError, lost: Callable[[SkillwireError], None]) -> None:
        log.info("server %r cannot be reached: %s [%s]", self.label, error.message, error.reference)
        self.circuit = self.circuit.failed(time.monotonic())
        lost(error)

    async def _keep_current(self, client: SkillsClient, refresh: Callable[[], Awaitable[object]]) -> None:
        """Call ``refresh`` after each change, and every ``poll_seconds``, until it fails."""
        error: SkillwireError | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._listen, client)
            while error is None:
                with anyio.move_on_after(self._poll_seconds):
                    await self._has_news.wait()
                self._has_news = anyio.Event()
                try:
                    await refresh()
                except SkillwireError as raised:  # raised below as itself, not in a group
                    error = raised
            group.cancel_scope.cancel()
        if error is not None:
            raise error

    async def _listen(self, client: SkillsClient) -> None:
        """Listen for changes. A separate task, since a server may never respond to the request to listen."""
        attempt = 0
        while True:
            try:
                async with client.connection.listening() as wait:
                    while True:
                        self._has_news.set()  # at first too: there may have been a change before we listened
                        await wait(inf)
                        attempt = 0
            except SkillwireError:
                self._has_news.set()
                attempt = min(attempt + 1, _MAX_ATTEMPTS)
                await anyio.sleep(max(self._limits.relist_seconds, pause_before(attempt, self._limits)))
