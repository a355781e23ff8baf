"""From agents to folders: nothing leads out of the project or the home, and a shared folder is one folder."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rules import rule
from skillwire.errors import FormatError, NotFoundError
from skillwire.install.lock import Server
from skillwire.install.places import InstallScope
from skillwire.install.servers import base_of, describe_server, target_of


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> InstallScope:
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return InstallScope("project", tmp_path / "project", tmp_path / "home", {})


@pytest.fixture
def everything(project: InstallScope) -> InstallScope:
    return InstallScope("global", project.project, project.home, {})


def test_the_lock_lies_in_the_project_or_with_other_settings(
    project: InstallScope, everything: InstallScope
) -> None:
    assert project.lock_path == project.project / "skills.lock.json"
    assert everything.lock_path == everything.home / ".config/skillwire/skills.lock.json"
    moved = InstallScope("global", project.project, project.home, {"XDG_CONFIG_HOME": "/elsewhere"})
    assert moved.lock_path == Path("/elsewhere/skillwire/skills.lock.json")


def test_agents_that_read_one_folder_share_it(project: InstallScope) -> None:
    layout = project.layout({"codex": "copy", "cursor": "copy", "claude-code": "copy"})
    assert [place.label for place in layout.places] == [".agents/skills", ".claude/skills"]


def test_links_lead_to_the_shared_folder_and_an_agent_that_reads_it_needs_none(project: InstallScope) -> None:
    layout = project.layout({"codex": "link", "claude-code": "link"})
    assert [place.label for place in layout.copies] == [".agents/skills"]
    [link] = layout.links
    assert layout.link_to("refunds", link) == "../../.agents/skills/refunds"


def test_one_folder_has_a_copy_or_a_link(everything: InstallScope) -> None:
    with pytest.raises(FormatError) as caught:
        everything.layout({"copilot": "copy", "vscode": "link"})
    assert caught.value.reference == "mode-other"


@pytest.mark.parametrize("folder", ["../out/skills", "/tmp/skills", "."])
def test_a_project_uses_folders_inside_it_only(project: InstallScope, folder: str) -> None:
    with pytest.raises(FormatError) as caught:
        project.key_of(folder)
    assert caught.value.reference == "folder-elsewhere"


def test_a_folder_given_by_its_path_is_recorded_as_seen_from_the_lock(
    project: InstallScope, everything: InstallScope
) -> None:
    assert project.key_of("tools/skills") == project.key_of("./tools//skills/") == "./tools/skills"
    typed = replace(project, is_typed=lambda folder: folder == project.project / "tools/skills")
    assert typed.place_of("./tools/skills").folder == project.project / "tools/skills"
    key = everything.key_of("tools/skills")
    assert key == str(project.project / "tools/skills")
    assert str(everything.place_of(key).folder) == key


@pytest.mark.parametrize("key", ["../out", "/etc/skills", ".claude/../../x"])
def test_a_lock_that_names_a_folder_elsewhere_is_not_followed(project: InstallScope, key: str) -> None:
    """A lock comes with somebody's repository."""
    with pytest.raises(FormatError):
        project.place_of(key)


def test_a_folder_that_is_a_link_out_of_the_project_is_refused(project: InstallScope) -> None:
    (project.project / ".claude").mkdir()
    (project.home / "mine").mkdir()
    os.symlink(project.home / "mine", project.project / ".claude/skills")
    with pytest.raises(FormatError) as caught:
        project.place_of("claude-code")
    assert caught.value.reference == "folder-elsewhere"
    os.symlink(project.home, project.project / ".goose")
    with pytest.raises(FormatError):
        project.place_of("goose")


def test_a_link_inside_the_project_is_the_folder_it_leads_to(project: InstallScope) -> None:
    (project.project / ".agents/skills").mkdir(parents=True)
    os.symlink(".agents", project.project / ".claude")
    layout = project.layout({"claude-code": "link", "codex": "link"})
    assert len(layout.places) == 1


def test_a_home_folder_may_be_moved_by_a_variable_but_not_lead_elsewhere(
    everything: InstallScope, tmp_path: Path
) -> None:
    (tmp_path / "out").mkdir()
    os.symlink(tmp_path / "out", everything.home / ".claude")
    with pytest.raises(FormatError):
        everything.place_of("claude-code")
    moved = InstallScope(
        "global", everything.project, everything.home, {"CLAUDE_CONFIG_DIR": str(tmp_path / "out")}
    )
    assert moved.place_of("claude-code").folder == tmp_path / "out/skills"


