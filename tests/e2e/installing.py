"""What tests of commands share: a project and a home, servers, and what lies where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillwire.cli.main import run
from starting import python_command, skillwire_command
from trees import replace_file

if TYPE_CHECKING:
    import pytest

DYNAMIC = """\
import anyio
from skillwire import Skills
from skillwire.server.skills import build_server, serve_stdio
skills = Skills()
@skills.skill('made', dynamic=True)
def made():
    return {'SKILL.md': '---\\nname: made\\ndescription: Made on request.\\n---\\nHello\\n'}
anyio.run(serve_stdio, build_server(skills))
"""
_MOVING = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "HERMES_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")


def stand_in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project to stand in, and a home of its own, which is given back."""
    for name in _MOVING:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return tmp_path / "home"


def serving(root: Path, *words: str) -> list[str]:
    """The command of a server of the skills in ``root``."""
    return [*skillwire_command(), "serve", str(root), *words]


def serving_dynamic() -> list[str]:
    """The command of a server whose only skill, ``made``, is dynamic."""
    return [*python_command(), "-c", DYNAMIC]


def add(root: Path | str, *words: str) -> int:
    """``skillwire add``, with a yes."""
    return run(["add", str(root), *words, "--yes", "--by", "ada"])


def lock(folder: Path) -> dict[str, Any]:
    """The skills in a lock."""
    return json.loads((folder / "skills.lock.json").read_text())["skills"]


def edit_lock(folder: Path, name: str, **changes: Any) -> None:
    """Change fields of a skill in a lock by hand."""
    document = json.loads((folder / "skills.lock.json").read_text())
    document["skills"][name] |= changes
    (folder / "skills.lock.json").write_text(json.dumps(document))


def tree(root: Path) -> dict[str, bytes]:
    """Every file below ``root``."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def change(root: Path, path: str = "flat/SKILL.md", by: bytes = b"Do it twice.") -> None:
    """Another text in a skill."""
    replace_file(root / path, (root / path).read_bytes().replace(b"Do it.", by))
