"""Event streams end with the token that opened them.

A token is checked with each request, and an event stream is a request that stays open. It ends when its token
expires, and when ``Changes`` learns that a token was revoked, by this process or by another one. That happens
before it publishes the changes that came later, so a stream hears of nothing after the revocation.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import anyio
from anyio import CancelScope, lowlevel

from skillwire.errors import SkillwireError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillwire.registry.identity import RegistryToken

_END_SECONDS: Final = 5.0


class _Stream:
    """A request that may become an event stream."""

    def __init__(self, token: RegistryToken) -> None:
        self.token = token
        self.scope = CancelScope()
        self.has_ended = anyio.Event()
        self.has_begun = False  # whether the head of the response was sent
        self.is_complete = False
        self.failure: SkillwireError | None = None


class TokenStreams:
    """The open event streams of callers with a token. ``is_valid`` asks the store."""

    def __init__(self, is_valid: Callable[[RegistryToken], Awaitable[bool]]) -> None:
        self._is_valid = is_valid
        self._open: set[_Stream] = set()

    async def serve(self, app: ASGIApp, token: RegistryToken, scope: Scope, receive: Receive, send: Send) -> bool:
        """Let ``app`` respond. Returns False if the token ended before the response began.

        Raises the error of a store that cannot tell whether it did.
        """
        stream = _Stream(token)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                if _is_event_stream(message.get("headers", ())):
                    await self._open_stream(stream)
                stream.has_begun = True
            stream.is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            with stream.scope:
                await app(scope, receive, watched)
        finally:
            self._open.discard(stream)
            stream.has_ended.set()
        if stream.scope.cancelled_caught and stream.has_begun and not stream.is_complete:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        if stream.failure is not None:
            raise stream.failure
        return stream.has_begun or not stream.scope.cancelled_caught

    async def end_revoked(self) -> None:
        """End the streams whose token is not valid any more, and wait until they have ended."""
        ending = [stream for stream in self._open if not await self._is_valid(stream.token)]
        for stream in ending:
            stream.scope.cancel()
        with anyio.move_on_after(_END_SECONDS):
            for stream in ending:
                await stream.has_ended.wait()

    async def _open_stream(self, stream: _Stream) -> None:
        """Note an event stream. Its token is checked once more: it may have been revoked since the first check."""
        self._open.add(stream)
        expires_at = stream.token.identity.expires_at
        if expires_at is not None:
            stream.scope.deadline = anyio.current_time() + max(0.0, expires_at - time.time())
        try:
            if await self._is_valid(stream.token):
                return
        except SkillwireError as error:
            stream.failure = error
        stream.scope.cancel()
        await lowlevel.checkpoint()


def _is_event_stream(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    return any(
        name.lower() == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers
    )
