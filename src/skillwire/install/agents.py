"""The folders that agents read skills from: a table, and the variables that move them.

An agent is data. The folder of any other agent is given with ``--agent-dir``. The table follows the most used
installer in November 2026.
"""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from skillwire.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SHARED_PROJECT = ".agents/skills"
SHARED_EVERYWHERE = "~/.agents/skills"
# The beginning of a path, the variable that moves it, and the new path below the folder of the variable.
MOVED = (
    ("~/.claude.json", "CLAUDE_CONFIG_DIR", ".claude.json"),
    ("~/.claude", "CLAUDE_CONFIG_DIR", ""),
    ("~/.codex", "CODEX_HOME", ""),
    ("~/.config", "XDG_CONFIG_HOME", ""),
    ("~/.copilot", "COPILOT_HOME", ""),
    ("~/.hermes", "HERMES_HOME", ""),
)


class Agent(NamedTuple):
    """One agent: its folder in a project, its folder for the account, and the files that show its presence."""

    id: str
    title: str
    project: str
    everywhere: str
    signs: tuple[str, ...]


def _own(name: str, title: str, folder: str) -> Agent:
    """Return an agent that keeps everything in one folder."""
    return Agent(name, title, f".{folder}/skills", f"~/.{folder}/skills", (f"~/.{folder}", f".{folder}"))


_TABLE = (
    Agent("amp", "Amp", SHARED_PROJECT, "~/.config/agents/skills", ("~/.config/amp",)),
    _own("augment", "Augment", "augment"),
    _own("claude-code", "Claude Code", "claude"),
    Agent("cline", "Cline", SHARED_PROJECT, SHARED_EVERYWHERE, ("~/.cline", ".cline", ".clinerules")),
    Agent("codex", "Codex", SHARED_PROJECT, "~/.codex/skills", ("~/.codex", ".codex")),
    _own("continue", "Continue", "continue"),
    Agent("copilot", "GitHub Copilot", SHARED_PROJECT, "~/.copilot/skills", ("~/.copilot",)),
    Agent("crush", "Crush", ".crush/skills", "~/.config/crush/skills", ("~/.config/crush", ".crush")),
    Agent("cursor", "Cursor", SHARED_PROJECT, "~/.cursor/skills", ("~/.cursor", ".cursor")),
    Agent("droid", "Droid", SHARED_PROJECT, "~/.factory/skills", ("~/.factory", ".factory")),
    Agent("gemini-cli", "Gemini CLI", SHARED_PROJECT, "~/.gemini/skills", ("~/.gemini", ".gemini")),
    Agent("goose", "goose", ".goose/skills", "~/.config/goose/skills", ("~/.config/goose", ".goose")),
    _own("grok", "Grok", "grok"),
    _own("hermes", "Hermes", "hermes"),
    _own("junie", "Junie", "junie"),
    Agent("kilo", "Kilo Code", SHARED_PROJECT, "~/.kilo/skills", ("~/.kilo", ".kilo")),
    Agent("kimi", "Kimi CLI", SHARED_PROJECT, SHARED_EVERYWHERE, ("~/.kimi", "~/.kimi-code")),
    _own("kiro", "Kiro", "kiro"),
    Agent("openclaw", "OpenClaw", "skills", "~/.openclaw/skills", ("~/.openclaw",)),
    Agent(
        "opencode",
        "OpenCode",
        SHARED_PROJECT,
        "~/.config/opencode/skills",
        ("~/.config/opencode", ".opencode", "opencode.json", "opencode.jsonc"),
    ),
    _own("openhands", "OpenHands", "openhands"),
    Agent("pi", "Pi", ".pi/skills", "~/.pi/agent/skills", ("~/.pi", ".pi")),
    _own("qwen", "Qwen Code", "qwen"),
    Agent("replit", "Replit", SHARED_PROJECT, "~/.config/agents/skills", (".replit",)),
    _own("roo", "Roo Code", "roo"),
    Agent("vscode", "VS Code", SHARED_PROJECT, "~/.copilot/skills", (".vscode", "~/.config/Code")),
    Agent("warp", "Warp", SHARED_PROJECT, SHARED_EVERYWHERE, ("~/.warp",)),
    Agent(
        "windsurf",
        "Windsurf",
        ".windsurf/skills",
        "~/.codeium/windsurf/skills",
        ("~/.codeium/windsurf", ".windsurf"),
    ),
    Agent("zed", "Zed", SHARED_PROJECT, SHARED_EVERYWHERE, ("~/.config/zed", ".zed")),
)
AGENTS: Mapping[str, Agent] = {agent.id: agent for agent in _TABLE}


class Located(NamedTuple):
    """A path on this machine, and the folder that it must not leave: the home, or the folder of a variable."""

    path: Path
    root: Path


def find_agent(name: str) -> Agent:
    """Return the agent with this id; an unknown one gets suggestions."""
    if name in AGENTS:
        return AGENTS[name]
    near = get_close_matches(name, AGENTS, 3)
    known = f"did you mean {' or '.join(near)}?" if near else f"the agents are: {', '.join(AGENTS)};"
    raise NotFoundError(
        "agent-unknown", f"unknown agent {name!r:.80}", f"{known} for others use --agent-dir FOLDER"
    )


def locate(place: str, home: Path, environment: Mapping[str, str]) -> Located:
    """Resolve ``~/…`` for this user. A variable without an absolute path is ignored."""
    for beginning, variable, below in MOVED:
        moved = environment.get(variable, "")
        if os.path.isabs(moved) and (place == beginning or place.startswith(f"{beginning}/")):
            rest = place[len(beginning) + 1 :]
            return Located(Path(moved, below, rest), Path(moved))
    return Located(home / place.removeprefix("~/"), home)


def present_agents(project: Path, home: Path, environment: Mapping[str, str]) -> Iterator[Agent]:
    """Yield the agents whose files exist here."""
    for agent in AGENTS.values():
        places = (
            locate(sign, home, environment).path if sign.startswith("~/") else project / sign
            for sign in agent.signs
        )
        if any(os.path.lexists(place) for place in places):
            yield agent
