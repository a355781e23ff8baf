"""docs/web.md is true: its commands start what it says, every option and key is there, and every picture."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.talking import Talking
from skillwire.cli.main import run
from trees import skill_md, write_tree

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/web.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SERVE, UI, LOAD = [code.strip() for language, code in BLOCKS if language == "sh"]
[CONFIG] = [code for language, code in BLOCKS if language == "json"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the page's reader stands: two trees, and a home of their own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin:/bin")
    shutil.copytree(ROOT / "examples/skills", tmp_path / "skills")
    write_tree(tmp_path / "books", {"library/SKILL.md": skill_md("library")})
    return tmp_path


def started(command: str, folder: Path) -> Talking:
    name, *words = command.split()
    assert name == "skillwire"
    return Talking(*words, folder=folder)


def end(process: Talking) -> int:
    process.popen.terminate()
    process.popen.communicate(timeout=60)
    return process.popen.returncode


def test_the_commands_lead_from_nothing_to_a_waiting_agent_that_goes_on(folder: Path) -> None:
    server = started(SERVE.replace("8000", "0"), folder)
    desk = loading = None
    try:
        url = server.wait_for_talk(r"listening at (http://\S+)")[1]
        (folder / "servers.json").write_text(CONFIG.replace("http://127.0.0.1:8000/mcp", url))
        desk = started(f"{UI} --no-open", folder)
        desk.wait_for_talk(r"http://127\.0\.0\.1:\d+/\S+")
        loading = started(LOAD, folder)
        loading.wait_for_talk("skillwire ui")
        answer = [sys.executable, "-m", "skillwire", "approve", "library", "--config", "servers.json"]
        subprocess.run(answer, cwd=folder, check=True, capture_output=True, timeout=60)
        out, err = loading.popen.communicate(timeout=60)
        assert loading.popen.returncode == 0, err
        assert out.startswith(b'<skill name="library" origin="mcp:books"')
        assert end(desk) == 0
        assert end(server) == 0
    finally:
        for process in (server, desk, loading):
            if process is not None:
                process.popen.kill()
                process.popen.communicate()


def test_the_configuration_is_one() -> None:
    assert set(json.loads(CONFIG)["mcpServers"]) == {"acme", "books"}


def test_every_option_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["ui", "--help"])
    options = set(re.findall(r"(--[a-z-]+)", capsys.readouterr().out)) - {"--help"}
    assert len(options) > 4
    for option in options:
        assert f"`{option}" in PAGE, option


def test_every_key_is_documented() -> None:
    templates = ROOT / "src/skillwire/web/templates"
    keys = {key for path in templates.rglob("*.html") for key in re.findall(r"<dt>(.*?)</dt>", path.read_text())}
    named = {name for key in keys for name in re.findall(r"<kbd>(.*?)</kbd>", key)} - {"Esc", "Enter"}
    assert named >= {"/", "j", "k", "a", "?"}
    for name in named:
        assert f"`{name}`" in PAGE, name


def test_the_pictures_are_there_and_small() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\((pictures/[\w-]+\.png)\)", PAGE)
    assert {f"pictures/{path.name}" for path in (ROOT / "docs/pictures").iterdir()} == set(pictures)
    for name in pictures:
        assert (ROOT / "docs" / name).stat().st_size <= 150 * 1024, name
