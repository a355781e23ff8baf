"""Adds the entry of a server to the configuration of a host, and removes it again.

The change is computed first, so that it can be shown. Then the file is replaced in one step, unless it has changed
since. A copy of the old file is kept beside it. An undo restores this copy if the file has not changed since;
otherwise it removes only the entry, and keeps a copy again. A file that cannot be changed safely is not changed,
and the lines to add are printed instead.

``host_setups`` has what a page shows to a user who connects a host by hand.

The functions over text (``lookup``, ``added``, ``removed``) are pure. Everything else in the text stays byte for
byte: JSON gets a member (``client/jsonc.py``), TOML gets a table at its end. Every result is parsed again and
compared before it is used.
"""

from __future__ import annotations

import base64
import json
import os
import re
import tomllib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import unified_diff
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import quote

from skillwire.client import jsonc
from skillwire.errors import FormatError, NotFoundError, StoreError
from skillwire.install.agents import (
    CONFIGS,
    TOKEN,
    TOKEN_VARIABLE,
    entry_for,
    find_agent,
    find_config,
    has_only_ours,
    http_commands,
    locate,
    shown,
)
from skillwire.install.transaction import read_file, replace_file
from skillwire.limits import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from skillwire.install.agents import HostConfig
    from skillwire.install.places import InstallScope

COMMON_HOSTS = (
    "claude-code", "codex", "cursor", "gemini-cli", "vscode", "copilot", "windsurf", "opencode", "goose", "zed",
)  # fmt: skip
_MAX_BYTES = 16 * MIB
_MAX_BACKUPS = 1000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Edit:
    """The old and the new content of a file; ``None`` if there is no file."""

    file: _File
    name: str
    new: bytes | None
    restored: Path | None = None  # the kept copy that becomes the file again

    @property
    def label(self) -> str:
        """The path of the file for messages."""
        return self.file.label

    @property
    def is_new(self) -> bool:
        """Whether the file does not exist yet."""
        return self.file.data is None

    @property
    def lines(self) -> list[str]:
        """The changed lines. They have no context, because other lines may contain secrets."""
        before, after = ((data or b"").decode().splitlines() for data in (self.file.data, self.new))
        found = list(unified_diff(before, after, lineterm="", n=0))
        return [line for line in found[2:] if not line.startswith("@@")]


@dataclass(frozen=True, slots=True)
class _File:
    """The file of a host with its current content."""

    path: Path
    label: str
    data: bytes | None
    is_private: bool

    @property
    def text(self) -> str:
        return "" if self.data is None else _text(self.data)

    @property
    def mode(self) -> int | None:
        """The permissions of the file and its copy; a new file in the home is private."""
        if self.data is not None:
            return self.path.stat().st_mode & 0o777
        return 0o600 if self.is_private else None


def plan_connect(agent: str, name: str, entry: dict[str, Any], scope: InstallScope) -> Edit | None:
    """Plan the change that adds ``entry`` under ``name``; ``None`` if the file has it already."""
    check_name(name)
    config = find_config(agent)
    file = _find(agent, config, scope, by_hand="add these lines yourself")
    with _prefixed(file.label):
        config, entry = in_style_of_file(config, file.text, entry)
        there = lookup(config, file.text, name)
        if there == entry:
            return None
        if there is not None:
            raise FormatError(
                "config-taken", f"another entry is called {name!r:.80}", "choose another name: --name NAME"
            )
        return Edit(file, name, _bytes(added(config, file.text, name, entry)))


