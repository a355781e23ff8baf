"""``skillwire`` in a process of its own without its second of imports: forked off one that has them.

Most tests that start a server over stdio are about what it says, not about how it starts. For those there is
``skillwire_command()``: everything after it is as after ``python -m skillwire``, with real pipes, its own
environment, folder, signals and exit code. ``python_command()`` does the same for a script. Tests of how a process
starts, and tests that kill one at a random moment, start a new one: a fork is killed shortly after its stand-in.

- ``warm.py``: the process that has imported everything and forks. One for each process of pytest, on first use;
  another one if more modules are wanted.
- ``asking.py``: what is started instead of ``skillwire``. It asks for a fork, and ends as the fork ends.
"""

from __future__ import annotations

import atexit
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_HERE = Path(__file__).parent


def skillwire_command() -> list[str]:
    """The words before ``serve …``."""
    return _asking(_warm())


def python_command(*modules: str) -> list[str]:
    """The words before ``script.py …`` or ``-c CODE …``: Python with ``skillwire`` and ``modules`` imported."""
    return [*_asking(_warm(*modules)), "--python"]


def _asking(socket: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(_HERE / "asking.py"), socket]


@cache
def skillwire_script() -> str:
    """Such a command in one word: a file called ``skillwire``."""
    folder = Path(_warm()).parent / "bin"
    folder.mkdir()
    script = folder / "skillwire"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(skillwire_command())} "$@"\n')
    script.chmod(0o755)
    return str(script)


def folder_for_path() -> str:
    """To be put before everything else in ``PATH``: its ``skillwire`` is such a command."""
    return f"{Path(skillwire_script()).parent}:{Path(sys.executable).parent}"


@cache
def _warm(*modules: str) -> str:
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    socket = f"{folder.name}/socket"
    process = subprocess.Popen(
        [sys.executable, str(_HERE / "warm.py"), socket, *modules],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,  # a Ctrl-C for pytest is none for the tests' processes
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"warm\n"

    def end() -> None:
        process.communicate()  # the end of its input ends it
        folder.cleanup()

    atexit.register(end)
    return socket
