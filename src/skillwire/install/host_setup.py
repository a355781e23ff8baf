"""How to connect a host to a server over HTTP: a command, a link that opens the host, and lines for its file."""

from __future__ import annotations

import base64
import json
import re
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from skillwire.install.agents import CONFIGS, TOKEN, TOKEN_VARIABLE, entry_for, find_agent, http_commands
from skillwire.install.config_edit import lines_to_add

COMMON_HOSTS = (
    "claude-code", "codex", "cursor", "gemini-cli", "vscode", "copilot", "windsurf", "opencode", "goose", "zed",
)  # fmt: skip


class HostSetup(NamedTuple):
    """How to connect one host: a command or a link if it has one, and lines for its configuration file."""

    id: str
    title: str
    command: str | None
    file: str
    lines: str
    link: str | None


@lru_cache(maxsize=16)  # one for each address that callers use
def host_setups(name: str, url: str, *, token: bool) -> tuple[HostSetup, ...]:
    """The setups of common hosts for the server at ``url``."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:64] or "skills"  # valid in every host
    commands = http_commands(name, url, token=token)
    setups: list[HostSetup] = []
    for agent in COMMON_HOSTS:
        config = CONFIGS[agent]
        entry = entry_for(config.shape, url=url, name=name)
        if token and config.format == "toml":
            entry["bearer_token_env_var"] = TOKEN_VARIABLE
        elif token:
            entry["headers"] = {"Authorization": TOKEN}
        file = (config.project or config.everywhere)[0]
        lines = "\n".join(lines_to_add(agent, name, entry))
        link = None if token else _install_link(agent, name, entry)  # a link would contain the token
        setups.append(HostSetup(agent, find_agent(agent).title, commands.get(agent), file, lines, link))
    return tuple(setups)


def _install_link(agent: str, name: str, entry: dict[str, Any]) -> str | None:
    """The link that opens the host and adds the server."""
    if agent == "cursor":
        config = base64.b64encode(json.dumps(entry).encode()).decode()
        return f"cursor://anysphere.cursor-deeplink/mcp/install?name={quote(name)}&config={quote(config, safe='')}"
    if agent == "vscode":
        return f"vscode:mcp/install?{quote(json.dumps({'name': name, **entry}), safe='')}"
    return None
