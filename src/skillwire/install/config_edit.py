"""Adds the entry of a server to the configuration of a host, and removes it again.

The change is computed first, so that it can be shown. Then the file is replaced in one step, if it is still the
one that was shown. The old file, or the fact that there was none, is kept beside it until an undo restores it. If
an undo cannot restore the old file, it removes the entry and keeps a copy again. A file that cannot be changed
safely stays, and the lines to add are given instead.

The functions over text (``lookup``, ``added``, ``removed``) are pure. Everything else in the text stays byte for
byte: JSON gets a member (``client/jsonc.py``), TOML gets a table at its end. Every result is parsed again and
compared before it is used.
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

from skillwire.client import jsonc
from skillwire.errors import FormatError, NotFoundError, StoreError
from skillwire.install.agents import locate
from skillwire.install.host_configs import find_config, has_only_ours
from skillwire.install.places import shown
from skillwire.install.transaction import replace_file

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from skillwire.install.host_configs import HostConfig
    from skillwire.install.places import Scope


_MAX_BYTES = 16 * 1024 * 1024
_MAX_BACKUPS = 1000
_NO_FILE = b"There was no such file.\n"  # neither JSON nor TOML: no host's file says this
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


@dataclass(frozen=True, slots=True)
class Edit:
    """A file as it is and as it will be; ``None`` where there is none."""

    file: _File
    name: str
    new: bytes | None
    is_restored: bool = False  # to what was kept: there is nothing to keep

    @property
    def label(self) -> str:
        """Where the file is, as a person would say it."""
        return self.file.label

    @property
    def is_new(self) -> bool:
        """Whether there is no such file yet."""
        return self.file.data is None

    @property
    def lines(self) -> list[str]:
        """What changes, line by line, and nothing around it: there may be secrets."""
        before, after = ((data or b"").decode().splitlines() for data in (self.file.data, self.new))
        found = list(unified_diff(before, after, lineterm="", n=0))
        return [line for line in found[2:] if not line.startswith("@@")]


@dataclass(frozen=True, slots=True)
class _File:
    """A host's file, as it is now."""

    path: Path
    label: str
    data: bytes | None
    is_private: bool

    @property
    def text(self) -> str:
        return "" if self.data is None else _text(self.data)

    @property
    def mode(self) -> int | None:
        """Who may read it, and a copy of it: as it is, or nobody else if it is in a home and new."""
        if self.data is not None:
            return self.path.stat().st_mode & 0o777
        return 0o600 if self.is_private else None


def plan_connect(agent: str, name: str, entry: dict[str, Any], scope: Scope) -> Edit | None:
    """The change that adds ``entry`` under ``name``; ``None`` if it is there already."""
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
                "config-taken", f"there is another entry called {name!r:.80}", "choose another --name"
            )
        return Edit(file, name, _bytes(added(config, file.text, name, entry)))


def plan_undo(agent: str, name: str, scope: Scope) -> Edit:
    """The change that takes ``name`` out again: back to what was kept if nothing else changed since."""
    check_name(name)
    config = find_config(agent)
    file = _find(agent, config, scope, by_hand="remove the entry by hand")
    with _prefixed(file.label):
        config, extra = in_style_of_file(config, file.text, {})
        entry = lookup(config, file.text, name)
        if entry is None:
            raise NotFoundError(
                "config-unknown", f"there is no entry called {name!r:.80}", "there is nothing to undo"
            )
        if not has_only_ours(config, entry, extra):
            raise FormatError(
                "config-by-hand", f"the entry {name!r:.80} was not written so by connect", "remove it by hand"
            )
        return _undoing(config, file, name, entry)


def _undoing(config: HostConfig, file: _File, name: str, entry: dict[str, Any]) -> Edit:
    for before in _kept(file.path, name):
        with suppress(FormatError):
            if _bytes(added(config, _text(before or b""), name, entry)) == file.data:
                return Edit(file, name, before, is_restored=True)
    return Edit(file, name, _bytes(removed(config, file.text, name, entry)))


