"""The one line with which a host adds a server that is reached over HTTP, for the hosts that have one."""

from __future__ import annotations

import json
import shlex
from typing import Any

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
