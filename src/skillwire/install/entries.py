"""One server's entry in the text of a host's configuration, JSON or TOML: found, put in, taken out.

Pure. Everything else stays byte for byte: JSON gets a member (``client/jsonc.py``), TOML gets a table at its end.
Every result is read again and compared before it is given; ``FormatError`` says what a person has to do by hand.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any, cast

from skillwire.client import jsonc
from skillwire.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from skillwire.install.configs import HostConfig


def as_there(config: HostConfig, text: str, entry: dict[str, Any]) -> tuple[HostConfig, dict[str, Any]]:
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
    expected = _with(_parsed(config, text), config.keys, name, entry)
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
    for new in _without(config, text, name, entry):
        if lookup(config, new, name) is None and _with(_parsed(config, new), config.keys, name, entry) == before:
            return new
    raise FormatError("config-by-hand", f"the entry {name!r:.80} was changed by hand", "remove it by hand")


def table(config: HostConfig, name: str, entry: dict[str, Any], line: str = "\n") -> str:
    """A table of TOML. Text and lists of text are written in TOML as in JSON."""
    pairs = "".join(f"{key} = {_toml_value(value)}{line}" for key, value in entry.items())
    return f"[{'.'.join((*config.keys, name))}]{line}{pairs}"


def _without(config: HostConfig, text: str, name: str, entry: dict[str, Any]) -> Iterator[str]:
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


def _with(before: Any, keys: Sequence[str], name: str, entry: dict[str, Any], at: str = "it") -> Any:
    if not isinstance(before, dict):
        raise FormatError("config-invalid", f"{at} is not a table of servers", "correct the file by hand")
    there = cast("dict[str, Any]", before)
    if not keys:
        return {**there, name: entry}
    return {**there, keys[0]: _with(there.get(keys[0], {}), keys[1:], name, entry, repr(keys[0]))}
