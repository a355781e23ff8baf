"""A running ``skillwire``; its talk on stderr is read as it comes, with a bound."""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from starting import skillwire_command

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 60


class Talking:
    """The process of ``skillwire WORDS``: a fork, or a new one where it matters how it starts."""

    def __init__(self, *words: str, folder: Path | None = None, new: bool = False) -> None:
        command = [sys.executable, "-m", "skillwire"] if new else skillwire_command()
        self.popen = subprocess.Popen(
            [*command, *words],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.talk = ""

    def wait_for_talk(self, pattern: str) -> re.Match[str]:
        assert self.popen.stderr is not None
        deadline = time.monotonic() + PATIENCE
        while (match := re.search(pattern, self.talk)) is None:
            ready, _, _ = select.select([self.popen.stderr], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"waited for {pattern!r}; heard {self.talk!r}"
            data = os.read(self.popen.stderr.fileno(), 65536)
            assert data, f"it ended; heard {self.talk!r}"
            self.talk += data.decode()
        return match
