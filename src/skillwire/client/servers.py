"""Where a server is: a URL, a command, or an entry of the ``mcpServers`` file that hosts share.

``.mcp.json``, Claude Desktop, Cursor and VS Code write nearly the same file; the differences are read here. People
write comments and trailing commas into it, which are read too.
Variables (``${HOME}``, ``${TOKEN:-none}``, ``${env:TOKEN}``) are filled in; one that is not set is an error, never
empty text. Values of ``env``, ``headers`` and arguments may be secrets: they appear in no message and no ``repr``.

A file that came with a project may be that of a stranger (Z1): a label is looked up in the user's own files first,
and what a project's file has for it is used, and its variables filled in, only after the user allowed it.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from urllib.parse import urlsplit

from skillwire.client import jsonc
from skillwire.errors import FormatError, NotFoundError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_VARIABLE = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{([^}]*)\}")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"([!-~]([\t -~]*[!-~])?)?")
_MAX_CONFIG_BYTES = 4 * 1024 * 1024
_CONTROL = "holds a line end or a control character"
_CORRECT = "correct it, or the variable it comes from"
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


@dataclass(frozen=True, slots=True)
class UrlServer:
    """A server reached over Streamable HTTP."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def __post_init__(self) -> None:
        if not self.url.isprintable():  # and then it is not shown either
            raise FormatError("url-invalid", f"'url' {_CONTROL}", _CORRECT)
        if not _is_web(self.url):
            shown = without_secrets(re.sub("//.*@", "//…@", self.url))  # a password may hold what ends a host
            raise FormatError("url-invalid", f"{shown!r:.200} is not a URL of a server", "write https://…/mcp")
        for name, value in self.headers.items():
            _check_header(name, value)

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
        return f"CommandServer({program_of(self.command)!r}, … {len(self.command) - 1} words, cwd={self.cwd!r})"


ServerPlace: TypeAlias = UrlServer | CommandServer


def program_of(command: Sequence[str]) -> str:
    """What is started, for messages: some write all words, secrets too, where the program alone belongs."""
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
    """What HTTP would refuse is refused here: what it says then has the value in it."""
    if not _HEADER_NAME.fullmatch(name):  # it is not repeated: some write the whole header there
        raise FormatError(
            "server-invalid",
            "'headers' has a name that is none of a header",
            'write names and values: "Authorization": "Bearer …"',
        )
    if not _HEADER_VALUE.fullmatch(value):
        raise FormatError("server-invalid", f"'headers.{name:.80}' {_why_no_header(value)}", _CORRECT)


def _why_no_header(value: str) -> str:
    if not value.isascii():
        return "holds a character that is not ASCII"
    return "begins or ends with a space" if value.isprintable() else _CONTROL


def without_secrets(url: str) -> str:
    """The URL without user, password and query, where people keep tokens."""
    return re.sub(r"//[^/?#]*@", "//…@", url.partition("?")[0])


def parse_server(entry: Mapping[str, Any], variables: Mapping[str, str] | None = None) -> ServerPlace:
    """An entry of an ``mcpServers`` file."""
    variables = os.environ if variables is None else variables
    fill = _Filler(variables)
    url = _url_of(entry)
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


def _url_of(entry: Mapping[str, Any]) -> object:
    return next((entry[key] for key in ("httpUrl", "url", "serverUrl") if key in entry), None)


def written_place(entry: Mapping[str, Any]) -> str:
    """The URL or the command of an entry as the file has it: no variable is filled in. For the user to decide."""
    url = _url_of(entry)
    if url is not None:
        return str(url)
    parts = (entry.get("command", ""), entry.get("args", []))
    lists = [cast("list[Any]", part) if isinstance(part, list) else [part] for part in parts]
    return shlex.join(str(word) for words in lists for word in words)


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


def read_servers(path: Path, *, strict: bool = False) -> dict[str, Mapping[str, Any]]:
    """The entries of one file by their labels. Both spellings, ``mcpServers`` and ``servers``, are read.

    ``strict`` is for whoever means all of them: one that is no entry, or hidden by another, is an error then. A
    host's own file is only looked through, and may hold whatever that host puts up with.
    """
    document = _read_document(path)
    if strict:
        _check_tables(document, path.name)
    return {label: entry for label, entry in _labelled(document).items() if isinstance(entry, _Object)}


def _labelled(document: object) -> dict[str, Any]:
    """Every label in a document, with what it has for it, which may be no entry."""
    tables = [document.get(key) for key in _TABLES] if isinstance(document, _Object) else []
    return {label: entry for table in tables if isinstance(table, _Object) for label, entry in table.items()}


def _read_labels(path: Path) -> dict[str, Any]:
    """The same of a file, with what Claude Code keeps in it for the current folder alone, which comes first."""
    document = _read_document(path)
    folders = document.get("projects") if isinstance(document, _Object) else None
    here = folders.get(os.getcwd()) if isinstance(folders, _Object) else None
    return _labelled(document) | _labelled(here)


