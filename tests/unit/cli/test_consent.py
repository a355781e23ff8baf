"""A project that somebody else wrote: what its files may not do on this machine (Z1, Z2)."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from e2e.installing import add, edit_lock, serving, stand_in_a_project, tree
from rules import rule
from skillwire.cli import consent
from skillwire.cli.main import run
from trees import small_tree, write_tree

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return stand_in_a_project(tmp_path, monkeypatch)


@pytest.fixture
def project(tmp_path: Path, home: Path) -> Path:
    return tmp_path / "project"


@pytest.fixture
def served(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "served", small_tree())


# Folders (Z2)


def cloned(project: Path, home: Path, folder: str) -> None:
    """The project as another person gets it: its lock names ``folder``, and this machine knows nothing of it."""
    edit_lock(project, "flat", agents={folder: "copy"})
    shutil.rmtree(project / ".claude")
    shutil.rmtree(home / ".local", ignore_errors=True)


@rule("Z2")
@pytest.mark.parametrize("folder", ["./.git/hooks", "./.venv/lib/site-packages", "./src", "./tools/skills"])
def test_a_lock_adds_no_folders(
    project: Path, home: Path, served: Path, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "--agent", "claude-code") == 0
    cloned(project, home, folder)
    (project / folder).mkdir(parents=True)
    for words in (["add", "--locked"], ["add", "--locked", "--force"]):
        assert run(words) == 1
        assert re.search(r"\[folder-[a-z-]+\]", capsys.readouterr().err)
    assert list(tree(project)) == ["skills.lock.json"]


@rule("Z2")
def test_a_folder_that_the_user_typed_is_used_from_then_on(project: Path, home: Path, served: Path) -> None:
    assert add(served, "flat", "--agent", "claude-code") == 0
    cloned(project, home, "./tools/skills")
    assert run(["add", "--locked", "--agent-dir", "./tools/skills"]) == 0
    assert (project / "tools/skills/flat/SKILL.md").is_file()
    for words in (["verify", "--installed"], ["add", "--locked"], ["remove", "flat"]):
        assert run(words) == 0
    assert not (project / "tools/skills/flat").exists()


@rule("Z2")
def test_the_hint_for_an_unknown_folder_works_as_printed(
    project: Path, home: Path, served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add(served, "flat", "--agent", "claude-code") == 0
    cloned(project, home, "./tools/skills")
    assert run(["add", "--locked"]) == 1
    hint = capsys.readouterr().err.partition("skillwire add --locked ")[2].splitlines()[0]
    assert run(["add", "--locked", *hint.split()]) == 0


@rule("Z2")
def test_a_link_in_a_project_does_not_turn_an_agents_folder_into_another(
    project: Path, home: Path, served: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "src").mkdir()
    (project / ".claude").mkdir()
    os.symlink("../src", project / ".claude/skills")
    assert add(served, "flat", "--agent", "claude-code") == 1
    assert "[folder-not-allowed]" in capsys.readouterr().err
    assert os.listdir(project / "src") == []


FORBIDDEN = {
    "git": (".git/skills", ""),
    "git in capitals": (".GIT/skills", ""),
    "git module": ("sub/.git/modules", ""),
    "mercurial": (".hg/x", ""),
    "environment by name": (".venv/skills", ""),
    "environment by its file": ("env/skills", "env/pyvenv.cfg"),
    "node": ("web/node_modules/x", ""),
    "packages": ("lib/python3.13/site-packages", ""),
}


@rule("Z2")
@pytest.mark.parametrize(("folder", "sign"), FORBIDDEN.values(), ids=FORBIDDEN.keys())
@pytest.mark.parametrize("scope", ["--project", "--global"])
def test_repositories_and_environments_are_refused_even_if_typed(
    project: Path, served: Path, folder: str, sign: str, scope: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if sign:
        write_tree(project, {sign: b""})
    assert add(served, "flat", "--agent-dir", folder, scope) != 0
    assert "[folder-forbidden]" in capsys.readouterr().err
    assert list(tree(project)) == ([sign] if sign else [])


@rule("Z2")
def test_a_bare_repository_is_refused_too(project: Path, served: Path) -> None:
    write_tree(project / "store", {"HEAD": b"", "objects/x": b"", "refs/x": b""})
    assert add(served, "flat", "--agent-dir", "store/hooks") == 2
    assert not (project / "store/hooks").exists()


# Servers (Z1)


SECRET = "hush-hush"
VERBS = {
    "list": ["list", "it"],
    "show": ["show", "it", "flat"],
    "read": ["read", "it", "skill://flat/SKILL.md"],
    "copy": ["add", "it", "flat", "--to", "out"],
    "verify": ["verify", "it"],
    "search": ["search", "it", "refund"],
    "add": ["add", "it", "flat", "--agent", "codex"],
    "conform": ["conform", "server", "it"],
}


@pytest.fixture
def touched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What exists once a program of the project has run; its name has the secret if a variable was filled in."""
    monkeypatch.setenv("IT_TOKEN", SECRET)
    return tmp_path / "touched"


