"""How common hosts are told of this server: the command where there is one, and the lines of a file."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from skillwire.install.agents import find_agent
from skillwire.install.commands import TOKEN, TOKEN_VARIABLE, http_commands
from skillwire.install.configs import CONFIGS, entry_for
from skillwire.install.connecting import lines_to_add

_COMMON = (
    "claude-code",
    "codex",
    "cursor",
    "gemini-cli",
    "vscode",
    "copilot",
    "windsurf",
    "opencode",
    "goose",
    "zed",
)


class Host(NamedTuple):
    """What a person does so that one host knows the server."""

    id: str
    title: str
    command: str | None
    file: str
    lines: str


@lru_cache(maxsize=16)  # by the few addresses by which people come
def hosts(name: str, url: str, *, token: bool) -> tuple[Host, ...]:
    """The hosts that most people have, with the server's real address filled in."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_")[:64] or "skills"  # every host takes such a name
    commands = http_commands(name, url, token=token)
    return tuple(_host(agent, name, url, commands.get(agent), token=token) for agent in _COMMON)


def _host(agent: str, name: str, url: str, command: str | None, *, token: bool) -> Host:
    config = CONFIGS[agent]
    entry = entry_for(config.shape, url=url, name=name)
    if token and config.format == "toml":
        entry["bearer_token_env_var"] = TOKEN_VARIABLE
    elif token:
        entry["headers"] = {"Authorization": TOKEN}
    file = (config.project or config.everywhere)[0]
    return Host(agent, find_agent(agent).title, command, file, "\n".join(lines_to_add(agent, name, entry)))