class _Object(dict[str, Any]):
    """A JSON object that remembers keys that it had twice; the last one counts, as for every reader of JSON."""

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
            raise FormatError("config-invalid", "it is too large to be a list of servers", "check --config")
        return _parse(data)
    except OSError as error:
        raise NotFoundError(
            "config-unreadable", f"{path.name!r} cannot be read: {error.strerror}", "check --config"
        ) from error
    except (ValueError, RecursionError) as error:
        raise FormatError("config-invalid", f"{path.name!r} is not JSON", "correct it") from error
    except FormatError as error:
        raise FormatError("config-invalid", f"{path.name!r}: {error.message}", error.hint) from error


def _parse(data: bytes) -> object:
    try:
        return json.loads(data, object_pairs_hook=_Object)
    except json.JSONDecodeError:  # with comments, perhaps
        return jsonc.parse(data.decode(), _Object).value


def _check_tables(document: object, file: str) -> None:
    """N1: nothing in the file is dropped, preferred or shadowed silently."""
    if not isinstance(document, _Object):
        raise FormatError("config-invalid", f"{file!r} is not an object", 'write {"mcpServers": {…}}')
    for key in _TABLES:
        if key in document.repeated:
            raise FormatError("config-invalid", f"{file!r} has {key!r} twice", "make them one")
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
            "label-duplicate", f"{file!r} has two servers called {twice[0]!r:.80}", "rename one of them", rule="O1"
        )
    for label, entry in table.items():
        if not isinstance(entry, _Object):
            raise FormatError(
                "server-invalid",
                f"the server {label!r:.80} in {file!r} is not an object",
                'write {"url": "…"} or {"command": "…"}',
            )


def find_configs(folder: Path, home: Path) -> Iterator[Path]:
    """The files that hosts keep: the user's own, then those of the project, which cannot override them (Z1)."""
    yield from own_configs(home)
    yield from (folder / name for name in _PLACES if (folder / name).is_file())


def own_configs(home: Path) -> Iterator[Path]:
    """The user's own files: whatever is there, also if it cannot be read (Z1)."""
    return (home / name for name in _HOME_PLACES if os.path.lexists(home / name))


def is_own(config: Path, home: Path) -> bool:
    """Whether a file is one of the user's own, and not one that came with a project."""
    return config in {home / name for name in _HOME_PLACES}


def check_local_name(name: str, home: Path) -> None:
    """Z1: a file or folder of a project does not stand in for a server of the user's own configuration.

    Nor for one that may be in a file of theirs that cannot be read.
    """
    if os.sep in name or name.startswith("."):  # it is no label
        return
    here = f"for what is here: {shlex.quote(f'./{name}')}"
    for path in own_configs(home):
        if name in _read_own(path, name, f"{here}; for a server: correct {str(path)!r}"):
            raise FormatError(
                "label-shadowed",
                f"{name!r:.100} is here, and it is also a server in your {path.name}",
                f"{here}; for the server: --config {shlex.quote(str(path))}",
                rule="Z1",
            )


def check_own_configs(label: str, home: Path) -> None:
    """Z1: an entry of a project is not used for a label that the user may have in a file that cannot be read."""
    for path in own_configs(home):
        _read_own(path, label, f"correct {str(path)!r}, or name the file to use: --config FILE")


def _read_own(path: Path, label: str, hint: str) -> Mapping[str, Any]:
    """The labels in a file of the user's, which has to be readable to tell whether ``label`` is in it (Z1)."""
    try:
        return _read_labels(path)
    except (FormatError, NotFoundError) as error:
        message = f"{label!r:.100} may be a server in your {path.name}, which cannot be read: {error.message}"
        raise FormatError("config-invalid", message, hint, rule="Z1") from error


def find_server(label: str, configs: Iterator[Path]) -> tuple[Path, Mapping[str, Any]]:
    """The entry called ``label`` in the first file that has one; ``NotFoundError`` lists the labels there are.

    A file that cannot be read does not hide the others; it is named if the label is nowhere. What is no entry has
    its label nevertheless: a file that comes later does not stand in for it (Z1).
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
                    f'write {{"url": "…"}} or {{"command": "…"}} in {str(path)!r}, or name another: --config FILE',
                    rule="Z1",
                )
            return path, servers[label]
        known |= servers.keys()
        looked.append(path.name)
    if unreadable is not None and not known:
        raise unreadable
    there = f"the labels there are: {', '.join(sorted(known)):.500}" if known else "no file has a server in it"
    where = f" (looked in {', '.join(looked)})" if looked else ""
    raise NotFoundError(
        "server-unknown", f"no server is labelled {label!r:.100}{where}; {there}", "give --config FILE"
    )
