"""A connection to one server, which is opened again when it is lost.

Every request goes through ``Connection.request``. It has a timeout (B4), and exceptions of the SDK and of the
transports become errors of this package (``as_ours``). An ``OwnConnection`` that breaks is opened again, with
growing pauses, and the request is sent again. All requests of this package only read, so sending one twice does no
harm.

The SDK's client must be entered and left by the same task, so an ``OwnConnection`` has a task for this alone.
Cancelling a request cancels it on the server. Leaving the ``async with`` block ends the connection.
"""

from __future__ import annotations

import random
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpx2
from mcp import Client, ClientSession, MCPError
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    Request,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import RootModel, ValidationError

from skillwire.client.bounds import Meter, as_object, as_text, too_slow
from skillwire.errors import NotFoundError, ProtocolError, SkillwireError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.wire.extension import DIRECTORY_READ, EXTENSION_ID
from skillwire.wire.native import ACTIVATION_INVALID

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from anyio.abc import TaskStatus
    from mcp.client.subscriptions import Subscription
    from mcp_types import ServerCapabilities

    OpenClient = Callable[["OwnConnection"], Client]

CONNECTING = "connecting"
"""Stands for the method in errors that are raised while a connection is opened."""
_CLOSE_SECONDS = 10.0
_RESOURCE_NOT_FOUND = -32002  # the code of older servers; newer ones use -32602
_FIX_SERVER = "the server must be fixed"
_REFUSED = {401: "requires authentication", 403: "denies access"}


class _Answer(RootModel[dict[str, Any]]):
    """Any JSON object: nothing is dropped or interpreted."""


