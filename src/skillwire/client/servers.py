"""The location of a server: a URL, a command, a Git repository, or an entry of an ``mcpServers`` file.

``.mcp.json``, Claude Desktop, Cursor and VS Code use nearly the same format, and this module reads all of them,
also with comments and trailing commas.

Variables (``${HOME}``, ``${TOKEN:-none}``, ``${env:TOKEN}``) are replaced; an unset variable is an error, never
empty text. Values of ``env``, ``headers`` and arguments may be secrets, so no message and no ``repr`` shows them.

A file of a project is not trusted (Z1). A label is looked up in the user's own files first. The entry of a project
file is used, and its variables replaced, only after the user allowed it.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from skillwire.catalog.git_source import GitSource, is_git_source, parse_git_source
from skillwire.client import jsonc
from skillwire.client.command_line import command_line, without_secrets
from skillwire.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{([^}]*)\}")
_LOCAL_PORT = re.compile(r"(?:localhost|127\.0\.0\.1|\[::1\]):\d{1,5}(?:/[^\s?#]*)?")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"([!-~]([\t -~]*[!-~])?)?")
_MAX_CONFIG_BYTES = 4 * 1024 * 1024
_CONTROL = "contains a line end or a control character"
_FIX_VALUE = "fix the value, or the variable that it comes from"
_TABLES = ("mcpServers", "servers")
_PLACES = (".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json")
_HOME_PLACES = (
    ".claude.json",
    ".cursor/mcp.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".config/Code/User/mcp.json",
    "Library/Application Support/Code/User/mcp.json",
)


def as_url(target: str) -> str | None:
    """Return the URL that ``target`` means: itself, or ``http://`` before a port of this machine."""
    if "://" in target:
        return target
    return f"http://{target}" if _LOCAL_PORT.fullmatch(target) else None


def with_usual_path(url: str) -> str | None:
    """Return the URL with the path ``/mcp``, or ``None`` if it has a path."""
    parts = urlsplit(url)
    return None if parts.path.strip("/") else parts._replace(path="/mcp").geturl()


def target_kind(target: str) -> Literal["git", "url", "path", "label"]:
    """The kind of a TARGET: the first in this order that it can be.

    A path that exists is preferred to ``owner/repository`` and to a label.
    """
    if is_git_source(target):
        return "git"
    if os.path.exists(target):
        return "path"
    return "label" if as_url(target) is None else "url"


@dataclass(frozen=True, slots=True)
class UrlServer:
    """A server reached over Streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        if not self.url.isprintable():  # so the message does not show it
            raise FormatError("url-invalid", f"'url' {_CONTROL}", _FIX_VALUE)
        if not _is_web(self.url):
            # Not ``without_secrets`` alone: a password may contain a character that ends the host.
            shown = without_secrets(re.sub("//.*@", "//…@", self.url))
            raise FormatError("url-invalid", f"{shown!r:.200} is not the URL of a server", "write https://…/mcp")
        for name, value in self.headers.items():
            _check_header(name, value)

    def __repr__(self) -> str:
        return f"UrlServer({without_secrets(self.url)!r})"


@dataclass(frozen=True, slots=True)
class CommandServer:
    """A server that is started as a process, with messages over its stdin and stdout."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str | None = None

    def __post_init__(self) -> None:
        if not self.command or not self.command[0]:
            raise FormatError("server-invalid", "the command is empty", "add the program to start")

    def __repr__(self) -> str:
        count = len(self.command) - 1
        return f"CommandServer({program_of(self.command)!r}, … {count} arguments, cwd={self.cwd!r})"


ServerPlace: TypeAlias = UrlServer | CommandServer
SkillPlace: TypeAlias = ServerPlace | GitSource


def program_of(command: Sequence[str]) -> str:
    """The program of a command, for messages. Some users write the whole command, with secrets, as the program."""
    first, space, _ = command[0].partition(" ")
    return f"{first} …" if space else first


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        is_place = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and is_place