def apply_edit(edit: Edit) -> Path | None:
    """Make the change; where what was there is kept, if it is."""
    path = edit.file.path
    if _read(path) != edit.file.data:
        raise StoreError(
            "config-changed", f"{edit.label!r} was changed meanwhile", "nothing was written; try again"
        )
    backup = None if edit.is_restored else _keep(edit.file, edit.name)
    if edit.new is None:
        _remove(path)
    else:
        replace_file(path, edit.new, mode=edit.file.mode)
    if edit.is_restored:
        _forget(edit)
    return backup


def lines_to_add(agent: str, name: str, entry: dict[str, Any]) -> list[str]:
    """What a person would write into a file that is not changed here."""
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
    """``FormatError`` if ``name`` could be read as something else in one of the formats."""
    if not _NAME.match(name):
        raise FormatError("name-invalid", f"{name!r:.80} is no name for a server", "use letters, digits, - and _")


def _find(agent: str, config: HostConfig, scope: Scope, *, by_hand: str) -> _File:
    is_private = scope.kind == "global"
    labels = config.everywhere if is_private else config.project
    if not labels:
        raise NotFoundError(
            "config-unknown", f"it is not known here that {agent} keeps servers in a project", "use --global"
        )
    found = [_located(label, scope) for label in labels]
    path, label = next((each for each in found if os.path.exists(each[0])), found[0])
    if config.format == "yaml":
        raise FormatError(
            "config-by-hand", f"{label} is YAML, which cannot be changed here without losing its comments", by_hand
        )
    real = Path(os.path.realpath(path))
    if not is_private and Path(os.path.realpath(scope.project)) not in real.parents:
        raise FormatError("folder-elsewhere", f"{label!r} leads out of the project", "nothing was written")
    return _File(real, label, _read(real), is_private)


def _located(label: str, scope: Scope) -> tuple[Path, str]:
    """Where it is, and how that is said: a variable may have moved it out of the home."""
    if scope.kind == "project":
        return scope.project / label, label
    path = locate(label, scope.home, scope.environment).path
    return path, shown(path, scope.home)


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(
            "config-unreadable", f"{path.name!r} cannot be read: {error.strerror}", "nothing was changed"
        ) from error
    if len(data) > _MAX_BYTES:
        raise FormatError("config-invalid", f"{path.name!r} is too large to be a configuration", "look at it")
    return data


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise StoreError(
            "write-failed", f"{path.name!r} could not be removed: {error.strerror}", "nothing was changed"
        ) from error


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise FormatError("config-invalid", "the file is not UTF-8 text", "correct it by hand") from error


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise FormatError("config-invalid", "the entry would not be UTF-8 text", "use other words") from error


def _backups(path: Path, name: str) -> Iterator[Path]:
    for number in range(1, _MAX_BACKUPS):
        yield path.with_name(f"{path.name}.before-{name}" + (f"-{number}" if number > 1 else ""))


def _keep(file: _File, name: str) -> Path:
    """Keep what is there in a free place, or leave it where it is kept already."""
    data = _NO_FILE if file.data is None else file.data
    for place in _backups(file.path, name):
        if not os.path.lexists(place):
            replace_file(place, data, mode=file.mode)
            return place
        if place.is_file() and _read(place) == data:
            return place
    raise StoreError(
        "config-backups", f"there are too many copies of {file.label!r}", f"remove some: ….before-{name}"
    )


def _kept(path: Path, name: str) -> Iterator[bytes | None]:
    """What was kept; ``None`` where there was no file."""
    for place in _backups(path, name):
        if not place.is_file():
            return
        data = _read(place)
        yield None if data == _NO_FILE else data


