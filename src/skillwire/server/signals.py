"""SIGINT and SIGTERM for the commands that serve over HTTP, from their first word until they end.

A handler that raises interrupts whatever runs just then: a late import, a task group, another handler. This one
only records the signal and tells the web server, which ends in its own time.
"""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator

    Listener = Callable[[int, None], None]


class StopSignals:
    """Call ``install`` before the first word, and give the object to the server's ``run``."""

    def __init__(self) -> None:
        self._received: list[int] = []
        self._listener: Listener | None = None

    def install(self) -> None:
        """Handle both signals from now on, instead of ending the process or raising."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def listen(self, listener: Listener) -> None:
        """Tell ``listener`` of every signal, those before this call included."""
        self._listener = listener
        for number in self._received:
            listener(number, None)

    def _handle(self, number: int, frame: object) -> None:  # noqa: ARG002 - the shape of a signal handler
        self._received.append(number)
        if self._listener is not None:
            self._listener(number, None)


class StoppingServer(uvicorn.Server):
    """Stops on the signals it is given, and calls ``drain`` before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, signals: StopSignals, drain: Callable[[], None]) -> None:
        super().__init__(config)
        self._signals = signals
        self._drain = drain

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Listen to our handlers instead of replacing them: they are there before the server is."""
        self._signals.listen(self.handle_exit)
        yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, then close."""
        self._drain()
        await super().shutdown(sockets)
