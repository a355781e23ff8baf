"""SIGINT and SIGTERM for the commands that serve over HTTP, from their start to their end.

A handler that raises an exception interrupts the code that happens to run: a late import, a task group, another
handler. This one only records the signal and passes it to the web server, which stops in an orderly way.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

_DRAIN_PAUSE = 0.1

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator

    Listener = Callable[[int, None], None]


class StopSignals:
    """Call ``install`` before any output, and give the object to the ``run`` method of the server."""

    def __init__(self) -> None:
        self._received: list[int] = []
        self._listener: Listener | None = None

    def install(self) -> None:
        """Handle both signals from now on, instead of ending the process or raising an exception."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` for every signal, including those before this call."""
        self._listener = listener
        for number in self._received:
            listener(number, None)

    def _handle(self, number: int, frame: object) -> None:  # noqa: ARG002 - the shape of a signal handler
        self._received.append(number)
        if self._listener is not None:
            self._listener(number, None)


class StoppingServer(uvicorn.Server):
    """Stops on the given signals, and calls ``drain`` while it waits for open connections."""

    def __init__(self, config: uvicorn.Config, signals: StopSignals, drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._signals = signals
        self._drain = drain

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Use our handlers, which were installed before the server started, instead of replacing them."""
        self._signals.listen(self.handle_exit)
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close, and drain until that is done: a request in progress may yet become an event stream."""
        self._drain()
        draining = asyncio.create_task(self._drain_again())
        try:
            await super().shutdown(sockets)
        finally:
            draining.cancel()

    async def _drain_again(self) -> None:
        while True:
            await asyncio.sleep(_DRAIN_PAUSE)
            self._drain()
