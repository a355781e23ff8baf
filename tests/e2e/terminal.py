"""A person at a terminal, for programs that ask."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from contextlib import suppress
from typing import Self

from e2e.talking import PATIENCE, kill_group
from starting import skillwire_command

_QUESTION = re.compile(r"[:\]] \x1b\[0m\Z")  # bold, and the cursor stays behind it


class Terminal:
    """The process of ``skillwire WORDS`` at a terminal; only its stdout goes elsewhere.

    Use it as a context manager. The end of the block kills the process and closes the terminal.
    """

    def __init__(self, *words: str) -> None:
        self.person, theirs = pty.openpty()
        try:
            self.process = subprocess.Popen(
                [*skillwire_command(), *words],
                stdin=theirs,
                stderr=theirs,
                stdout=subprocess.PIPE,
                env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
                start_new_session=True,  # the fork makes it its controlling terminal
            )
        except BaseException:
            os.close(self.person)
            raise
        finally:
            os.close(theirs)
        self.seen = ""
        self._asked = 0  # where the next question begins

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        kill_group(self.process)
        os.close(self.person)

    def question(self) -> str:
        """Wait until the next question is on the screen: what was shown since the last one."""
        until = time.monotonic() + PATIENCE
        while not _QUESTION.search(shown := self.seen[self._asked :]):
            ready, _, _ = select.select([self.person], [], [], max(0.0, until - time.monotonic()))
            assert ready, self.seen
            try:
                data = os.read(self.person, 65536)
            except OSError:  # no process holds the other end
                data = b""
            assert data, f"it ended; {self.seen}"
            self.seen += data.decode(errors="replace")
        self._asked = len(self.seen)
        return shown

    def type(self, words: str) -> None:
        os.write(self.person, words.encode())

    def end(self) -> tuple[int, str]:
        """Wait for its end: the exit code and its stdout."""
        out, _ = self.process.communicate(timeout=PATIENCE)
        with suppress(OSError):  # what is left on the screen, until no process holds the other end
            while data := os.read(self.person, 65536):
                self.seen += data.decode(errors="replace")
        return self.process.returncode, out.decode()
