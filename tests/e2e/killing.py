"""skillwire, killed by the operating system just before it calls some function of Python for the n-th time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from typing import Any


def killed_at(function: str, number: int, *words: str) -> int:
    """How ``skillwire`` with ``words`` ends if it is killed at the ``number``-th call of ``function``."""
    from starting import python_command

    command = [*python_command(), __file__, function, str(number), *words]
    return subprocess.run(command, capture_output=True, timeout=60).returncode


def _main(function: str, number: int, words: list[str]) -> int:
    from skillwire.cli.main import run

    module, _, name = function.partition(".")
    real, left = getattr(import_module(module), name), number

    def call_or_die(*args: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)

    setattr(import_module(module), name, call_or_die)
    return run(words)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
