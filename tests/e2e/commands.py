"""Running ``skillwire`` as a process, with an environment of its own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from starting import skillwire_command

if TYPE_CHECKING:
    from pathlib import Path


def run(
    environment: dict[str, str], *words: str, typed: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run one command to its end. ``typed`` is its stdin."""
    return subprocess.run(
        [*skillwire_command(), *words],
        env=environment,
        cwd=cwd,
        input=typed,
        capture_output=True,
        text=True,
        timeout=120,
    )
