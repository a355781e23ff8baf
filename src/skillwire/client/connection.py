"""One server for as long as it takes: a session that is opened, used, lost and opened again.

Every call to a server goes through ``Connection.request``: it has a time limit (B4), its failures become ours here
and nowhere else, and a connection of our own that breaks is opened anew, with growing pauses, before the call is
made again. All calls of this package read; making one twice does no harm.

The SDK's client must be entered and left by one task, so a connection of our own lives in a task that does nothing
else. Cancelling a call cancels it at the server; leaving the ``async with`` block ends the connection.
"""

from __future__ import annotations

import random
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
from mcp import Client, ClientSession, MCPError
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp_types import Request
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import RootModel

from skillwire.client.failures import CONNECTING, Translated, as_ours
from skillwire.client.http import too_slow
from skillwire.client.meter import Meter
from skillwire.client.shapes import as_object
from skillwire.errors import NotFoundError, SkillwireError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.wire.extension import DIRECTORY_READ
from skillwire.wire.native import ACTIVATION_INVALID

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import TaskStatus
    from mcp.client.subscriptions import Subscription
    from mcp_types import ServerCapabilities

    OpenClient = Callable[["OwnConnection"], Client]

_GOODBYE_SECONDS = 10.0


class _Answer(RootModel[dict[str, Any]]):
    """Whatever the server said, with nothing dropped and nothing interpreted."""


class Connection:
    """A server to ask. ``session`` is the SDK's, given by the caller or opened by ``open_connection``."""

    def __init__(self, session: ClientSession | None, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.meter = Meter(limits)
        self.carried: dict[str, Any] = {}  # `_meta` of every request of the stateless era, until it is refused
        self._session = session
        self._heard = anyio.Event()  # the server said that something changed
        self._asking = 0  # calls that wait for an answer

    @property
    def session(self) -> ClientSession:
        """The SDK's session."""
        if self._session is None:
            raise closed()
        return self._session

    @property
    def capabilities(self) -> ServerCapabilities | None:
        """What the server declared."""
        return self.session.server_capabilities

    @property
    def instructions(self) -> str | None:
        """What the server says to the model."""
        return self.session.instructions

    @property
    def is_modern(self) -> bool:
        """Whether the stateless era is spoken."""
        return self.session.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The server's answer, or one of our errors: ``NotFoundError`` for what it does not know (-32602)."""
        return await self._ask(method, params)

    async def discover(self) -> dict[str, Any]:
        """Stateless era: everything that the server declares, those capabilities included that the SDK drops."""
        with self._translated("server/discover"), anyio.fail_after(self.limits.max_call_seconds):
            return await self.session.send_discover(str(self.session.protocol_version))

    def hear(self) -> None:
        """The server said that its skills or resources changed."""
        self._heard.set()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Callable[[float], Awaitable[None]]]:
        """Inside the block, call what it gives to wait until something changed, or for so many seconds.

        A server that reports changes all the time is heard once in ``relist_seconds`` (B4).
        """
        async with AsyncExitStack() as stack:
            subscription: Subscription | None = None
            if self.is_modern:
                with suppress(
                    MCPError, RuntimeError, TimeoutError
                ):  # a server that does not tell is asked instead
                    opened = await stack.enter_async_context(listen(self.session, resources_list_changed=True))
                    if (
                        opened.honored.resources_list_changed
                    ):  # else it agreed to tell nothing, and may end at once
                        subscription = opened

            last = anyio.current_time()

            async def wait(seconds: float) -> None:
                nonlocal last
                with anyio.move_on_after(seconds) as waiting:
                    if subscription is None:
                        await self._heard.wait()
                    else:
                        await _next_event(subscription)
                if not waiting.cancelled_caught:
                    await anyio.sleep_until(last + self.limits.relist_seconds)
                last, self._heard = anyio.current_time(), anyio.Event()

            yield wait

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self.carried and self.is_modern:
            params = {**params, "_meta": dict(self.carried)}
        if not self._asking:
            self.meter.take_failure()  # of an answer that nobody waits for any more
        self._asking += 1
        try:
            with (
                self._translated(method),
                anyio.fail_after(self.limits.max_call_seconds),
                self.meter.expecting(_largest_answer(method, self.limits)),
            ):
                request = Request[dict[str, Any], str](method=method, params=params)
                return (await self.session.send_request(request, _Answer)).root
        except NotFoundError as error:
            if _refuses_what_is_carried(error):
                self.carried.clear()
            raise
        finally:
            self._asking -= 1

    def _translated(self, method: str) -> Translated:
        return Translated(self.meter, method)