def plan_undo(agent: str, name: str, scope: InstallScope, is_created: Callable[[Path], bool]) -> Edit:
    """Plan the change that removes ``name``; it restores the kept copy if nothing else has changed.

    ``is_created`` tells whether 'connect' made the file. Then the whole file is removed.
    """
    check_name(name)
    config = find_config(agent)
    file = _find(agent, config, scope, by_hand="remove the entry by hand")
    with _prefixed(file.label):
        config, extra = in_style_of_file(config, file.text, {})
        entry = lookup(config, file.text, name)
        if entry is None:
            raise NotFoundError("config-unknown", f"no entry is called {name!r:.80}", "there is nothing to undo")
        if not has_only_ours(config, entry, extra):
            raise FormatError(
                "config-by-hand",
                f"'connect' did not write the entry {name!r:.80} in this form",
                "remove it by hand",
            )
        if is_created(file.path) and _bytes(added(config, "", name, entry)) == file.data:
            return Edit(file, name, None, file.path)
        for copy in takewhile(Path.is_file, _backups(file.path, name)):
            before = _read(copy)
            with suppress(FormatError):
                if _bytes(added(config, _text(before or b""), name, entry)) == file.data:
                    return Edit(file, name, before, copy)
        return Edit(file, name, _bytes(removed(config, file.text, name, entry)))


def apply_edit(edit: Edit) -> Path | None:
    """Make the change and return the path of the kept copy, if there is one."""
    path = edit.file.path
    if _read(path) != edit.file.data:
        raise StoreError(
            "config-changed",
            f"{edit.label!r} has changed in the meantime",
            "nothing was written; run the command again",
        )
    backup = _keep(edit.file, edit.name) if edit.restored is None else None
    if edit.new is not None:
        replace_file(path, edit.new, mode=edit.file.mode)
    else:
        try:
            path.unlink()
        except OSError as error:
            raise StoreError(
                "write-failed",
                f"{path.name!r} could not be removed: {error.strerror}",
                "check the permissions of its folder",
            ) from error
    if edit.restored is not None:
        with suppress(OSError):  # the file is restored; an extra copy does no harm
            edit.restored.unlink()
    return backup


def lines_to_add(agent: str, name: str, entry: dict[str, Any]) -> list[str]:
    """Return the lines that the user can add by hand."""
    config = find_config(agent)
    if config.format == "toml":
        return table(config, name, entry).splitlines()
    if config.format == "json":
        return jsonc.insert("{}", config.keys, name, entry).splitlines()
    return [
        f"{config.keys[0]}:",
        f"  {name}:",
        *(f"    {key}: {json.dumps(value)}" for key, value in entry.items()),
    ]


def check_name(name: str) -> None:
    """Refuse a name that has another meaning in one of the formats."""
    if not _NAME.match(name):
        raise FormatError(
            "name-invalid", f"{name!r:.80} is not a valid name for a server", "use letters, digits, - and _"
        )


def _find(agent: str, config: HostConfig, scope: InstallScope, *, by_hand: str) -> _File:
    is_private = scope.kind == "global"
    labels = config.everywhere if is_private else config.project
    if not labels:
        raise NotFoundError(
            "config-unknown", f"{agent} has no known MCP configuration in a project", "use --global"
        )
    paths = [
        locate(label, scope.home, scope.environment).path if is_private else scope.project / label
        for label in labels
    ]
    path = next((each for each in paths if os.path.exists(each)), paths[0])
    # A variable may have moved it out of the home, so its label is not always that of the table.
    label = shown(path, scope.home) if is_private else labels[paths.index(path)]
    if config.format == "yaml":
        raise FormatError(
            "config-by-hand", f"{label} is YAML, which cannot be changed without losing its comments", by_hand
        )
    real = Path(os.path.realpath(path))
    if not is_private and Path(os.path.realpath(scope.project)) not in real.parents:
        raise FormatError(
            "folder-elsewhere",
            f"{label!r} is a link to a file outside of the project",
            "replace the link by a file",
        )
    return _File(real, label, _read(real), is_private)


def _read(path: Path) -> bytes | None:
    return read_file(path, _MAX_BYTES, "config", repr(path.name))


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError("config-invalid", "the file is not UTF-8 text", "correct it by hand") from error


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise FormatError(
            "config-invalid", "the entry cannot be written as UTF-8", "use other arguments"
        ) from error


def _backups(path: Path, name: str) -> Iterator[Path]:
    for number in range(1, _MAX_BACKUPS):
        yield path.with_name(f"{path.name}.before-{name}" + (f"-{number}" if number > 1 else ""))