def _check_header(name: str, value: str) -> None:
    """Refuse an invalid header here: an error of the HTTP client would contain the value."""
    if not _HEADER_NAME.fullmatch(name):  # not shown: some users write the whole header here
        raise FormatError(
            "server-invalid",
            "'headers' has an invalid header name",
            'write names and values: "Authorization": "Bearer …"',
        )
    if not _HEADER_VALUE.fullmatch(value):
        raise FormatError("server-invalid", f"'headers.{name:.80}' {_why_no_header(value)}", _FIX_VALUE)


def _why_no_header(value: str) -> str:
    if not value.isascii():
        return "contains a character that is not ASCII"
    return "begins or ends with a space" if value.isprintable() else _CONTROL


def address_of(target: object) -> str:
    """Where a target of ``connect`` is, without secrets: a URL, a command, a label, or the type of an object."""
    if isinstance(target, Mapping):
        entry = cast("Mapping[str, Any]", target)
        url = str(entry["git"]).removeprefix("git+") if "git" in entry else _url_of(entry)
        if url is not None:
            return without_secrets(str(url))
        return command_line(_words_of(entry)) if entry.get("command") else ""
    if isinstance(target, UrlServer):
        return without_secrets(target.url)
    if isinstance(target, GitSource):
        return str(target)
    if isinstance(target, CommandServer):
        return command_line(target.command)
    if isinstance(target, str):
        return without_secrets(target)
    if isinstance(target, list | tuple):
        return command_line([str(word) for word in cast("Sequence[object]", target)])
    return f"in memory: {type(target).__name__}"


def parse_server(entry: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> SkillPlace:
    """Parse an entry of an ``mcpServers`` file. ``{"git": "acme/skills@v1"}`` is a Git repository."""
    if "git" in entry:
        return _parse_git(entry)
    variables = os.environ if variables is None else variables
    fill = _Filler(variables)
    url = _url_of(entry)
    if url is not None:
        if entry.get("type") == "sse":
            raise FormatError(
                "transport-unsupported",
                "the entry uses the SSE transport, which is no longer part of the protocol",
                'find the Streamable HTTP URL of the server, and write "type": "http"',
            )
        return UrlServer(fill.text(url, "url"), fill.texts(entry.get("headers", {}), "headers"))
    if "command" not in entry:
        raise FormatError("server-invalid", "the entry has neither a 'command' nor a 'url'", "add one of them")
    arguments = entry.get("args", [])
    if not isinstance(arguments, list):
        raise FormatError("server-invalid", "'args' is not a list", 'write "args": ["…", "…"]')
    command = (entry["command"], *cast("list[Any]", arguments))
    cwd = entry.get("cwd")
    return CommandServer(
        tuple(fill.text(part, "command") for part in command),
        fill.texts(entry.get("env", {}), "env"),
        None if cwd is None else fill.text(cwd, "cwd"),
    )


def _parse_git(entry: Mapping[str, Any]) -> GitSource:
    if len(entry) > 1 or not isinstance(entry["git"], str):
        raise FormatError(
            "server-invalid",
            "an entry with 'git' has nothing else, and its value is a string",
            'write {"git": "owner/repository@ref#folder"}',
        )
    return parse_git_source(entry["git"])


def _url_of(entry: Mapping[str, Any]) -> object:
    return next((entry[key] for key in ("httpUrl", "url", "serverUrl") if key in entry), None)


def written_place(entry: Mapping[str, Any]) -> str:
    """The URL, the command or the repository of an entry, with variables not replaced, to show to the user."""
    url = entry["git"] if "git" in entry else _url_of(entry)
    return shlex.join(_words_of(entry)) if url is None else str(url)


def _words_of(entry: Mapping[str, Any]) -> list[str]:
    """The program and the arguments of an entry, which may be invalid."""
    parts = (entry.get("command", []), entry.get("args", []))
    lists = [cast("list[Any]", part) if isinstance(part, list) else [part] for part in parts]
    return [str(item) for items in lists for item in items]


class _Filler:
    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, value: object, what: str) -> str:
        if not isinstance(value, str):
            raise FormatError(
                "server-invalid", f"'{what}' contains a value that is not a string", "put it in quotes"
            )
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
                f"'{what}' uses ${{{other:.80}}}, which only the host of this file can replace",
                "write the value instead",
            )
        value = self._variables.get(name, default)
        if value is None:
            raise FormatError(
                "variable-unset", f"'{what}' uses the variable {name}, which is not set", f"set {name}"
            )
        return value