def configure(path: Path, entry: dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": {"it": entry}}))


def touching(touched: Path) -> dict[str, object]:
    return {"command": "touch", "args": [str(touched), f"{touched}-${{IT_TOKEN}}"]}


@rule("Z1")
@pytest.mark.parametrize("words", VERBS.values(), ids=VERBS.keys())
@pytest.mark.parametrize("file", [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"])
def test_a_projects_file_starts_nothing_and_fills_in_nothing(
    project: Path, touched: Path, file: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    configure(project / file, touching(touched))
    is_installing = words[0] == "add" and "--to" not in words  # it wants to know first who approves
    assert run(words) == (2 if is_installing else 1)
    if not is_installing:
        assert "[server-not-allowed]" in capsys.readouterr().err
    assert [path.name for path in project.parent.iterdir() if path.name.startswith("touched")] == []


@rule("Z1")
@pytest.mark.parametrize("option", [["--yes"], ["--config", ".mcp.json"]], ids=["yes", "config"])
def test_the_user_can_say_beforehand_that_it_may(project: Path, served: Path, option: list[str]) -> None:
    command = serving(served)
    configure(project / ".mcp.json", {"command": command[0], "args": command[1:]})
    assert run(["list", "it", *option]) == 0
    assert run(["list", "it"]) == 1  # that was once


@rule("Z1")
def test_what_the_user_answered_holds_for_that_entry_of_that_file(
    project: Path, served: Path, touched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def confirm(question: str, _: object) -> bool:
        asked.append(question)
        return True

    command = serving(served)
    configure(project / ".mcp.json", {"command": command[0], "args": command[1:]})
    with monkeypatch.context() as terminal:
        terminal.setattr(consent, "can_ask", lambda: True)
        terminal.setattr(consent, "confirm", confirm)
        assert run(["list", "it"]) == 0
        assert run(["list", "it"]) == 0
    assert len(asked) == 1
    assert command[0] in asked[0]
    assert run(["list", "it"]) == 0
    configure(project / ".mcp.json", touching(touched))
    assert run(["list", "it"]) == 1
    (project / "sub").mkdir()
    configure(project / "sub/.mcp.json", {"command": command[0], "args": command[1:]})
    monkeypatch.chdir(project / "sub")
    assert run(["list", "it"]) == 1
    assert not touched.exists()


@rule("Z1")
def test_what_decides_stands_next_to_the_question_and_nothing_is_cut(
    project: Path, touched: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def confirm(_question: str, _: object) -> bool:
        return False

    monkeypatch.setattr(consent, "can_ask", lambda: True)
    monkeypatch.setattr(consent, "confirm", confirm)
    many = {f"note-{number}": "x" for number in range(50)}
    configure(project / ".mcp.json", {"env": {"NODE_OPTIONS": "--require x"}, **touching(touched), **many})
    assert run(["list", "it"]) == 1
    shown = [row.split(":")[0].strip() for row in capsys.readouterr().err.splitlines() if row.startswith("  ")]
    assert shown[-3:] == ["env", "args", "command"]
    configure(project / ".mcp.json", {**touching(touched), "note": "x" * 4000})
    assert run(["list", "it"]) == 1
    assert "[server-not-allowed]" in capsys.readouterr().err
    assert not touched.exists()


@rule("Z1")
def test_no_is_an_answer(project: Path, touched: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def confirm(_question: str, _: object) -> bool:
        return False

    configure(project / ".mcp.json", touching(touched))
    monkeypatch.setattr(consent, "can_ask", lambda: True)
    monkeypatch.setattr(consent, "confirm", confirm)
    assert run(["list", "it"]) == 1
    assert not touched.exists()


@rule("Z1")
def test_the_users_own_server_is_used_whatever_the_project_says(
    project: Path, home: Path, served: Path, touched: Path
) -> None:
    command = serving(served)
    configure(home / ".claude.json", {"command": command[0], "args": command[1:]})
    configure(project / ".mcp.json", touching(touched))
    assert run(["list", "it"]) == 0
    assert not touched.exists()


@rule("Z1")
@pytest.mark.parametrize("verb", ["list", "verify", "add", "copy"])
def test_a_folder_of_the_project_does_not_stand_in_for_the_users_server(
    project: Path, home: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both commands of the hint mean one of them."""
    configure(home / ".claude.json", {"url": "http://127.0.0.1:1/mcp"})
    write_tree(project / "it", small_tree())
    words = {"add": ["flat", "--agent", "claude-code", "--yes"], "copy": ["flat", "--to", "out"]}.get(verb, [])
    verb = "add" if verb == "copy" else verb
    assert run([verb, "it", *words]) == 2
    assert "[label-shadowed]" in capsys.readouterr().err
    assert list(project.iterdir()) == [project / "it"]
    assert run([verb, "./it", *words]) == 0
    assert run([verb, "it", *words, "--config", str(home / ".claude.json")]) == 2
    assert "[connection-lost]" in capsys.readouterr().err


@rule("Z1")
def test_the_users_own_file_may_have_comments(
    project: Path, home: Path, touched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """VS Code and Cursor read them, so people write them."""
    entry = '{"url": "http://127.0.0.1:1/mcp", /* "url": "http://127.0.0.1:2/" */}'
    (home / ".claude.json").write_text(f'// mine\n{{"mcpServers": {{"it": {entry}, }}, }}')
    configure(project / ".mcp.json", touching(touched))
    assert run(["list", "it", "--yes"]) == 2
    assert "[connection-lost]" in capsys.readouterr().err
    write_tree(project / "it", small_tree())
    assert run(["list", "it", "--yes"]) == 2
    assert "[label-shadowed]" in capsys.readouterr().err
    assert not touched.exists()


@rule("Z1")
@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"it": {"url": "http://127.0.0.1:1/mcp"}}',
        '/* {"mcpServers": {"it": {"url": "http://127.0.0.1:1/mcp"}}}',
        '{"mcpServers": {"it": {"url": "http://127.0.0.1:1/mcp"}}}' + " " * 4 * 1024 * 1024,
    ],
    ids=["not closed", "open comment", "too large"],
)
def test_a_file_of_the_user_that_cannot_be_read_does_not_let_the_projects_win(
    project: Path, home: Path, touched: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither a server nor a folder; the folder is used if the user means the folder."""
    (home / ".claude.json").write_text(text)
    configure(project / ".mcp.json", touching(touched))
    for _ in range(2):
        assert run(["list", "it", "--yes"]) == 2
        err = capsys.readouterr().err
        assert "[config-invalid]" in err
        assert str(home / ".claude.json") in err
        write_tree(project / "it", small_tree())
    assert "./it" in err
    assert run(["list", "./it"]) == 0
    assert not touched.exists()


UNREADABLE: dict[str, Callable[[Path], None]] = {
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "folder": lambda path: path.mkdir(),
}


@rule("Z1")
@pytest.mark.parametrize("place", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_what_is_no_file_where_the_users_is_does_not_let_the_projects_win(
    project: Path,
    home: Path,
    touched: Path,
    place: Callable[[Path], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    place(home / ".claude.json")
    configure(project / ".mcp.json", touching(touched))
    assert run(["list", "it", "--yes"]) == 2
    assert "[config-invalid]" in capsys.readouterr().err
    assert not touched.exists()
    configure(home / ".cursor/mcp.json", {"url": "http://127.0.0.1:1/mcp"})  # the user's as well
    assert run(["list", "it", "--yes"]) == 2
    assert "[connection-lost]" in capsys.readouterr().err


@rule("Z1")
def test_what_the_user_configured_for_this_folder_alone_wins_here_only(
    project: Path, home: Path, served: Path, touched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claude Code keeps it in the user's file, by folder."""
    command = serving(served)
    here = {"mcpServers": {"it": {"command": command[0], "args": command[1:]}}}
    elsewhere = {"mcpServers": {"it": {"url": "http://127.0.0.1:1/mcp"}}}
    document = {**elsewhere, "projects": {str(project): here, "/elsewhere": elsewhere}}
    (home / ".claude.json").write_text(json.dumps(document))
    configure(project / ".mcp.json", touching(touched))
    assert run(["list", "it"]) == 0
    monkeypatch.chdir(home)
    assert run(["list", "it"]) == 2
    assert not touched.exists()


@rule("Z1")
def test_a_label_of_the_user_that_has_no_entry_is_theirs_nevertheless(
    project: Path, home: Path, touched: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / ".claude.json").write_text('{"mcpServers": {"it": "disabled"}}')
    configure(project / ".mcp.json", touching(touched))
    assert run(["list", "it", "--yes"]) == 2
    assert "[server-invalid]" in capsys.readouterr().err
    assert not touched.exists()


LOCKED = {
    "command": {"command": ["touch", "touched"]},
    "url": {"url": "http://127.0.0.1:1/mcp"},
    "label of the project": {"label": "it"},
    "label of the user": {"label": "own"},
    "label with a file": {"label": "it", "config": "servers.json"},
}


@rule("Z1")
@pytest.mark.parametrize("server", LOCKED.values(), ids=LOCKED.keys())
def test_a_projects_lock_reaches_no_server_by_itself(
    project: Path, home: Path, served: Path, server: dict[str, object], capsys: pytest.CaptureFixture[str]
) -> None:
    entry: dict[str, object] = {"command": "touch", "args": [str(project / "touched")]}
    configure(project / ".mcp.json", entry)
    configure(project / "servers.json", entry)
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"own": entry}}))
    assert add(served, "flat", "--agent", "claude-code") == 0
    edit_lock(project, "flat", server=server)
    shutil.rmtree(project / ".claude")
    for words in (["add", "--locked"], ["update", "--check"], ["update", "--yes"]):
        capsys.readouterr()
        assert run(words) in (1, 2)
        assert "[server-not-allowed]" in capsys.readouterr().err
    assert not (project / "touched").exists()


@rule("Z1")
def test_a_server_that_the_user_typed_is_asked_again_without_a_question(project: Path, served: Path) -> None:
    assert run(["add", "flat", "--agent", "claude-code", "--yes", "--", *serving(served)]) == 0
    shutil.rmtree(project / ".claude")
    assert run(["add", "--locked"]) == 0
    assert run(["update", "--check"]) == 0


@rule("Z1")
def test_a_users_own_lock_does_not_follow_a_projects_file_that_changed(
    project: Path, served: Path, touched: Path
) -> None:
    command = serving(served)
    configure(project / ".mcp.json", {"command": command[0], "args": command[1:]})
    assert add("it", "flat", "--agent", "cursor", "--global") == 0
    assert run(["update", "--check", "--global"]) == 0
    configure(project / ".mcp.json", touching(touched))
    assert run(["update", "--check", "--global"]) == 2
    assert not touched.exists()