def _keep(file: _File, name: str) -> Path | None:
    """Keep a copy of the file, unless there is no file, or an equal copy exists already."""
    if file.data is None:
        return None
    data = file.data
    for place in _backups(file.path, name):
        if not os.path.lexists(place):
            replace_file(place, data, mode=file.mode)
            return place
        if place.is_file() and _read(place) == data:
            return place
    raise StoreError(
        "config-backups", f"too many copies of {file.label!r}", f"remove some of {file.path.name}.before-{name}-*"
    )


@contextmanager
def _prefixed(label: str) -> Generator[None]:
    """Add the name of the file to errors about its text."""
    try:
        yield
    except (FormatError, NotFoundError) as error:
        error.message = f"{label}: {error.message}"
        raise


def in_style_of_file(config: HostConfig, text: str, entry: dict[str, Any]) -> tuple[HostConfig, dict[str, Any]]:
    """Return place and form of the entry; a file in the older form keeps it."""
    if config.older is None or not text.strip():
        return config, entry
    found = _at(_parsed(config, text), config.older.keys)
    found = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if config.keys[-1] in found or not any(isinstance(each, dict) and "type" in each for each in found.values()):
        return config, entry
    return config._replace(keys=config.older.keys), {**entry, **config.older.extra}


def lookup(config: HostConfig, text: str, name: str) -> Any:
    """Return the entry called ``name``, or ``None``."""
    return _at(_parsed(config, text), (*config.keys, name))


def _at(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def added(config: HostConfig, text: str, name: str, entry: dict[str, Any]) -> str:
    """Return the text with the entry, after checking that only the entry was added."""
    if config.format == "json":
        new = jsonc.insert(text, config.keys, name, entry)
    else:
        line = "\r\n" if "\r\n" in text else "\n"
        ended = text if not text or text.endswith("\n") else text + line
        new = ended + (line if text else "") + table(config, name, entry, line)
    expected = _with_entry(_parsed(config, text), config.keys, name, entry)
    try:
        after = _parsed(config, new)
    except FormatError:  # such as an inline table, which cannot be extended
        after = None
    if after != expected:
        raise FormatError("config-by-hand", "the file cannot be changed safely", "add these lines yourself")
    return new


def removed(config: HostConfig, text: str, name: str, entry: dict[str, Any]) -> str:
    """Return the text without the entry, after checking that only the entry was removed."""
    before = _parsed(config, text)
    if config.format == "json":
        candidates = [jsonc.remove(text, config.keys, name)]
    else:
        tables = [(table(config, name, entry, line), line) for line in ("\r\n", "\n")]
        pieces = [piece for written, line in tables for piece in (line + written, written)]  # with an empty line
        candidates = [text.replace(piece, "", 1) for piece in pieces if piece in text]
    for new in candidates:
        is_gone = lookup(config, new, name) is None
        if is_gone and _with_entry(_parsed(config, new), config.keys, name, entry) == before:
            return new
    raise FormatError("config-by-hand", f"the entry {name!r:.80} was changed by hand", "remove it by hand")


def table(config: HostConfig, name: str, entry: dict[str, Any], line: str = "\n") -> str:
    """Return a TOML table. Strings and lists of strings are the same in TOML and JSON."""
    rows = [f"[{'.'.join((*config.keys, name))}]{line}"]
    for key, value in entry.items():
        # We write no dates. A date in an entry becomes text here and differs then, so the user has to remove it.
        written = json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")
        rows.append(f"{key} = {written}{line}")
    return "".join(rows)


def _parsed(config: HostConfig, text: str) -> Any:
    if config.format == "json":
        return jsonc.parse(text) if text.strip("\ufeff \t\r\n") else {}
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError("config-invalid", f"invalid TOML: {error}", "correct the file by hand") from error


def _with_entry(before: Any, keys: Sequence[str], name: str, entry: dict[str, Any], at: str = "the file") -> Any:
    if not isinstance(before, dict):
        raise FormatError("config-invalid", f"{at} is not a table of servers", "correct the file by hand")
    there = cast("dict[str, Any]", before)
    if not keys:
        return {**there, name: entry}
    return {**there, keys[0]: _with_entry(there.get(keys[0], {}), keys[1:], name, entry, repr(keys[0]))}


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