def read_servers(path: Path, *, strict: bool = False) -> dict[str, Mapping[str, Any]]:
    """The entries of one file by label, from ``mcpServers`` and ``servers``.

    With ``strict``, an invalid entry and a repeated label are errors. This is for callers that use all entries.
    Without it they are ignored, since the file of a host may contain anything that the host accepts.
    """
    document = _read_document(path)
    if strict:
        _check_tables(document, path.name)
    return {label: entry for label, entry in _labelled(document).items() if isinstance(entry, _Object)}


def _labelled(document: object) -> dict[str, Any]:
    """All labels of a document with their values, which may be invalid entries."""
    tables = [document.get(key) for key in _TABLES] if isinstance(document, _Object) else []
    return {label: entry for table in tables if isinstance(table, _Object) for label, entry in table.items()}


def _read_labels(path: Path) -> dict[str, Any]:
    """All labels of a file. Claude Code's entries for the current folder come first."""
    document = _read_document(path)
    folders = document.get("projects") if isinstance(document, _Object) else None
    here = folders.get(os.getcwd()) if isinstance(folders, _Object) else None
    return _labelled(document) | _labelled(here)


class _Object(dict[str, Any]):
    """A JSON object that records repeated keys; the last value counts, as usual in JSON."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.repeated: list[str] = []
        if len(self) < len(pairs):
            self.repeated = [key for key, times in Counter(key for key, _ in pairs).items() if times > 1]


def _read_document(path: Path) -> object:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_CONFIG_BYTES + 1)
        if len(data) > _MAX_CONFIG_BYTES:
            raise FormatError("config-invalid", "the file is too large for a list of servers", "check its path")
        return jsonc.parse(data.decode(), _Object)
    except OSError as error:
        raise NotFoundError(
            "config-unreadable", f"{path.name!r} cannot be read: {error.strerror}", "check its path"
        ) from error
    except UnicodeDecodeError as error:
        raise FormatError("config-invalid", f"{path.name!r} is not UTF-8 text", "fix the file") from error
    except FormatError as error:
        raise FormatError("config-invalid", f"{path.name!r}: {error.message}", error.hint) from error


def _check_tables(document: object, file: str) -> None:
    """N1: no entry of the file is dropped or replaced silently."""
    if not isinstance(document, _Object):
        raise FormatError("config-invalid", f"{file!r} is not an object", 'write {"mcpServers": {…}}')
    for key in _TABLES:
        if key in document.repeated:
            raise FormatError("config-invalid", f"{file!r} has {key!r} twice", "merge them")
    seen: dict[str, Any] = {}
    for key in _TABLES:
        table = document.get(key)
        if table is None:
            continue
        if not isinstance(table, _Object):
            raise FormatError(
                "config-invalid", f"{key!r} in {file!r} is not an object", f'write "{key}": {{"LABEL": {{…}}}}'
            )
        _check_table(table, seen, file)
        seen |= table


def _check_table(table: _Object, seen: Mapping[str, Any], file: str) -> None:
    hidden = [label for label, entry in table.items() if label in seen and seen[label] != entry]
    twice = table.repeated + hidden
    if twice:
        raise FormatError(
            "label-duplicate",
            f"{file!r} has two servers with the label {twice[0]!r:.80}",
            "rename one of them",
            rule="O1",
        )
    for label, entry in table.items():
        if not isinstance(entry, _Object):
            raise FormatError(
                "server-invalid",
                f"the server {label!r:.80} in {file!r} is not an object",
                'write {"url": "…"} or {"command": "…"}',
            )


def find_configs(folder: Path, home: Path) -> Iterator[Path]:
    """The configuration files of hosts: the user's own first, so that a project cannot override them (Z1)."""
    yield from own_configs(home)
    yield from (folder / name for name in _PLACES if (folder / name).is_file())


