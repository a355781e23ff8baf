"""Questions at a real terminal: a server that a project's file names (Z1), a skill to approve (Z4)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from e2e.installing import serving
from e2e.terminal import Terminal
from rules import rule
from skillwire.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("home")


@rule("Z1")
def test_the_user_sees_the_file_and_the_command_and_is_asked_once(project: Path, served: Path) -> None:
    command = serving(served)
    entry = {"command": command[0], "args": command[1:], "env": {"X": "${HOME}"}}
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"it": entry}}))
    with Terminal("list", "it") as terminal:
        shown = terminal.question()
        assert ".mcp.json" in shown
        assert str(served) in shown
        assert "${HOME}" in shown
        terminal.type("y\n")
        code, out = terminal.end()
    assert (code, "flat" in out) == (0, True)
    assert run(["list", "it"]) == 0


@rule("Z4")
def test_approve_shows_the_review_and_asks(project: Path, served: Path) -> None:
    assert run(["origins", "add", "acme", "--no-test", "--", *serving(served)]) == 0
    for answer, code in (("n", 1), ("y", 0)):
        with Terminal("approve", "flat") as terminal:
            assert "skill://flat/SKILL.md" in terminal.question()
            terminal.type(f"{answer}\n")
            assert terminal.end()[0] == code
    assert run(["load", "flat"]) == 0
