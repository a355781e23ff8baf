"""Answers sent again from where a request is parsed: no task, no application, one write.

For a replayed answer the way through a web application and back is most of its cost. So uvicorn's protocol class
waits here for the whole of a short, plain ``POST`` before it begins an application, and begins none if the replay
has the answer (``replay.py``). Whatever is unusual in any way goes uvicorn's way from its first byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.server.bounds import BoundedProtocol
from skillwire.server.outlet import PIECE
from skillwire.server.response_cache import MAX_BODY

if TYPE_CHECKING:
    from skillwire.server.bounds import Connections
    from skillwire.server.response_cache import Replay, Reply

_OK = b"HTTP/1.1 200 OK\r\n"


class QuickProtocol(BoundedProtocol):
    """One connection. ``replay`` knows the answers to a ``POST`` to ``path``."""

    def __init__(self, path: str, replay: Replay, connections: Connections, **words: Any) -> None:
        super().__init__(connections, **words)
        self._path = path.encode()
        self._replay = replay
        self._held: bytes | None = None  # the body, as far as it came, of a request that nothing was begun for

    def begin(self) -> None:
        """Begin nothing yet if the answer may be there."""
        if self._is_plain():
            self._held = b""
        else:
            super().begin()

    def on_body(self, body: bytes) -> None:
        """More of the request."""
        if self._held is None:
            super().on_body(body)
        else:
            self._held += body

    def finish(self) -> None:
        """Answer, or begin what was not begun."""
        if self._held is not None:
            reply = self._replay.answered_before(self.headers, self._held)
            if reply is not None:
                self._held = None
                self._write(reply)
                return
            self._begin()
        super().finish()

    def shutdown(self) -> None:
        """A request that is half here is still answered."""
        if self._held is not None:
            self._begin()
        super().shutdown()

    def _begin(self) -> None:
        body, self._held = self._held or b"", None
        super().begin()
        super().on_body(body)

    def _is_plain(self) -> bool:
        """Whether a request is of the kind that may have been answered before, and nothing else is under way."""
        is_ours = self.url == self._path and self._is_idle() and self._is_usual() and self._is_short()
        return is_ours and self._replay.lets_in(self.headers)

    def _is_idle(self) -> bool:
        is_full = self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency
        return self.is_waiting() and not is_full and not self.flow.write_paused

    def _may_answer(self) -> bool:
        return self._held is not None or super()._may_answer()

    def _is_usual(self) -> bool:
        parser: Any = self.parser
        is_post = parser.get_method() == b"POST" and parser.get_http_version() == "1.1"
        stays = parser.should_keep_alive() and not parser.should_upgrade()
        return is_post and stays and not self.expect_100_continue

    def _is_short(self) -> bool:
        lengths = [value for name, value in self.headers if name == b"content-length"]
        return len(lengths) == 1 and lengths[0].isdigit() and int(lengths[0]) <= MAX_BODY

    def _write(self, reply: Reply) -> None:
        headers = [*self.server_state.default_headers, *reply.headers]
        head = b"".join([b"%b: %b\r\n" % header for header in headers])
        if len(reply.body) <= PIECE:
            self.transport.write(b"%b%b\r\n%b" % (_OK, head, reply.body))
        else:  # without a copy
            self.transport.write(b"%b%b\r\n" % (_OK, head))
            self.transport.write(reply.body)
        self.on_response_complete()
