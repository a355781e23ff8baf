"""A person at a terminal, for programs that ask."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from contextlib import suppress

SECONDS = 60


class Terminal:
    """A program whose person sits at a terminal; only its stdout goes elsewhere."""

    def __init__(self, *words: str) -> None:
        self.person, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "skillwire", *words],
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # makes it the controlling terminal
        )
        os.close(theirs)
        self.seen = ""

    def see(self, words: str) -> None:
        """Wait until the words are on the screen."""
        until = time.monotonic() + SECONDS
        while words not in self.seen:
            ready, _, _ = select.select([self.person], [], [], max(0.0, until - time.monotonic()))
            assert ready, self.seen
            self.seen += os.read(self.person, 65536).decode(errors="replace")

    def type(self, words: str) -> None:
        os.write(self.person, words.encode())

    def end(self) -> tuple[int, str]:
        try:
            out, _ = self.process.communicate(timeout=SECONDS)
        finally:
            self.process.kill()
            with suppress(OSError):  # the last words, until nobody holds the other end
                while data := os.read(self.person, 65536):
                    self.seen += data.decode(errors="replace")
            os.close(self.person)
        return self.process.returncode, out.decode()
