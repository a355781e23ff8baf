"""Every command that serves ends cleanly on a signal, also one that comes as soon as its first line is there."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from e2e.talking import PATIENCE, Talking
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from pathlib import Path

COMMANDS = {
    "serve": ["serve", "skills"],
    "serve-http": ["serve", "skills", "--http", "0"],
    "gateway": ["gateway", "skills", "--state", "state"],
    "gateway-http": ["gateway", "skills", "--state", "state", "--http", "0"],
    "ui": ["ui", "--no-open", "--folder", "skills", "--state", "state"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["term", "int"])
def test_a_signal_after_the_first_line_ends_it_cleanly(
    command: str, number: signal.Signals, tmp_path: Path
) -> None:
    write_tree(tmp_path / "skills", small_tree())
    with Talking(*COMMANDS[command], folder=tmp_path, new=True) as process:
        process.wait_for_talk("\\n")
        process.popen.send_signal(number)
        process.popen.wait(PATIENCE)  # while its stdin stays open
        assert process.wait() == (0, ""), process.talk
        assert "Traceback" not in process.talk
