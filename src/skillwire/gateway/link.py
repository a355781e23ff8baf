"""The connection to one upstream: opened, listed, listened to, and opened again when it is lost.

No failure of an upstream ends the gateway, and no caller waits for one that does not answer: after several
failures in a row the circuit opens (``client/circuit_breaker.py``). Error messages of an upstream may contain
addresses or the output of a process. They go to the operator's log, never to a client.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, TypeVar

import anyio

from skillwire.amounts import counted
from skillwire.client.circuit_breaker import CircuitBreaker
from skillwire.client.connection import pause_before
from skillwire.client.opening import connect
from skillwire.errors import (
    FormatError,
    LimitError,
    NotFoundError,
    SkillwireError,
    UpstreamError,
    VerificationError,
)
from skillwire.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillwire.client.dialects.contract import DialectName
    from skillwire.client.opening import ConnectTarget
    from skillwire.client.skills import SkillsClient
    from skillwire.skill import Diagnostic, SkillEntry

T = TypeVar("T")

POLL_SECONDS = 60.0
_MOST_ATTEMPTS = 16
# An upstream that says any of these gave no answer; whatever else it says is one.
_NO_ANSWER = ("connection-lost", "timed-out", "not-connected", "not-mcp", "not-allowed", "server-budget")
_PASSED = ("file-too-large", "directory-unsupported", "no-skills", "entry-other")

log = logging.getLogger("skillwire.gateway")


@dataclass(frozen=True, slots=True)
class Listed:
    """What an upstream lists now. ``error`` is why it is not all."""

    entries: tuple[SkillEntry, ...]
    problems: tuple[Diagnostic, ...]
    dialect: DialectName | None
    error: SkillwireError | None = None


class UpstreamLink:
    """``run`` keeps the line open; ``ask`` uses it."""

    def __init__(
        self,
        label: str,
        target: ConnectTarget,
        *,
        limits: Limits = DEFAULT_LIMITS,
        dialect: DialectName | None = None,
        max_skills: int | None = None,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self.label = label
        self.max_skills = max_skills
        self.breaker = CircuitBreaker(
            first_pause=limits.first_rest_seconds, longest_pause=limits.longest_rest_seconds
        )
        self._target = target
        self._limits = limits
        self._dialect: DialectName | None = dialect
        self._poll_seconds = poll_seconds
        self._client: SkillsClient | None = None
        self._news = anyio.Event()

    async def run(self, relist: Callable[[], Awaitable[None]], lost: Callable[[SkillwireError], None]) -> None:
        """Connect, have it listed, and again when something changed; begin anew when the line is lost."""
        attempt = 0
        while True:
            try:
                async with connect(self._target, limits=self._limits, dialect=self._dialect) as client:
                    self._client = client
                    await relist()
                    attempt = 0  # not before: one that connects and then fails would be asked without a pause
                    self.breaker = self.breaker.succeeded()
                    await self._keep_listed(client, relist)
            except SkillwireError as error:
                self._failed(error, lost)
            except Exception:
                log.exception("the line to upstream %r broke in a way that we do not know", self.label)
                self._failed(self.away(), lost)
            finally:
                self._client = None
            await anyio.sleep(max(pause_before(attempt, self._limits), self.breaker.pause(time.monotonic())))
            attempt = min(attempt + 1, _MOST_ATTEMPTS)

    def look_again(self) -> None:
        """Have it listed again soon: somebody has a reason to think that something changed."""
        self._news.set()

    async def list(self) -> Listed:
        """What the upstream lists now, as far as it comes; an error if nothing does."""
        client, entries = self._connected(), list["SkillEntry"]()
        error: SkillwireError | None = None
        try:
            async for entry in client.list_skills():
                if len(entries) == self.max_skills:
                    error = self._too_many()
                    break
                entries.append(entry)  # what came before an error counts
        except SkillwireError as raised:
            if not entries and raised.rule != "B3":
                raise
            error = raised
        return Listed(tuple(entries), tuple(client.problems), await client.dialect(), error)

    def _too_many(self) -> LimitError:
        return LimitError(
            "listing-too-long",
            f"{self.label!r} lists more than {counted(self.max_skills or 0, 'skill')}",
            f"raise max-skills of [upstream.{self.label}]",
            rule="B3",
        )

    async def ask(self, question: Callable[[SkillsClient], Awaitable[T]]) -> T:
        """The upstream's answer.

        ``NotFoundError`` and ``VerificationError`` are answers, and so is an entry that breaks a rule
        (``FormatError``, or ``entry-other``). For everything else the upstream is away.
        """
        now = time.monotonic()
        if not self.breaker.allows(now):
            raise self.away()
        client = self._connected()
        self.breaker = self.breaker.started(now)
        try:
            answer = await question(client)
        except SkillwireError as error:
            self._heard(is_answer=error.reference not in _NO_ANSWER)
            if isinstance(error, NotFoundError | VerificationError | FormatError) or error.reference in _PASSED:
                raise
            log.info("upstream %r: %s [%s]", self.label, error.message, error.reference)
            raise self.away() from error
        except BaseException:  # given up, or a mistake of ours: nobody else may ask instead of us otherwise
            self._heard(is_answer=False)
            raise
        self._heard(is_answer=True)
        return answer

    def _heard(self, *, is_answer: bool) -> None:
        self.breaker = self.breaker.succeeded() if is_answer else self.breaker.failed(time.monotonic())
        if not is_answer:
            self.look_again()

    def away(self) -> UpstreamError:
        """What a client is told of an upstream that does not answer."""
        return UpstreamError(
            "upstream-away",
            f"the server behind {self.label!r} does not answer now",
            "try again later; what was read before still comes from the cache",
        )

    def _connected(self) -> SkillsClient:
        if self._client is None:
            raise self.away()
        return self._client

    def _failed(self, error: SkillwireError, lost: Callable[[SkillwireError], None]) -> None:
        log.info("upstream %r is away: %s [%s]", self.label, error.message, error.reference)
        self.breaker = self.breaker.failed(time.monotonic())
        lost(error)

    async def _keep_listed(self, client: SkillsClient, relist: Callable[[], Awaitable[None]]) -> None:
        """List again when there is news, until that fails."""
        error: SkillwireError | None = None
        async with anyio.create_task_group() as group:
            group.start_soon(self._hear, client)
            while error is None:
                with anyio.move_on_after(self._poll_seconds):
                    await self._news.wait()
                self._news = anyio.Event()
                try:
                    await relist()
                except SkillwireError as raised:  # to be raised as itself, and not as a group
                    error = raised
            group.cancel_scope.cancel()
        if error is not None:
            raise error

    async def _hear(self, client: SkillsClient) -> None:
        """Listen for news. In a task of its own: a server may take the request to listen and never answer it."""
        attempt = 0
        while True:
            try:
                async with client.connection.listening() as wait:
                    while True:
                        self._news.set()  # also once at first: something may have changed before anybody listened
                        await wait(inf)
                        attempt = 0
            except SkillwireError:
                self._news.set()
                attempt = min(attempt + 1, _MOST_ATTEMPTS)
                await anyio.sleep(max(self._limits.relist_seconds, pause_before(attempt, self._limits)))