def own_configs(home: Path) -> Iterator[Path]:
    """The user's own configuration files that exist, readable or not (Z1)."""
    return (home / name for name in _HOME_PLACES if os.path.lexists(home / name))


def is_own(config: Path, home: Path) -> bool:
    """Whether a file is one of the user's own configuration files."""
    return config in {home / name for name in _HOME_PLACES}


def check_local_name(name: str, home: Path) -> None:
    """Z1: raise ``FormatError`` if a file or folder has the label of a server in the user's own configuration.

    A configuration file that cannot be read is an error too, since it may have the label.
    """
    if os.sep in name or name.startswith("."):  # not a label
        return
    here = f"for the local path: {shlex.quote(f'./{name}')}"
    for path in own_configs(home):
        if name in _read_own(path, name, f"{here}; for a server: fix {str(path)!r}"):
            raise FormatError(
                "label-shadowed",
                f"{name!r:.100} is a local path, and also a server in your {path.name}",
                f"{here}; for the server: --config {shlex.quote(str(path))}",
                rule="Z1",
            )


def check_own_configs(label: str, home: Path) -> None:
    """Z1: raise ``FormatError`` if one of the user's own files cannot be read: it may have ``label``."""
    for path in own_configs(home):
        _read_own(path, label, f"fix {str(path)!r}, or choose a file: --config FILE")


def _read_own(path: Path, label: str, hint: str) -> Mapping[str, Any]:
    """The labels in one of the user's own files; ``FormatError`` if it cannot be read (Z1)."""
    try:
        return _read_labels(path)
    except (FormatError, NotFoundError) as error:
        message = f"{label!r:.100} may be a server in your {path.name}, which cannot be read: {error.message}"
        raise FormatError("config-invalid", message, hint, rule="Z1") from error


def own_server(label: str, home: Path) -> SkillPlace:
    """The server with this label in the user's own configuration files. Files of a project are not read (Z1)."""
    if os.path.exists(label):
        otherwise = f"for a local folder, give DirectoryCatalog({label[:200]!r})"
    elif " " in label:
        otherwise = "for a command, give a list of strings"
    else:
        otherwise = "give the URL or the command of the server instead"
    return parse_server(find_server(label, own_configs(home), otherwise)[1])


def find_server(
    label: str, configs: Iterator[Path], otherwise: str = "choose a file: --config FILE"
) -> tuple[Path, Mapping[str, Any]]:
    """The entry of ``label`` in the first file that has it; ``NotFoundError`` lists the known labels.

    A file that cannot be read is skipped, and is named in the error if no file has the label. An invalid entry is
    an error: a later file must not replace it (Z1).
    """
    known: set[str] = set()
    looked: list[str] = []
    unreadable: NotFoundError | None = None
    for path in configs:
        try:
            servers = _read_labels(path)
        except (FormatError, NotFoundError) as error:
            unreadable = error if isinstance(error, NotFoundError) else unreadable
            looked.append(f"{path.name}, which cannot be read")
            continue
        if label in servers:
            if not isinstance(servers[label], _Object):
                raise FormatError(
                    "server-invalid",
                    f"the server {label!r:.80} in {path.name!r} is not an object",
                    f'write {{"url": "…"}} or {{"command": "…"}} in {str(path)!r}',
                    rule="Z1",
                )
            return path, servers[label]
        known |= servers.keys()
        looked.append(path.name)
    if unreadable is not None and not known:
        raise unreadable
    there = f"known labels: {', '.join(sorted(known)):.500}" if known else "no configuration names any server"
    where = f" (searched {', '.join(looked)})" if looked else ""
    raise NotFoundError("server-unknown", f"no server has the label {label!r:.100}{where}; {there}", otherwise)
