"""Where hosts keep the list of their MCP servers, and the form of an entry there: a table.

``keys`` leads to the object with one member for each server. Every row was compared with the public documentation
of its vendor in November 2026 (for claude-code, cursor and windsurf: with guides that quote it). Zed's file in a
project could not be confirmed and is not in the table.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from skillwire.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


Format: TypeAlias = Literal["json", "toml", "yaml"]
Shape: TypeAlias = Literal["plain", "typed", "httpUrl", "serverUrl", "copilot", "opencode", "goose"]


class Older(NamedTuple):
    """How a host's servers stood before, where it still reads that: a file that has them so stays so."""

    keys: tuple[str, ...]
    extra: Mapping[str, Any]  # what an entry there has beside what it has now


class HostConfig(NamedTuple):
    """One host's file, in a project (if it has one there) and for everything. The first that exists is used."""

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
    "opencode": HostConfig(  # version 2; it reads what version 1 wrote
        ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
        ("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"),
        ("mcp", "servers"),
        shape="opencode",
        older=Older(("mcp",), {"enabled": True}),
    ),
    # Version 1 writes a project's servers into .mcp.json, and reads those in its settings.
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
    """Where ``agent`` keeps its servers."""
    if agent not in CONFIGS:
        raise NotFoundError(
            "config-unknown",
            f"it is not known here where {agent!r:.80} keeps its MCP servers",
            f"known: {', '.join(CONFIGS)}; add the entry yourself as its makers describe",
        )
    return CONFIGS[agent]


def entry_for(
    shape: Shape, *, url: str | None = None, command: Sequence[str] = (), name: str = ""
) -> dict[str, Any]:
    """The entry of a server, as a host of ``shape`` wants it: of its ``url``, or of its ``command``."""
    if url is not None:
        return _of_url(shape, url, name)
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
    """Whether ``entry`` has only what ``entry_for`` writes, and ``extra``: no variables, no secrets."""
    written = (entry_for(config.shape, url=""), entry_for(config.shape, command=[""]))
    return isinstance(entry, dict) and any(entry.keys() == {**each, **extra}.keys() for each in written)


def _of_url(shape: Shape, url: str, name: str) -> dict[str, Any]:
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


TOKEN = "Bearer YOUR-TOKEN"  # noqa: S105 - a place to fill in
TOKEN_VARIABLE = "SKILLWIRE_TOKEN"  # noqa: S105 - the name of a variable


def http_entry(url: str, *, token: bool) -> dict[str, Any]:
    """The entry of an ``mcpServers`` file; with a place for a token if one is needed."""
    entry: dict[str, Any] = {"type": "http", "url": url}
    return {**entry, "headers": {"Authorization": TOKEN}} if token else entry


def http_commands(name: str, url: str, *, token: bool) -> dict[str, str]:
    """The command for each host, by its name in ``agents.py``."""
    header = ["--header", f"Authorization: {TOKEN}"] if token else []
    variable = ["--bearer-token-env-var", TOKEN_VARIABLE] if token else []
    return {
        "claude-code": shlex.join(["claude", "mcp", "add", "--transport", "http", name, url, *header]),
        "codex": shlex.join(["codex", "mcp", "add", name, "--url", url, *variable]),
        "gemini-cli": shlex.join(["gemini", "mcp", "add", "--transport", "http", name, url, *header]),
        "vscode": shlex.join(["code", "--add-mcp", json.dumps({"name": name, **http_entry(url, token=token)})]),
    }
