"""What a person sees before a skill is installed, and what the lock records about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from e2e.installing import add, lock, stand_in_a_project
from rules import rule
from skillwire.cli import install_session
from skillwire.cli.main import run
from skillwire.skill.entry import digest_of
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

TREE = {
    "outer/SKILL.md": skill_md("outer", extra="allowed-tools: Read Bash(git:*)\n"),
    "outer/inner/SKILL.md": skill_md("inner", extra="allowed-tools: Bash(rm:*)\nhooks:\n  start: run-me\n"),
    "outer/broken/SKILL.md": b"no frontmatter\n",
}


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    stand_in_a_project(tmp_path, monkeypatch)
    return write_tree(tmp_path / "served", TREE)


@rule("A3", "A4")
@pytest.mark.parametrize("verb", ["add", "update"])
def test_what_a_skill_asks_for_is_shown_before_the_question(
    served: Path, verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """That of a skill inside too: an agent finds it in the same folder."""
    seen: list[str] = []

    async def confirm(_question: str, _: object) -> bool:
        seen.append(capsys.readouterr().err)
        return False

    words = ["add", str(served), "outer", "--agent", "claude-code"]
    if verb == "update":
        write_tree(served, {"outer/SKILL.md": skill_md("outer")})
        assert add(served, "outer", "--agent", "claude-code") == 0
        write_tree(served, TREE)
        words = ["update"]
    capsys.readouterr()
    monkeypatch.setattr(install_session, "can_ask", lambda: True)
    monkeypatch.setattr(install_session, "confirm", confirm)
    assert run(words) == 1
    [shown] = seen
    for wish in ("Read", "Bash(git:*)", "Bash(rm:*)", "run-me", "broken/SKILL.md: fields"):
        assert wish in shown


@rule("A1")
def test_the_lock_records_origin_uri_and_digests(served: Path, tmp_path: Path) -> None:
    assert add(served, "outer", "--agent", "claude-code") == 0
    recorded = lock(tmp_path / "project")["outer"]
    assert recorded["server"] == {"folder": "../served"}
    assert recorded["uri"] == "skill://outer/SKILL.md"
    assert recorded["files"] == {path.removeprefix("outer/"): digest_of(data) for path, data in TREE.items()}
