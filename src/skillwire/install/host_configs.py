"""Where hosts keep the list of their MCP servers, and the form of an entry there: a table.

``keys`` leads to the object with one member for each server. Every row was compared with the public documentation
of its vendor in November 2026 (for claude-code, cursor and windsurf: with guides that quote it). Zed's file in a
project could not be confirmed and is not in the table.
"""

from __future__ import annotations

import json
import shlex
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from skillwire.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Format: TypeAlias = Literal["json", "toml", "yaml"]
Shape: TypeAlias = Literal["plain", "typed", "httpUrl", "serverUrl", "copilot", "opencode", "goose"]
TOKEN = "Bearer YOUR-TOKEN"  # noqa: S105 - a placeholder
TOKEN_VARIABLE = "SKILLWIRE_TOKEN"  # noqa: S105 - the name of a variable


class Older(NamedTuple):
    """An older form that the host still reads; a file in this form keeps it."""

    keys: tuple[str, ...]
    extra: Mapping[str, Any]  # additional members of an entry in the older form


class HostConfig(NamedTuple):
    """The files of one host, in a project and for the account. The first existing one is used."""

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
        near = get_close_matches(agent, CONFIGS, 3)
        known = f"did you mean {' or '.join(near)}?" if near else f"known hosts: {', '.join(CONFIGS)};"
        raise NotFoundError(
            "config-unknown",
            f"the MCP configuration of {agent!r:.80} is unknown",
            f"{known} for others, follow the documentation of the host",
        )
    return CONFIGS[agent]


def entry_for(
    shape: Shape, *, url: str | None = None, command: Sequence[str] = (), name: str = ""
) -> dict[str, Any]:
    """Return the entry of a server with ``url`` or ``command`` in the form ``shape``."""
    if url is not None:
        return _url_entry(shape, url, name)
    words = {"command": command[0], "args": list(command[1:])}
    match shape:
        case "typed":
            return {"type": "stdio", **words}
        case "copilot":
            return {"type": "local", **words, "tools": ["*"]}
        case "opencode":
            return {"type": "local", "command": list(command)}
        case "goose":
            cmd, args = command[0], list(command[1:])
            return {"name": name, "type": "stdio", "enabled": True, "cmd": cmd, "args": args, "timeout": 300}
        case _:
            return words


def has_only_ours(config: HostConfig, entry: object, extra: Mapping[str, Any]) -> bool:
    """Return whether ``entry`` has only the members of ``entry_for`` and ``extra``: no variables, no secrets."""
    written = (entry_for(config.shape, url=""), entry_for(config.shape, command=[""]))
    return isinstance(entry, dict) and any(entry.keys() == {**each, **extra}.keys() for each in written)


def _url_entry(shape: Shape, url: str, name: str) -> dict[str, Any]:
    match shape:
        case "typed":
            return {"type": "http", "url": url}
        case "copilot":
            return {"type": "http", "url": url, "tools": ["*"]}
        case "opencode":
            return {"type": "remote", "url": url}
        case "goose":
            return {"name": name, "type": "streamable_http", "enabled": True, "uri": url, "timeout": 300}
        case "httpUrl" | "serverUrl":
            return {shape: url}
        case _:
            return {"url": url}


def http_entry(url: str, *, token: bool) -> dict[str, Any]:
    """Return an entry of an ``mcpServers`` file, with a placeholder if a token is required."""
    entry: dict[str, Any] = {"type": "http", "url": url}
    return {**entry, "headers": {"Authorization": TOKEN}} if token else entry


def http_commands(name: str, url: str, *, token: bool) -> dict[str, str]:
    """Return the command that adds the server, for each host that has one, by its id in ``agents.py``."""
    header = ["--header", f"Authorization: {TOKEN}"] if token else []
    variable = ["--bearer-token-env-var", TOKEN_VARIABLE] if token else []
    return {
        "claude-code": shlex.join(["claude", "mcp", "add", "--transport", "http", name, url, *header]),
        "codex": shlex.join(["codex", "mcp", "add", name, "--url", url, *variable]),
        "gemini-cli": shlex.join(["gemini", "mcp", "add", "--transport", "http", name, url, *header]),
        "vscode": shlex.join(["code", "--add-mcp", json.dumps({"name": name, **http_entry(url, token=token)})]),
    }
