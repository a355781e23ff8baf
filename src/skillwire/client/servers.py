"""Where a server is: a URL, a command, or an entry of the ``mcpServers`` file that hosts share.

``.mcp.json``, Claude Desktop, Cursor and VS Code write nearly the same file; the differences are read here.
Variables (``${HOME}``, ``${TOKEN:-none}``, ``${env:TOKEN}``) are filled in; one that is not set is an error, never
empty text. Values of ``env``, ``headers`` and arguments may be secrets: they appear in no message and no ``repr``.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

from skillwire.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{([^}]*)\}")
_MAX_CONFIG_BYTES = 4 * 1024 * 1024
_PLACES = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json")
_HOME_PLACES = (
    ".claude.json",
    ".cursor/mcp.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".config/Code/User/mcp.json",
    "Library/Application Support/Code/User/mcp.json",
)


@dataclass(frozen=True, slots=True)
class UrlServer:
    """A server reached over Streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        if not _is_web(self.url):
            raise FormatError(
                "url-invalid",
                f"{without_secrets(self.url)!r:.200} is not a URL of a server",
                "write https://…/mcp",
            )

    def __repr__(self) -> str:
        return f"UrlServer({without_secrets(self.url)!r})"


@dataclass(frozen=True, slots=True)
class CommandServer:
    """A server that is started and spoken to through its stdin and stdout."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None

    def __post_init__(self) -> None:
        if not self.command or not self.command[0]:
            raise FormatError("server-invalid", "the command is empty", "name the program to start")

    def __repr__(self) -> str:
        return f"CommandServer({self.command[0]!r}, … {len(self.command) - 1} words, cwd={self.cwd!r})"


ServerPlace: TypeAlias = UrlServer | CommandServer


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def without_secrets(url: str) -> str:
    """The URL without user, password and query, where people keep tokens."""
    return re.sub(r"//[^/?#]*@", "//…@", url.partition("?")[0])


def parse_server(entry: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> ServerPlace:
    """An entry of an ``mcpServers`` file."""
    variables = os.environ if variables is None else variables
    fill = _Filler(variables)
    url = next((entry[key] for key in ("httpUrl", "url", "serverUrl") if key in entry), None)
    if url is not None:
        if entry.get("type") == "sse":
            raise FormatError(
                "transport-unsupported",
                "the entry is for the SSE transport, which the protocol has retired",
                'ask the server\'s makers for its Streamable HTTP address and write "type": "http"',
            )
        return UrlServer(fill.text(url, "url"), fill.texts(entry.get("headers", {}), "headers"))
    if "command" not in entry:
        raise FormatError("server-invalid", "the entry has neither a 'command' nor a 'url'", "add one of them")
    words = entry.get("args", [])
    if not isinstance(words, list):
        raise FormatError("server-invalid", "'args' is not a list", 'write "args": ["…", "…"]')
    command = (entry["command"], *cast("list[Any]", words))
    cwd = entry.get("cwd")
    return CommandServer(
        tuple(fill.text(word, "command") for word in command),
        fill.texts(entry.get("env", {}), "env"),
        None if cwd is None else fill.text(cwd, "cwd"),
    )


class _Filler:
    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, value: object, what: str) -> str:
        if not isinstance(value, str):
            raise FormatError("server-invalid", f"'{what}' holds something that is not text", "quote it")
        return _VARIABLE.sub(lambda match: self._value(match, what), value)

    def texts(self, values: object, what: str) -> dict[str, str]:
        if not isinstance(values, dict):
            raise FormatError("server-invalid", f"'{what}' is not an object", "write names and values")
        return {key: self.text(value, f"{what}.{key}") for key, value in cast("dict[str, object]", values).items()}

    def _value(self, match: re.Match[str], what: str) -> str:
        name, default, other = cast("tuple[str, str | None, str | None]", match.groups())
        if other is not None:
            raise FormatError(
                "variable-unknown",
                f"'{what}' asks for ${{{other:.80}}}, which only its host can fill in",
                "write it out",
            )
        value = self._variables.get(name, default)
        if value is None:
            raise FormatError(
                "variable-unset", f"'{what}' needs the variable {name}, which is not set", f"set {name}"
            )
        return value


def read_servers(path: Path) -> dict[str, Mapping[str, Any]]:
    """The entries of one file by their labels. Both spellings, ``mcpServers`` and ``servers``, are read."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_CONFIG_BYTES + 1)
        if len(data) > _MAX_CONFIG_BYTES:
            raise FormatError(
                "config-invalid", f"{path.name!r} is too large to be a list of servers", "check --config"
            )
        document = json.loads(data)
    except OSError as error:
        raise NotFoundError("config-unreadable", f"{path.name!r} cannot be read", "check --config") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(
            "config-invalid", f"{path.name!r} is not JSON", "remove comments and trailing commas"
        ) from error
    servers: dict[str, Mapping[str, Any]] = {}
    for key in ("mcpServers", "servers"):
        found = document.get(key) if isinstance(document, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        if isinstance(found, dict):
            entries = cast("dict[str, object]", found)
            servers |= {
                label: cast("dict[str, Any]", entry) for label, entry in entries.items() if isinstance(entry, dict)
            }
    return servers


def find_configs(folder: Path, home: Path) -> Iterator[Path]:
    """The files that hosts keep, nearest first: those of the project, then those of the person."""
    for base, names in ((folder, _PLACES), (home, _HOME_PLACES)):
        for name in names:
            if (base / name).is_file():
                yield base / name


def find_server(label: str, configs: Iterator[Path]) -> tuple[Path, Mapping[str, Any]]:
    """The entry called ``label`` in the first file that has one; ``NotFoundError`` lists the labels there are.

    A file that cannot be read does not hide the others; it is named if the label is nowhere.
    """
    known: set[str] = set()
    looked: list[str] = []
    for path in configs:
        try:
            servers = read_servers(path)
        except FormatError:
            looked.append(f"{path.name}, which is not JSON")
            continue
        if label in servers:
            return path, servers[label]
        known |= servers.keys()
        looked.append(path.name)
    there = f"the labels there are: {', '.join(sorted(known)):.500}" if known else "no file has a server in it"
    where = f" (looked in {', '.join(looked)})" if looked else ""
    raise NotFoundError(
        "server-unknown", f"no server is labelled {label!r:.100}{where}; {there}", "give --config FILE"
    )
