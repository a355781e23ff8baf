"""What is written to a client, without a copy: a long response waits as it is, and goes out in pieces.

Python 3.11 copies what a client does not read yet. Where such a connection is aborted, that leaves memory in
pieces which the next one does not fit into. Here a response is given back as a whole.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, cast

from skillwire.limits import KIB

PIECE = 256 * KIB


class Outlet:
    """A transport. Its protocol sets ``is_full`` where writing pauses, and calls ``resume`` where it resumes."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._rest: deque[memoryview] = deque()
        self._closes = False
        self.is_full = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send ``data``, after what waits already."""
        if len(data) <= PIECE and not self._rest:
            self._transport.write(data)
        else:
            self._rest.append(memoryview(data))
            if not self.is_full:
                self._send()

    def resume(self) -> bool:
        """Send what waits. Whether nothing waits any more."""
        self.is_full = False
        self._send()
        return not self.is_full

    def is_closing(self) -> bool:
        """Whether this is the end, even if there is something to send before."""
        return self._closes or self._transport.is_closing()

    def close(self) -> None:
        """Close as soon as everything is sent."""
        self._closes = True
        if self._rest:
            self._transport.pause_reading()  # the client's end would be ours
        else:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        self._rest.clear()
        self._transport.abort()

    def can_write_eof(self) -> bool:
        """Whether the end can be told before it comes."""
        return not self._rest and self._transport.can_write_eof()

    def get_write_buffer_size(self) -> int:
        """How many bytes wait."""
        return self._transport.get_write_buffer_size() + sum(map(len, self._rest))

    def held(self) -> int:
        """How much memory they take: a response is there as a whole until its last piece is sent."""
        return self._transport.get_write_buffer_size() + sum(len(cast("bytes", one.obj)) for one in self._rest)

    def _send(self) -> None:
        while self._rest and not self.is_full:
            if self._transport.is_closing():  # by an error
                self._rest.clear()
                return
            first = self._rest.popleft()
            if len(first) > PIECE:
                self._rest.appendleft(first[PIECE:])
            self._transport.write(first[:PIECE])
        if self._closes and not self._rest:  # later, because asyncio may be in the middle of a write
            asyncio.get_running_loop().call_soon(self._transport.close)
