"""What the process says to its caller when it ends."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every verb."""

    OK = 0
    PROBLEMS = 1
    USAGE = 2
    INTERRUPTED = 130