class Connection:
    """A connection. ``session`` is the SDK's, given by the caller or opened by ``open_connection``."""

    def __init__(self, session: ClientSession | None, limits: Limits = DEFAULT_LIMITS) -> None:
        self.limits = limits
        self.meter = Meter(limits)
        self.carried: dict[str, Any] = {}  # `_meta` of every request in the stateless era
        self._session = session
        self._changed = anyio.Event()  # the server reported a change
        self._pending = 0  # requests that wait for a response

    @property
    def session(self) -> ClientSession:
        """The SDK's session."""
        if self._session is None:
            raise _closed()
        return self._session

    @property
    def capabilities(self) -> ServerCapabilities | None:
        """The capabilities that the server declared."""
        return self.session.server_capabilities

    @property
    def reads_directories(self) -> bool:
        """K2: whether ``resources/directory/read`` may be requested. Servers of the drafts may have it too."""
        declared = self.capabilities
        settings = (declared.extensions or {}).get(EXTENSION_ID) if declared else None
        return bool(settings and settings.get("directoryRead") is True)

    @property
    def instructions(self) -> str | None:
        """The server's instructions for the model."""
        return self.session.instructions

    @property
    def is_modern(self) -> bool:
        """Whether the connection uses a stateless version of the protocol."""
        return self.session.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the result; ``NotFoundError`` if the server does not know it (-32602)."""
        return await self._send(method, params)

    def notify_change(self) -> None:
        """Wake up ``listening``: the server reported that its skills or resources changed."""
        self._changed.set()

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[Callable[[float], Awaitable[None]]]:
        """Listen for changes. The block gets a function that waits for a change, at most so many seconds.

        If a server reports changes all the time, the function returns once in ``relist_seconds`` (B4).
        """
        async with AsyncExitStack() as stack:
            subscription: Subscription | None = None
            if self.is_modern:
                # A server without subscriptions is polled.
                with suppress(MCPError, RuntimeError, TimeoutError):
                    opened = await stack.enter_async_context(listen(self.session, resources_list_changed=True))
                    # Without this the server reports nothing, and may end the stream immediately.
                    if opened.honored.resources_list_changed:
                        subscription = opened

            last = anyio.current_time()

            async def wait(seconds: float) -> None:
                nonlocal last
                with anyio.move_on_after(seconds) as waiting:
                    if subscription is None:
                        await self._changed.wait()
                    else:
                        await _next_event(subscription)
                if not waiting.cancelled_caught:
                    await anyio.sleep_until(last + self.limits.relist_seconds)
                last, self._changed = anyio.current_time(), anyio.Event()

            yield wait

    async def _send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self.carried and self.is_modern:
            params = {**params, "_meta": dict(self.carried)}
        if not self._pending:
            self.meter.take_failure()  # it belongs to an earlier request that was cancelled
        self._pending += 1
        # B1: a page of a listing is small; other responses may contain a file.
        is_listing = method.endswith("/list") or method == DIRECTORY_READ
        at_most = self.limits.max_page_bytes if is_listing else self.limits.max_message_bytes
        try:
            with anyio.fail_after(self.limits.max_call_seconds), self.meter.expecting(at_most):
                request = Request[dict[str, Any], str](method=method, params=params)
                return (await self.session.send_request(request, _Answer)).root
        except SkillwireError:
            raise
        except Exception as error:  # the SDK and the transports raise many kinds
            if isinstance(error, MCPError) and as_object(error.error.data).get("reference") == ACTIVATION_INVALID:
                self.carried.clear()  # M3: a server refuses every request with an expired token
            raise as_ours(error, self.meter, method) from error
        finally:
            self._pending -= 1


class OwnConnection(Connection):
    """A connection that is opened with ``open_client``, and opened again when it is lost."""

    def __init__(self, open_client: OpenClient, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__(None, limits)
        self._open_client = open_client
        self._lost = anyio.Event()  # set by a request that failed: the task opens another connection
        self._ready = anyio.Event()  # another connection was opened, or could not be opened
        self._reopening = False  # a request has asked the task for another connection
        self._closing = False
        self._failure: SkillwireError | None = None
        self.opened = 0

    async def request(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return the result. If the connection is lost, open it again and retry."""
        opened, attempt = self.opened, 0
        while True:
            try:
                if attempt:
                    await self._reopened(opened)
                    opened = self.opened
                return await self._send(method, params)
            except UpstreamError as error:
                attempt += 1
                if error.reference != "connection-lost" or attempt >= self.limits.max_connect_attempts:
                    raise
            await anyio.sleep(pause_before(attempt, self.limits))

    async def _reopened(self, seen: int) -> None:
        """Wait for a newer connection than ``seen``. Only the first of several callers starts opening it."""
        if self.opened == seen and not self._reopening and not self._closing:
            self._reopening = True
            self._ready = anyio.Event()
            self._lost.set()
        await self._ready.wait()
        if self._failure is not None:
            raise self._failure

    async def run(self, *, task_status: TaskStatus[None]) -> None:
        """Open connections, one after another, until closed. If the first one fails, raise its error."""
        try:
            while not self._closing:
                await self._hold_one(task_status if not self.opened else None)
        finally:
            self._session, self._failure = None, _closed()
            self._wake_waiting()

    async def _hold_one(self, task_status: TaskStatus[None] | None) -> None:
        self._lost = anyio.Event()
        before = self.opened
        try:
            await self._hold(task_status)
        except Exception as error:  # transports raise many kinds
            if not self.opened:
                raise self._translate(error) from error
            if self.opened == before:  # it could not be opened, so the waiting requests fail
                self._failure = self._translate(error)
                self._wake_waiting()
            await self._lost.wait()  # the next request tries again

    def _wake_waiting(self) -> None:
        self._reopening = False
        self._ready.set()

    async def _hold(self, task_status: TaskStatus[None] | None) -> None:
        with anyio.CancelScope() as opening:
            opening.deadline = anyio.current_time() + self.limits.max_call_seconds
            async with self._open_client(self) as client:
                opening.deadline = float("inf")
                self._session, self._failure = client.session, None
                self.opened += 1
                self._wake_waiting()
                if task_status is not None:
                    task_status.started()
                await self._lost.wait()
        if opening.cancelled_caught:
            raise too_slow(self.limits.max_call_seconds)

    def close(self) -> None:
        """Make the task end its connection."""
        self._closing = True
        self._lost.set()

    def _translate(self, error: Exception) -> SkillwireError:
        return as_ours(_innermost(error), self.meter, CONNECTING)


@asynccontextmanager
async def open_connection(
    open_client: OpenClient, limits: Limits = DEFAULT_LIMITS
) -> AsyncGenerator[OwnConnection]:
    """Open a connection for the duration of the block."""
    connection = OwnConnection(open_client, limits)
    error: BaseException | None = None
    try:
        async with anyio.create_task_group() as group:
            await group.start(connection.run)
            try:
                yield connection
            except anyio.get_cancelled_exc_class():
                raise
            except BaseException as raised:  # an error of the block: raised below as itself, not in a group
                error = raised
            finally:
                connection.close()
                group.cancel_scope.deadline = anyio.current_time() + _CLOSE_SECONDS
    except ExceptionGroup as failed:
        if error is None:
            raise _innermost(failed) from failed
    if error is not None:
        raise error


async def _next_event(subscription: Subscription) -> None:
    try:
        await anext(subscription)
    except (StopAsyncIteration, SubscriptionLost) as error:
        raise UpstreamError("connection-lost", "the server ended the stream of changes") from error


def _closed() -> UpstreamError:
    return UpstreamError(
        "not-connected", "the connection is closed", "send requests inside the 'async with' block"
    )