@pytest.mark.parametrize(
    ("target", "options", "kind", "words"),
    [
        pytest.param("https://a.example/mcp", {"dialect": "index"}, "url", ("https://a.example/mcp",), id="url"),
        pytest.param(["npx", "it"], {}, "command", ("npx", "it"), id="command"),
        pytest.param("acme", {}, "label", ("acme",), id="label"),
        pytest.param("acme", {"config": Path("mcp.json")}, "label", ("acme",), id="label-of-a-file"),
        pytest.param("../skills", {}, "folder", ("../skills",), id="folder"),
    ],
)
def test_a_server_is_recorded_as_it_is_reached_again(
    project: InstallScope, target: Any, options: dict[str, Any], kind: str, words: tuple[str, ...]
) -> None:
    (project.project.parent / "skills").mkdir()
    server = describe_server(target, project, **options)
    assert (server.kind, server.words) == (kind, words)
    again, config = target_of(server, project)
    expected = (
        str(project.project.parent / "skills") if kind == "folder" else words if kind == "command" else words[0]
    )
    assert again == expected
    assert config == (project.project / "mcp.json" if "config" in options else None)


@pytest.mark.parametrize(
    "url",
    ["https://me:secret@a/mcp", "https://a/mcp?token=secret", "https://a/mcp#secret"],
    ids=["user", "query", "fragment"],
)
def test_a_url_that_may_hold_a_secret_is_not_recorded(project: InstallScope, url: str) -> None:
    for refused in (lambda: describe_server(url, project), lambda: target_of(Server("url", (url,)), project)):
        with pytest.raises(FormatError) as caught:
            refused()
        assert caught.value.reference == "url-secret"
        assert "secret@" not in str(caught.value)
        assert "token=" not in str(caught.value)


def test_a_folder_does_not_take_the_place_of_a_server_of_that_label(project: InstallScope) -> None:
    (project.project / "acme").mkdir()
    with pytest.raises(FormatError) as caught:
        target_of(Server("label", ("acme",)), project)
    assert caught.value.reference == "label-shadowed"


@rule("N1", "A5")
def test_a_persons_own_lock_means_the_same_everywhere(project: InstallScope, everything: InstallScope) -> None:
    """Whatever the folder says in which it is used."""
    (project.project / "skills").mkdir()
    (project.project / ".mcp.json").write_text(
        '{"mcpServers": {"acme": {"command": "a", "env": {"T": "secret"}}}}'
    )
    command = describe_server(["./run", "skills/", "--it"], everything)
    assert command.words == (str(project.project / "run"), str(project.project / "skills"), "--it")
    label = describe_server("acme", everything)
    assert (label.words, label.config) == (("acme",), str(project.project / ".mcp.json"))
    assert target_of(label, everything) == ("acme", project.project / ".mcp.json")
    with pytest.raises(NotFoundError):
        describe_server("nobody", everything)
    assert base_of(everything) == everything.home
    assert describe_server(["./run"], project).words == ("./run",)
    assert describe_server("acme", project).config is None
    assert base_of(project) == project.project


def test_a_folder_is_called_what_it_is(everything: InstallScope, tmp_path: Path) -> None:
    moved = InstallScope(
        "global", everything.project, everything.home, {"CLAUDE_CONFIG_DIR": str(tmp_path / "cc")}
    )
    assert moved.place_of("claude-code").label == str(tmp_path / "cc/skills")
    assert everything.place_of("claude-code").label == "~/.claude/skills"
    inside = InstallScope("global", everything.project, everything.home, {"CODEX_HOME": f"{everything.home}/c"})
    assert inside.place_of("codex").label == "~/c/skills"


def test_an_agent_whose_folder_may_not_be_used_is_not_usable(project: InstallScope) -> None:
    os.symlink(project.home, project.project / ".claude")
    assert [project.is_usable(agent) for agent in ("codex", "claude-code", "nobody", "../x")] == [True] + [
        False
    ] * 3


def test_a_command_in_a_hint_can_be_typed_in_its_scope(project: InstallScope, everything: InstallScope) -> None:
    assert project.command("remove", "my skill") == "skillwire remove 'my skill'"
    assert everything.command("update", "refunds", "--force") == "skillwire update refunds --force --global"
