"""The table of agents: every folder in it is one that a skill can be put into, and variables move it."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillwire.errors import NotFoundError
from skillwire.install.agents import AGENTS, CONFIGS, MOVED, entry_for, find_agent, locate, present_agents

HOME = Path("/home/ada")


@pytest.mark.parametrize(
    ("agent", "project", "everywhere"),
    [
        ("claude-code", ".claude/skills", "~/.claude/skills"),
        ("codex", ".agents/skills", "~/.codex/skills"),
        ("openclaw", "skills", "~/.openclaw/skills"),
    ],
)
def test_each_agent_has_its_folders(agent: str, project: str, everywhere: str) -> None:
    assert (AGENTS[agent].project, AGENTS[agent].everywhere) == (project, everywhere)


def test_every_row_of_the_table_makes_sense() -> None:
    for agent in AGENTS:
        found = find_agent(agent)
        assert "/" not in found.id  # a slash means a folder that was given by its path
        assert found.project.endswith("skills"), agent
        assert not found.project.startswith(("/", "~")), agent
        assert found.everywhere.startswith("~/"), agent
        assert found.everywhere.endswith("/skills"), agent
        assert found.signs, agent
        for place in (found.project, found.everywhere, *found.signs):
            assert ".." not in place
            assert not place.endswith("/")


def test_the_configurations_are_of_agents_in_the_table() -> None:
    assert CONFIGS.keys() <= AGENTS.keys()
    for config in CONFIGS.values():
        assert config.everywhere
        assert all(place.startswith("~/") for place in config.everywhere)
        assert not any(place.startswith(("~", "/")) for place in config.project)


@pytest.mark.parametrize(
    ("agent", "url", "command"),
    [
        ("claude-code", {"type": "http", "url": "U"}, {"type": "stdio", "command": "a", "args": ["b"]}),
        ("codex", {"url": "U"}, {"command": "a", "args": ["b"]}),
        ("gemini-cli", {"httpUrl": "U"}, {"command": "a", "args": ["b"]}),
        ("windsurf", {"serverUrl": "U"}, {"command": "a", "args": ["b"]}),
        ("opencode", {"type": "remote", "url": "U"}, {"type": "local", "command": ["a", "b"]}),
        ("copilot", {"type": "http", "url": "U", "tools": ["*"]},
         {"type": "local", "command": "a", "args": ["b"], "tools": ["*"]}),
    ],
    ids=["claude-code", "codex", "gemini-cli", "windsurf", "opencode", "copilot"],
)  # fmt: skip
def test_an_entry_looks_as_the_host_wants_it(agent: str, url: object, command: object) -> None:
    shape = CONFIGS[agent].shape
    assert entry_for(shape, url="U") == url
    assert entry_for(shape, command=["a", "b"]) == command


@pytest.mark.parametrize(
    ("place", "variable", "found"),
    [
        ("~/.claude/skills", "CLAUDE_CONFIG_DIR", "/moved/skills"),
        ("~/.claude.json", "CLAUDE_CONFIG_DIR", "/moved/.claude.json"),
        ("~/.config/goose/skills", "XDG_CONFIG_HOME", "/moved/goose/skills"),
    ],
)
def test_a_variable_moves_a_folder(place: str, variable: str, found: str) -> None:
    assert {variable for _, variable, _ in MOVED} >= {variable}
    assert str(locate(place, HOME, {variable: "/moved"}).path) == found
    assert locate(place, HOME, {variable: "/moved"}).root == Path("/moved")
    for useless in ("", "relative/path"):
        assert locate(place, HOME, {variable: useless}).path == HOME / place[2:]


def test_a_variable_moves_nothing_that_only_begins_alike() -> None:
    assert locate("~/.claudette/skills", HOME, {"CLAUDE_CONFIG_DIR": "/moved"}).path == HOME / ".claudette/skills"


def test_an_unknown_agent_gets_a_suggestion() -> None:
    with pytest.raises(NotFoundError) as caught:
        find_agent("claude")
    assert "claude-code" in caught.value.hint
    with pytest.raises(NotFoundError) as caught:
        find_agent("nobody-knows-it")
    assert "--agent-dir" in caught.value.hint


def test_an_agent_is_known_to_be_here_by_what_it_left(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    (home / ".cursor").mkdir(parents=True)
    (project / ".claude").mkdir(parents=True)
    (tmp_path / "codex").mkdir()
    found = [agent.id for agent in present_agents(project, home, {"CODEX_HOME": str(tmp_path / "codex")})]
    assert found == ["claude-code", "codex", "cursor"]
