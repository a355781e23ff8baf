"""A server's entry into a host's own configuration, and out of it again.

The change is worked out first, so that it can be shown; then the file is replaced in one step, if it is still what
was shown, and what it was is kept beside it. Everything else in the file stays byte for byte: JSON gets a member
(``jsonc.py``), TOML gets a table at its end. Every result is read again and compared before it is offered. A file
that cannot be changed so is left alone, and the lines to add are given instead.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from skillwire.errors import FormatError, NotFoundError, StoreError
from skillwire.install import jsonc
from skillwire.install.agents import locate
from skillwire.install.configs import find_config
from skillwire.install.writing import replace_file

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from skillwire.install.configs import HostConfig
    from skillwire.install.places import Scope

_MAX_BYTES = 16 * 1024 * 1024
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Edit:
    """A file as it is and as it will be; ``None`` where there is none."""

    path: Path
    label: str
    old: bytes | None
    new: bytes | None

    @property
    def lines(self) -> list[str]:
        """What changes, line by line, and nothing around it: there may be secrets."""
        before, after = ((data or b"").decode().splitlines() for data in (self.old, self.new))
        found = list(unified_diff(before, after, lineterm="", n=0))
        return [line for line in found[2:] if not line.startswith("@@")]


def plan_connect(agent: str, name: str, entry: dict[str, Any], scope: Scope) -> Edit | None:
    """The change that adds ``entry`` under ``name``; ``None`` if it is there already."""
    _check_name(name)
    config = find_config(agent)
    path, label = _place(agent, config, scope)
    old = _read(path)
    text = "" if old is None else _text(old)
    with _naming(label):
        config, entry = _as_there(config, text, entry)
        there = _lookup(config, text, name)
        if there == entry:
            return None
        if there is not None:
            raise FormatError(
                "config-taken",
                f"there is another entry called {name!r:.80}",
                "choose another --name, or --undo it",
            )
        return Edit(path, label, old, _added(config, text, name, entry).encode())


def plan_undo(agent: str, name: str, scope: Scope) -> Edit:
    """The change that takes ``name`` out again: back to what was kept if nothing else changed since."""
    _check_name(name)
    config = find_config(agent)
    path, label = _place(agent, config, scope)
    old = _read(path)
    text = "" if old is None else _text(old)
    with _naming(label):
        config, _ = _as_there(config, text, {})
        entry = _lookup(config, text, name)
        if entry is None:
            raise NotFoundError(
                "config-unknown", f"there is no entry called {name!r:.80}", "there is nothing to undo"
            )
        for before in _kept(path, name):
            with suppress(FormatError):
                if _added(config, _text(before), name, entry).encode() == old:
                    return Edit(path, label, old, before)
        with suppress(FormatError):
            if _added(config, "", name, entry).encode() == old:  # it was made for this entry
                return Edit(path, label, old, None)
        return Edit(path, label, old, _removed(config, text, name, entry).encode())


def apply_edit(edit: Edit, name: str, *, keep: bool) -> Path | None:
    """Make the change; where what was there is kept, if it is to be."""
    if _read(edit.path) != edit.old:
        raise StoreError(
            "config-changed", f"{edit.label!r} was changed meanwhile", "nothing was written; try again"
        )
    backup = None
    if keep and edit.old is not None:
        backup = next(place for place in _backups(edit.path, name) if not os.path.lexists(place))
        replace_file(backup, edit.old, mode=edit.path.stat().st_mode & 0o777)
    if edit.new is None:
        edit.path.unlink()
    else:
        replace_file(edit.path, edit.new, mode=0o600 if edit.label.startswith("~") else None)
    return backup


def forget_backups(edit: Edit, name: str) -> None:
    """Remove what was kept, once the file is that again."""
    for place in _backups(edit.path, name):
        if not place.exists():
            return
        if edit.new is not None and place.read_bytes() == edit.new:
            place.unlink()


def lines_to_add(agent: str, name: str, entry: dict[str, Any]) -> list[str]:
    """What a person would write into a file that is not changed here."""
    config = find_config(agent)
    if config.format == "toml":
        return _table(config, name, entry).strip().splitlines()
    if config.format == "json":
        return jsonc.insert("{}", config.keys, name, entry).splitlines()
    return [
        f"{config.keys[0]}:",
        f"  {name}:",
        *(f"    {key}: {json.dumps(value)}" for key, value in entry.items()),
    ]


def _place(agent: str, config: HostConfig, scope: Scope) -> tuple[Path, str]:
    labels = config.project if scope.kind == "project" else config.everywhere
    if not labels:
        raise NotFoundError(
            "config-unknown", f"it is not known here that {agent} keeps servers in a project", "use --global"
        )
    if config.format == "yaml":
        raise FormatError(
            "config-by-hand",
            f"{labels[0]} is YAML, which cannot be changed here without losing its comments",
            "add these lines yourself",
        )
    found = [(_located(label, scope), label) for label in labels]
    path, label = next((each for each in found if each[0].exists()), found[0])
    real = Path(os.path.realpath(path))
    if scope.kind == "project" and Path(os.path.realpath(scope.project)) not in real.parents:
        raise FormatError("folder-elsewhere", f"{label!r} leads out of the project", "nothing was written")
    return real, label


def _located(label: str, scope: Scope) -> Path:
    if scope.kind == "project":
        return scope.project / label
    return locate(label, scope.home, scope.environment).path


def _check_name(name: str) -> None:
    if not _NAME.match(name):
        raise FormatError("name-invalid", f"{name!r:.80} is no name for a server", "use letters, digits, - and _")


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError("config-unreadable", f"{path.name!r} cannot be read: {error.strerror}", "") from error
    if len(data) > _MAX_BYTES:
        raise FormatError("config-invalid", f"{path.name!r} is too large to be a configuration", "look at it")
    return data


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError("config-invalid", "the file is not UTF-8 text", "correct it by hand") from error


def _as_there(config: HostConfig, text: str, entry: dict[str, Any]) -> tuple[HostConfig, dict[str, Any]]:
    """Where the entry goes and how it looks, in the style of a file that was written for an older host."""
    if config.older is None or not text.strip():
        return config, entry
    servers: Any = jsonc.parse(text).value
    for step in config.older.keys:
        servers = cast("dict[str, Any]", servers).get(step) if isinstance(servers, dict) else None
    found = cast("dict[str, Any]", servers) if isinstance(servers, dict) else {}
    if config.keys[-1] in found or not any(isinstance(each, dict) and "type" in each for each in found.values()):
        return config, entry
    return config._replace(keys=config.older.keys), {**entry, **config.older.extra}


def _lookup(config: HostConfig, text: str, name: str) -> Any:
    if config.format == "json":
        return jsonc.lookup(text, config.keys, name)
    value: Any = _toml(text)
    for step in (*config.keys, name):
        value = value.get(step) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return value  # pyright: ignore[reportUnknownVariableType]


def _added(config: HostConfig, text: str, name: str, entry: dict[str, Any]) -> str:
    """The text with the entry, read again: it says what it said, and the entry."""
    if config.format == "json":
        new = jsonc.insert(text, config.keys, name, entry)
        before, after = jsonc.parse(text if text.strip() else "{}").value, jsonc.parse(new).value
    else:
        new = (
            text
            + ("" if not text or text.endswith("\n") else "\n")
            + _table(config, name, entry, apart=bool(text))
        )
        before = _toml(text)
        try:
            after = _toml(new)
        except FormatError:  # such as a table that is written on one line: nothing can be added to it
            after = None
    if after is None or _with(before, config.keys, name, entry) != after:
        raise FormatError("config-by-hand", "it cannot be changed safely here", "add these lines yourself")
    return new


def _removed(config: HostConfig, text: str, name: str, entry: dict[str, Any]) -> str:
    if config.format == "json":
        new = jsonc.remove(text, config.keys, name)
        is_gone = jsonc.lookup(new, config.keys, name) is None
    else:
        table = _table(config, name, entry).replace("\n", "\r\n" if "\r\n" in text else "\n")
        new = text.replace(f"\n{table}", "", 1) if f"\n{table}" in text else text.replace(table, "", 1)
        is_gone = _lookup(config, new, name) is None
    if not is_gone:
        raise FormatError("config-by-hand", f"the entry {name!r:.80} was changed by hand", "remove it by hand")
    return new


def _table(config: HostConfig, name: str, entry: dict[str, Any], *, apart: bool = False) -> str:
    """A table of TOML. Text and lists of text are written in TOML as in JSON."""
    pairs = "".join(f"{key} = {_toml_value(value)}\n" for key, value in entry.items())
    return f"{chr(10) if apart else ''}[{'.'.join((*config.keys, name))}]\n{pairs}"


def _toml_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError("config-invalid", f"it is not TOML: {error}", "correct the file by hand") from error


def _with(before: Any, keys: Sequence[str], name: str, entry: dict[str, Any]) -> Any:
    if not keys:
        return {**before, name: entry}
    return {**before, keys[0]: _with(before.get(keys[0], {}), keys[1:], name, entry)}


def _backups(path: Path, name: str) -> Iterator[Path]:
    for number in range(1, 1000):
        yield path.with_name(f"{path.name}.before-{name}" + (f"-{number}" if number > 1 else ""))


def _kept(path: Path, name: str) -> Iterator[bytes]:
    for place in _backups(path, name):
        if not place.is_file():
            return
        yield place.read_bytes()


@contextmanager
def _naming(label: str) -> Generator[None]:
    """Errors about a text say which file it was."""
    try:
        yield
    except (FormatError, NotFoundError) as error:
        error.message = f"{label}: {error.message}"
        raise
