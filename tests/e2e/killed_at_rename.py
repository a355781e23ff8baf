"""skillwire, killed by the operating system just before it renames something for the n-th time."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from skillwire.cli.main import run

rename, left = os.rename, int(sys.argv[1])


def rename_or_die(*words: Any, **options: Any) -> None:
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*words, **options)


os.rename = rename_or_die
sys.exit(run(sys.argv[2:]))
