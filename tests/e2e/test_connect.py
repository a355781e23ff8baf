"""``skillwire connect``: what it says and how it ends when a host's file is not as it would have to be."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from skillwire.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

URL = ["http://127.0.0.1:9/mcp", "--force"]
THEIRS = '[mcp_servers.github]\ncommand = "gh"\nargs = ["mcp"]\n'


pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def config(project: Path, home: Path) -> Path:
    (project / ".codex").mkdir()
    return project / ".codex/config.toml"


def connect(*words: str, agent: str = "codex") -> int:
    return run(["connect", "--agent", agent, "--yes", *words])


def test_undoing_what_somebody_else_wrote_says_where_it_is_kept(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(THEIRS)
    assert connect("--name", "github", "--undo") == 0
    err = capsys.readouterr().err
    assert ".codex/config.toml" in err
    assert "config.toml.before-github" in err
    assert config.with_name("config.toml.before-github").read_text() == THEIRS
    assert config.read_text() == ""


@pytest.mark.parametrize(
    ("text", "reference"),
    [
        pytest.param(THEIRS.replace("github", "skillwire"), "config-taken", id="name-taken"),
        pytest.param("= 1", "config-invalid", id="not-toml"),
        pytest.param("[[mcp_servers]]\nx = 1\n", "config-invalid", id="not-a-table"),
        pytest.param("mcp_servers = {}", "config-by-hand", id="inline-table"),
    ],
)
def test_a_file_that_is_left_alone_ends_with_1(
    text: str, reference: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(text)
    assert connect(*URL) == 1
    assert f"[{reference}]" in capsys.readouterr().err
    assert config.read_text() == text
    assert os.listdir(config.parent) == [config.name]


def test_what_cannot_be_read_ends_with_1(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder where the file would be, and a file where its folder would be."""
    config.mkdir()
    config.parent.with_name(".cursor").touch()
    for agent in ("codex", "cursor"):
        assert connect(*URL, agent=agent) == 1
        assert "[config-unreadable]" in capsys.readouterr().err


def test_a_failed_write_ends_with_1(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Nobody, not even root, makes files in /proc."""
    monkeypatch.setenv("CODEX_HOME", "/proc/self/nothing")
    assert connect("--global", *URL) == 1
    assert "[write-failed]" in capsys.readouterr().err


def test_yaml_is_undone_by_hand(capsys: pytest.CaptureFixture[str]) -> None:
    assert connect("--global", "--undo", agent="goose") == 1
    assert capsys.readouterr().out == ""


def test_what_is_said_to_be_changed_is_what_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "cod"))
    assert connect("--global", *URL) == 0
    assert str(tmp_path / "cod/config.toml") in capsys.readouterr().err
    assert (tmp_path / "cod/config.toml").is_file()


def test_a_program_of_this_folder_is_started_from_anywhere(home: Path) -> None:
    project = home.parent / "project"
    (project / "servers.json").write_text("{}")
    command = ["--force", "--", ".venv/bin/skillwire", "gateway", "--config=servers.json"]
    assert connect("--global", *command, agent="cursor") == 0
    entry = json.loads((home / ".cursor/mcp.json").read_text())["mcpServers"]["skillwire"]
    assert entry == {
        "command": str(project / ".venv/bin/skillwire"),
        "args": ["gateway", f"--config={project / 'servers.json'}"],
    }


def test_the_same_command_with_undo_removes_the_entry(project: Path) -> None:
    assert connect(*URL, agent="cursor") == 0
    assert (project / ".cursor/mcp.json").exists()
    assert connect(*URL, "--undo", agent="cursor") == 0
    assert not (project / ".cursor/mcp.json").exists()


def test_a_command_that_does_not_start_is_not_written_and_the_hint_repeats_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["connect", "--agent", "cursor", "--yes", "--", "false", "a b"]) == 2
    err = capsys.readouterr().err
    assert "false 'a b'" in err
    assert "--force" in err
    assert not (project / ".cursor").exists()
