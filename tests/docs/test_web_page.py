"""docs/web.md is correct: its commands work, and it has every option, key and picture."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from docs.options import check_options
from e2e.talking import Talking
from starting import folder_for_path, skillwire_command
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
    monkeypatch.setenv("PATH", f"{folder_for_path()}:/usr/bin:/bin")
    shutil.copytree(ROOT / "examples/skills", tmp_path / "skills")
    write_tree(tmp_path / "books", {"library/SKILL.md": skill_md("library")})
    return tmp_path


def started(command: str, folder: Path) -> Talking:
    name, *words = command.split()
    assert name == "skillwire"
    return Talking(*words, folder=folder)


def test_the_commands_lead_from_nothing_to_a_waiting_agent_that_goes_on(folder: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(started(SERVE.replace("8000", "0"), folder))
        url = server.wait_for_talk(r"http://\S+/mcp")[0]
        (folder / "servers.json").write_text(CONFIG.replace("http://127.0.0.1:8000/mcp", url))
        desk = stack.enter_context(started(f"{UI} --no-open", folder))
        desk.wait_for_talk(r"http://127\.0\.0\.1:\d+/\S+")
        loading = stack.enter_context(started(LOAD, folder))
        loading.wait_for_talk("skillwire ui")
        options = ["library", "--config", "servers.json"]
        review = [*skillwire_command(), "approvals", "show", *options, "--json"]
        shown = subprocess.run(review, cwd=folder, check=True, capture_output=True, timeout=60).stdout
        answer = [*skillwire_command(), "approve", *options, "--fingerprint", json.loads(shown)["fingerprint"]]
        subprocess.run(answer, cwd=folder, check=True, capture_output=True, timeout=60)
        code, out = loading.wait()
        assert code == 0, loading.talk
        assert out.startswith('<skill name="library" origin="mcp:books"')
        assert desk.end() == 0
        assert server.end() == 0


def test_the_configuration_is_one() -> None:
    assert set(json.loads(CONFIG)["mcpServers"]) == {"acme", "books"}


def test_every_option_is_documented(capsys: pytest.CaptureFixture[str]) -> None:
    check_options(["ui"], PAGE, capsys)


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
