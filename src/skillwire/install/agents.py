"""The known agents, as data: the folders of their skills, and the files that list their MCP servers.

The folder of any other agent is given with ``--agent-dir``. The table of folders follows the most used installer
in November 2026. Every row of ``CONFIGS`` was compared with the public documentation of its vendor at that time
(for claude-code, cursor and windsurf: with guides that quote it). Zed's file in a project could not be confirmed
and is not in the table.
"""

from __future__ import annotations

import json
import os
import shlex
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from skillwire.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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
    raise NotFoundError(
        "agent-unknown",
        f"unknown agent {name!r:.80}",
        f"{_similar(name, AGENTS)} for others use --agent-dir FOLDER",
    )


def _similar(name: str, known: Mapping[str, object]) -> str:
    near = get_close_matches(name, known, 3)
    return f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)};"


def locate(place: str, home: Path, environment: Mapping[str, str]) -> Located:
    """Resolve ``~/…`` for this user. A variable without an absolute path is ignored."""
    for beginning, variable, below in MOVED:
        moved = environment.get(variable, "")
        if os.path.isabs(moved) and (place == beginning or place.startswith(f"{beginning}/")):
            rest = place[len(beginning) + 1 :]
            return Located(Path(moved, below, rest), Path(moved))
    return Located(home / place.removeprefix("~/"), home)


def shown(path: Path, home: Path) -> str:
    """Return a path for messages, with ``~`` for the home."""
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def present_agents(project: Path, home: Path, environment: Mapping[str, str]) -> Iterator[Agent]:
    """Yield the agents whose files exist here."""
    for agent in AGENTS.values():
        places = (
            locate(sign, home, environment).path if sign.startswith("~/") else project / sign
            for sign in agent.signs
        )
        if any(os.path.lexists(place) for place in places):
            yield agent


Format: TypeAlias = Literal["json", "toml", "yaml"]
Shape: TypeAlias = Literal["plain", "typed", "httpUrl", "serverUrl", "copilot", "opencode", "goose"]
TOKEN = "Bearer YOUR-TOKEN"  # noqa: S105 - a placeholder
TOKEN_VARIABLE = "SKILLWIRE_TOKEN"  # noqa: S105 - the name of a variable


class Older(NamedTuple):
    """An older form that the host still reads; a file in this form keeps it."""

    keys: tuple[str, ...]
    extra: Mapping[str, Any]  # additional members of an entry in the older form


class HostConfig(NamedTuple):
    """The files of one host, in a project and for the account. The first existing one is used.

    ``keys`` leads to the object with one member for each server.
    """

    project: tuple[str, ...]
    everywhere: tuple[str, ...]
    keys: tuple[str, ...] = ("mcpServers",)
    format: Format = "json"
    shape: Shape = "plain"
    older: Older | None = None


CONFIGS: Mapping[str, HostConfig] = {
    "claude-code": HostConfig((".mcp.json",), ("~/.claude.json",), shape="typed"),
    "codex": HostConfig((".codex/config.toml",), ("~/.codex/config.toml",), ("mcp_servers",), "toml"),
    "copilot": HostConfig((".github/mcp.json",), ("~/.copilot/mcp-config.json",), shape="copilot"),
    "cursor": HostConfig((".cursor/mcp.json",), ("~/.cursor/mcp.json",)),
    "gemini-cli": HostConfig((".gemini/settings.json",), ("~/.gemini/settings.json",), shape="httpUrl"),
    "goose": HostConfig((), ("~/.config/goose/config.yaml",), ("extensions",), "yaml", "goose"),
    "kiro": HostConfig((".kiro/settings/mcp.json",), ("~/.kiro/settings/mcp.json",)),
    "opencode": HostConfig(  # version 2, which also reads the files of version 1
        ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
        ("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"),
        ("mcp", "servers"),
        shape="opencode",
        older=Older(("mcp",), {"enabled": True}),
    ),
    # Version 1 writes the servers of a project into .mcp.json, and also reads those in its settings.
    "qwen": HostConfig((".qwen/settings.json",), ("~/.qwen/settings.json",), shape="httpUrl"),
    "vscode": HostConfig(
        (".vscode/mcp.json",),
        ("~/.config/Code/User/mcp.json", "~/Library/Application Support/Code/User/mcp.json"),
        ("servers",),
        shape="typed",
    ),
    "windsurf": HostConfig((), ("~/.codeium/windsurf/mcp_config.json",), shape="serverUrl"),
    "zed": HostConfig((), ("~/.config/zed/settings.json",), ("context_servers",)),
}


def find_config(agent: str) -> HostConfig:
    """Return the configuration of ``agent``."""
    if agent not in CONFIGS:
        raise NotFoundError(
            "config-unknown",
            f"the MCP configuration of {agent!r:.80} is unknown",
            f"{_similar(agent, CONFIGS)} for others, follow the documentation of the host",
        )
    return CONFIGS[agent]


def entry_for(
    shape: Shape, *, url: str | None = None, command: Sequence[str] = (), name: str = ""
) -> dict[str, Any]:
    """Return the entry of a server with ``url`` or ``command`` in the form ``shape``."""
    program, args = next(iter(command), ""), list(command[1:])
    words = {"command": program, "args": args}
    forms: dict[Shape, tuple[dict[str, Any], dict[str, Any]]] = {
        "plain": ({"url": url}, words),
        "typed": ({"type": "http", "url": url}, {"type": "stdio", **words}),
        "httpUrl": ({"httpUrl": url}, words),
        "serverUrl": ({"serverUrl": url}, words),
        "copilot": ({"type": "http", "url": url, "tools": ["*"]}, {"type": "local", **words, "tools": ["*"]}),
        "opencode": ({"type": "remote", "url": url}, {"type": "local", "command": list(command)}),
        "goose": (
            {"name": name, "type": "streamable_http", "enabled": True, "uri": url, "timeout": 300},
            {"name": name, "type": "stdio", "enabled": True, "cmd": program, "args": args, "timeout": 300},
        ),
    }
    with_url, with_command = forms[shape]
    return with_command if url is None else with_url


def has_only_ours(config: HostConfig, entry: object, extra: Mapping[str, Any]) -> bool:
    """Return whether ``entry`` has only the members of ``entry_for`` and ``extra``: no variables, no secrets."""
    written = (entry_for(config.shape, url=""), entry_for(config.shape, command=[""]))
    return isinstance(entry, dict) and any(entry.keys() == {**each, **extra}.keys() for each in written)


def http_entry(url: str, *, token: bool) -> dict[str, Any]:
    """Return an entry of an ``mcpServers`` file, with a placeholder if a token is required."""
    entry = entry_for("typed", url=url)
    return {**entry, "headers": {"Authorization": TOKEN}} if token else entry


def http_commands(name: str, url: str, *, token: bool) -> dict[str, str]:
    """Return the command that adds the server, for each host that has one, by its id."""
    header = ["--header", f"Authorization: {TOKEN}"] if token else []
    variable = ["--bearer-token-env-var", TOKEN_VARIABLE] if token else []
    return {
        "claude-code": shlex.join(["claude", "mcp", "add", "--transport", "http", name, url, *header]),
        "codex": shlex.join(["codex", "mcp", "add", name, "--url", url, *variable]),
        "gemini-cli": shlex.join(["gemini", "mcp", "add", "--transport", "http", name, url, *header]),
        "vscode": shlex.join(["code", "--add-mcp", json.dumps({"name": name, **http_entry(url, token=token)})]),
    }