class OwnConnection(Connection):
    """A connection that ``open_client`` makes, and makes again when it is lost."""

    def __init__(self, open_client: OpenClient, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(None, limits)
        self._open_client = open_client
        self._lost = anyio.Event()  # somebody noticed; set to have the task open another
        self._ready = anyio.Event()  # another was opened, or could not be
        self._reopening = False  # one of many who noticed has asked, and waits with the others
        self._closing = False
        self._failure: SkillwireError | None = None
        self.opened = 0

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The server's answer; a connection that broke is opened again first."""
        opened, attempt = self.opened, 0
        while True:
            try:
                if attempt:
                    await self._reopened(opened)
                    opened = self.opened
                return await self._ask(method, params)
            except UpstreamError as error:
                attempt += 1
                if error.reference != "connection-lost" or attempt >= self.limits.max_connect_attempts:
                    raise
            await anyio.sleep(pause_before(attempt, self.limits))

    async def _reopened(self, seen: int) -> None:
        """Wait for a connection newer than the one that broke; many may notice, one asks."""
        if self.opened == seen and not self._reopening and not self._closing:
            self._reopening = True
            self._ready = anyio.Event()
            self._lost.set()
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Hold connections, one after another, until closed. The first one that fails fails the opening."""
        try:
            while not self._closing:
                await self._hold_one(task_status if not self.opened else None)
        finally:
            self._session, self._failure = None, closed()
            self._answer_waiting()

    async def _hold_one(self, task_status: TaskStatus[None] | None) -> None:
        self._lost = anyio.Event()
        before = self.opened
        try:
            await self._hold(task_status)
        except Exception as error:  # whatever transports raise: it becomes ours, once, here
            if not self.opened:
                raise self._why(error) from error
            if self.opened == before:  # whoever waits for it learns why there is none
                self._failure = self._why(error)
                self._answer_waiting()
            await self._lost.wait()  # until somebody asks again

    def _answer_waiting(self) -> None:
        self._reopening = False
        self._ready.set()

    async def _hold(self, task_status: TaskStatus[None] | None) -> None:
        with anyio.CancelScope() as opening:
            opening.deadline = anyio.current_time() + self.limits.max_call_seconds
            async with self._open_client(self) as client:
                opening.deadline = float("inf")
                self._session, self._failure = client.session, None
                self.opened += 1
                self._answer_waiting()
                if task_status is not None:
                    task_status.started()
                await self._lost.wait()
        if opening.cancelled_caught:
            raise too_slow(self.limits.max_call_seconds)

    def close(self) -> None:
        """Let the task end its connection."""
        self._closing = True
        self._lost.set()

    def _why(self, error: Exception) -> SkillwireError:
        return as_ours(_innermost(error), self.meter, CONNECTING)


@asynccontextmanager
async def open_connection(
    open_client: OpenClient, limits: Limits = DEFAULT_LIMITS
) -> AsyncGenerator[OwnConnection]:
    """A connection that stays open, or opens again, while the block runs."""
    connection = OwnConnection(open_client, limits)
    error: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            await group.start(connection.run)
            try:
                yield connection
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as raised:  # the block's own, to be raised as itself and not as a group
                error = raised
            finally:
                connection.close()
                group.cancel_scope.deadline = anyio.current_time() + _GOODBYE_SECONDS
    except ExceptionGroup as failed:
        if error is None:
            raise _innermost(failed) from failed
    if error is not None:
        raise error


async def _next_event(subscription: Subscription) -> None:
    try:
        await anext(subscription)
    except (StopAsyncIteration, SubscriptionLost) as error:
        raise UpstreamError("connection-lost", "the server ended its stream of changes") from error


def _refuses_what_is_carried(error: NotFoundError) -> bool:
    """M3: a token that has expired spoils every request; without it, the next one is answered."""
    said = error.__cause__
    data = as_object(said.error.data) if isinstance(said, MCPError) else {}
    return data.get("reference") == ACTIVATION_INVALID


def _largest_answer(method: str, limits: Limits) -> int:
    """B1: a page of a listing is small; other answers may hold a file."""
    is_listing = method.endswith("/list") or method == DIRECTORY_READ
    return limits.max_page_bytes if is_listing else limits.max_message_bytes


def closed() -> UpstreamError:
    """There is no connection any more."""
    return UpstreamError("not-connected", "the connection is closed", "ask inside the 'async with' block")


def pause_before(attempt: int, limits: Limits) -> float:
    """Seconds before the next attempt: doubling, bounded, and random so that clients do not return all at once."""
    seconds = min(limits.longest_retry_seconds, limits.first_retry_seconds * 2 ** min(attempt, 10))
    return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def _innermost(error: Exception) -> Exception:
    """The first exception that is no group."""
    return (
        _innermost(cast("ExceptionGroup[Exception]", error).exceptions[0])
        if isinstance(error, ExceptionGroup)
        else error
    )