def _forget(edit: Edit) -> None:
    """Remove what was kept, once the file is that again."""
    for place in _backups(edit.file.path, edit.name):
        if not place.is_file():
            return
        if _read(place) == (_NO_FILE if edit.new is None else edit.new):
            with suppress(OSError):  # the file is as it was; a copy too many does no harm
                place.unlink()


@contextmanager
def _prefixed(label: str) -> Generator[None]:
    """Errors about a text say which file it was."""
    try:
        yield
    except (FormatError, NotFoundError) as error:
        error.message = f"{label}: {error.message}"
        raise


def in_style_of_file(config: HostConfig, text: str, entry: dict[str, Any]) -> tuple[HostConfig, dict[str, Any]]:
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


def lookup(config: HostConfig, text: str, name: str) -> Any:
    """The entry called ``name``; ``None`` if there is none."""
    if config.format == "json":
        return jsonc.lookup(text, config.keys, name)
    value: Any = _toml(text)
    for step in (*config.keys, name):
        value = value.get(step) if isinstance(value, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return value  # pyright: ignore[reportUnknownVariableType]


def added(config: HostConfig, text: str, name: str, entry: dict[str, Any]) -> str:
    """The text with the entry, read again: it says what it said, and the entry."""
    if config.format == "json":
        new = jsonc.insert(text, config.keys, name, entry)
    else:
        line = "\r\n" if "\r\n" in text else "\n"
        ended = text if not text or text.endswith("\n") else text + line
        new = ended + (line if text else "") + table(config, name, entry, line)
    expected = _with_entry(_parsed(config, text), config.keys, name, entry)
    try:
        after = _parsed(config, new)
    except FormatError:  # such as a table that is written on one line: nothing can be added to it
        after = None
    if after != expected:
        raise FormatError("config-by-hand", "it cannot be changed safely here", "add these lines yourself")
    return new


def removed(config: HostConfig, text: str, name: str, entry: dict[str, Any]) -> str:
    """The text without the entry, read again: it says what it said, but for the entry."""
    before = _parsed(config, text)
    for new in _candidates_without(config, text, name, entry):
        if (
            lookup(config, new, name) is None
            and _with_entry(_parsed(config, new), config.keys, name, entry) == before
        ):
            return new
    raise FormatError("config-by-hand", f"the entry {name!r:.80} was changed by hand", "remove it by hand")


def table(config: HostConfig, name: str, entry: dict[str, Any], line: str = "\n") -> str:
    """A table of TOML. Text and lists of text are written in TOML as in JSON."""
    pairs = "".join(f"{key} = {_toml_value(value)}{line}" for key, value in entry.items())
    return f"[{'.'.join((*config.keys, name))}]{line}{pairs}"


def _candidates_without(config: HostConfig, text: str, name: str, entry: dict[str, Any]) -> Iterator[str]:
    if config.format == "json":
        yield jsonc.remove(text, config.keys, name)
        return
    for line in ("\r\n", "\n"):
        written = table(config, name, entry, line)
        for piece in (line + written, written):  # with the empty line before it, if there is one
            if piece in text:
                yield text.replace(piece, "", 1)


def _parsed(config: HostConfig, text: str) -> Any:
    if config.format == "toml":
        return _toml(text)
    return jsonc.parse(text).value if text.strip("\ufeff \t\r\n") else {}


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError("config-invalid", f"it is not TOML: {error}", "correct the file by hand") from error


def _toml_value(value: Any) -> str:
    # A date is nothing that was written here: as text it is not found again, and so it is left to hands.
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def _with_entry(before: Any, keys: Sequence[str], name: str, entry: dict[str, Any], at: str = "it") -> Any:
    if not isinstance(before, dict):
        raise FormatError("config-invalid", f"{at} is not a table of servers", "correct the file by hand")
    there = cast("dict[str, Any]", before)
    if not keys:
        return {**there, name: entry}
    return {**there, keys[0]: _with_entry(there.get(keys[0], {}), keys[1:], name, entry, repr(keys[0]))}
