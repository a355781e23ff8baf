"""The connection of a remote catalog to its server: it is opened, watched, and opened again when it is lost.

A ``ServerLink`` opens its connection itself, or uses a client that the caller opened. Only ``run`` reconnects.
After several failures in a row the circuit opens (``circuit_breaker.py``), so that callers do not wait for a
server that does not respond.
"""

from __future__ import annotations

import logging
import time
from contextlib import nullcontext
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, TypeVar

import anyio

from skillwire.amounts import counted
from skillwire.client.circuit_breaker import CircuitBreaker
from skillwire.client.connect import connect
from skillwire.client.connection import pause_before
from skillwire.client.skills import SkillsClient
from skillwire.errors import LimitError, SkillwireError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AbstractAsyncContextManager

    from skillwire.client.connect import ConnectTarget
    from skillwire.client.dialects.contract import DialectName
    from skillwire.skill import Diagnostic, SkillEntry

T = TypeVar("T")

_MAX_ATTEMPTS = 16  # the pause is at its maximum by then
# Errors that mean that the server did not respond. Every other error is a response.
_NO_RESPONSE = ("connection-lost", "timed-out", "not-connected", "not-mcp", "not-allowed", "server-budget")

log = logging.getLogger("skillwire.client")


@dataclass(frozen=True, slots=True)
class Listed:
    """A listing. If it is partial, ``error`` is the reason."""

    entries: tuple[SkillEntry, ...]
    problems: tuple[Diagnostic, ...]
    dialect: DialectName | None
    error: SkillwireError | None = None


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
        self.circuit = CircuitBreaker(
            first_pause=limits.first_rest_seconds, longest_pause=limits.longest_rest_seconds
        )
        self._limits = limits
        self._given = source if isinstance(source, SkillsClient) else None
        self._target = source
        self._dialect: DialectName | None = dialect
        self._client = self._given
        self._instructions = instructions  # whether skills in the server's instructions count as listed (I5)
        self._poll_seconds = poll_seconds
        self._has_news = anyio.Event()

    @property
    def is_given(self) -> bool:
        """Whether the caller opened the client."""
        return self._given is not None

    @property
    def client(self) -> SkillsClient | None:
        """The connected client, if there is one."""
        return self._client

    async def run(self, refresh: Callable[[], Awaitable[object]], lost: Callable[[SkillwireError], None]) -> None:
        """Connect, call ``refresh``, and again after each change; reconnect when the connection is lost."""
        attempt = 0
        while True:
            try:
                async with self._open() as client:
                    self._client = client
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
                self._client = self._given
            pause = max(self._limits.relist_seconds, pause_before(attempt, self._limits))
            await anyio.sleep(max(pause, self.circuit.pause(time.monotonic())))
            attempt = min(attempt + 1, _MAX_ATTEMPTS)

    def refresh_soon(self) -> None:
        """Refresh the listing soon: something may have changed."""
        self._has_news.set()

    async def list(self) -> Listed:
        """The current listing, up to an error. If there is no entry before the error, it is raised."""
        client, entries = self._connected(), list["SkillEntry"]()
        client.connection.meter.start_over()
        error: SkillwireError | None = None
        try:
            async for entry in client.list_skills():
                if len(entries) == self.max_skills:
                    error = self._too_many()
                    break
                entries.append(entry)
        except SkillwireError as raised:
            if not entries and raised.rule != "B3":
                raise
            error = raised
        return Listed(tuple(entries), tuple(client.problems), await client.dialect(), error)

    async def ask(self, question: Callable[[SkillsClient], Awaitable[T]]) -> T:
        """Call ``question`` with the client and return its result; an error while the circuit is open."""
        now = time.monotonic()
        if self._given is None and not self.circuit.allows(now):
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
        """The error for a server that does not respond."""
        name = f"the server {self.label!r}" if self.label else "the server"
        return UpstreamError("server-away", f"{name} does not respond", "try again later")

    def _open(self) -> AbstractAsyncContextManager[SkillsClient]:
        if isinstance(self._target, SkillsClient):
            return nullcontext(self._target)
        return connect(self._target, limits=self._limits, dialect=self._dialect, mine=self._instructions)

    def _connected(self) -> SkillsClient:
        if self._client is None:
            raise self.away()
        return self._client

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

    def _too_many(self) -> LimitError:
        return LimitError(
            "listing-too-long",
            f"{self.label!r} lists more than {counted(self.max_skills or 0, 'skill')}",
            f"raise max-skills of [upstream.{self.label}]",
            rule="B3",
        )