def pause_before(attempt: int, limits: Limits) -> float:
    """Seconds before the next attempt: doubling, bounded, and random so that clients do not retry together."""
    seconds = min(limits.longest_retry_seconds, limits.first_retry_seconds * 2 ** min(attempt, 10))
    return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def _innermost(error: Exception) -> Exception:
    """The first exception that is not a group."""
    return (
        _innermost(cast("ExceptionGroup[Exception]", error).exceptions[0])
        if isinstance(error, ExceptionGroup)
        else error
    )


def as_ours(error: Exception, meter: Meter, method: str) -> SkillwireError:
    """The error of this package for an exception raised while ``method`` was requested."""
    match error:
        case SkillwireError():
            return error
        case MCPError():
            return _from_rpc(error, meter, method)
        case TimeoutError():
            return too_slow(meter.limits.max_call_seconds)
        case ValidationError():
            return ProtocolError(
                "answer-invalid", f"the response to {method} does not follow the protocol", _FIX_SERVER
            )
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol():
            return ProtocolError("url-invalid", "the URL cannot be used with HTTP", side="local")
        case RuntimeError() if "protocol version" in str(error):  # raised by the SDK if there is no common version
            return UpstreamError(
                "not-mcp", f"client and server have no common MCP version: {error!s:.200}", "update the older one"
            )
        case _:  # connection refused or reset, name not resolved, process ended
            return meter.take_failure() or _lost(meter, _described(error), method)


def _from_rpc(error: MCPError, meter: Meter, method: str) -> SkillwireError:
    text = _quoted(error.message)
    if error.code in (CONNECTION_CLOSED, PARSE_ERROR):
        failure = meter.take_failure()
        if failure is not None:
            return failure
    if meter.status in _REFUSED:
        return UpstreamError(
            "not-allowed",
            f"the server {_REFUSED[meter.status]} (HTTP {meter.status})",
            "send the header that the server expects, such as 'Authorization: Bearer …'",
        )
    if error.code == CONNECTION_CLOSED or (error.code == INVALID_REQUEST and "Session terminated" in text):
        return _lost(meter, text, method)
    status = f"HTTP {meter.status}" if meter.status and meter.status >= 400 else f"{error.code}"
    if method == CONNECTING and meter.status is not None and meter.status >= 500:
        return UpstreamError(
            "server-failed", f"the server failed: {text} ({status})", "look at the log of the server, or try again"
        )
    if method == CONNECTING:
        return UpstreamError(
            "not-mcp", f"the server does not speak MCP: {text} ({status})", "check the URL; the path is often /mcp"
        )
    return _from_code(error, text, method, status)


def _from_code(error: MCPError, text: str, method: str, status: str) -> SkillwireError:
    code = error.code
    if code in (INVALID_PARAMS, _RESOURCE_NOT_FOUND):
        # Servers of this package send a hint with an error.
        hint = _quoted(as_text(as_object(error.error.data).get("hint")))
        hint = hint or "list its skills for the URIs that exist"
        return NotFoundError("not-served", f"the server refuses {method}: {text}", hint)
    if code == METHOD_NOT_FOUND:
        return ProtocolError(
            "method-unknown", f"the server does not know {method}", "the server may use another dialect"
        )
    if code == PARSE_ERROR:
        return ProtocolError(
            "message-invalid", f"the server sent a message that cannot be parsed: {text}", _FIX_SERVER, rule="B1"
        )
    return UpstreamError("server-failed", f"the server failed at {method}: {text} ({status})", "try again later")


def _lost(meter: Meter, text: str, method: str) -> UpstreamError:
    problem = "cannot connect to the server" if method == CONNECTING else "the connection to the server was lost"
    lines = meter.last_output.strip().splitlines()
    last = f"; last output: {_quoted(' '.join(lines[-2:]))}" if lines else ""  # an error, and often a hint
    return UpstreamError(
        "connection-lost", f"{problem} ({text}){last}", "check that the server is running and can be reached"
    )


def _described(error: Exception) -> str:
    """The name and the message of an exception. Some messages contain headers, which may be secrets."""
    name = type(error).__name__
    if isinstance(error, httpx2.ConnectError):  # its message is for people
        return _quoted(f"{error}"[:1].lower() + f"{error}"[1:])
    return name if isinstance(error, httpx2.LocalProtocolError | UnicodeError) else _quoted(f"{name}: {error}")


def _quoted(text: str) -> str:
    """Text from a server on one line, without control characters, which a terminal could interpret."""
    return "".join(character if character.isprintable() else " " for character in text[:300]).strip()
