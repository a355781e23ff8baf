"""``skills.lock.json``: which skills are installed, from where, with exactly which bytes, when and by whom.

Pure: bytes in, values out, and back. The text is the same for the same values: sorted keys, two spaces, a digest
on a line of its own, a line break at the end, so that a change of one file is a change of one line. Fields of
others are kept. A lock of a newer version, nonsense typed by hand, a key twice: ``FormatError``, never a guess.

No header, no token, no variable's value is in it: only what is needed to reach the server again.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, cast

from skillwire.errors import FormatError
from skillwire.skill.digest import is_digest
from skillwire.skill.entry import fold
from skillwire.skill.uri import SKILL_MD, parse_path, parse_uri, segment_problem, skill_root

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 1
LOCK_NAME = "skills.lock.json"
Mode: TypeAlias = Literal["copy", "link"]
ServerKind: TypeAlias = Literal["url", "command", "folder", "label"]
_KINDS: tuple[ServerKind, ...] = ("url", "command", "folder", "label")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
_SERVER_FIELDS = frozenset({*_KINDS, "config", "dialect", "era"})
_SKILL_FIELDS = frozenset({"agents", "at", "by", "files", "server", "tool", "uri"})
_URL = re.compile(r"https?://[^/]", re.IGNORECASE)
_DIALECTS = ("extension", "index", "sep-2076", "native", "fallback")
_MENDING = "correct it, or restore it from version control; nothing was changed"
_MERGING = "it has the marks of a merge: settle it by hand; nothing was changed"


@dataclass(frozen=True, slots=True)
class Server:
    """How a server is reached again: a URL, a command, a folder or archive (seen from the lock), a label."""

    kind: ServerKind
    words: tuple[str, ...]
    config: str | None = None
    dialect: str | None = None
    era: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    @property
    def origin(self) -> tuple[str, ...]:
        """What makes two of them the same origin; how it is spoken to does not."""
        return (self.kind, self.config or "", *self.words)

    def __str__(self) -> str:
        return " ".join(self.words)

    def to_json(self) -> dict[str, Any]:
        """As it stands in the lock."""
        value = list(self.words) if self.kind == "command" else self.words[0]
        known = {self.kind: value, "config": self.config, "dialect": self.dialect, "era": self.era}
        return {**self.extra, **{key: value for key, value in known.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Installed:
    """One skill: where it came from, its files and their digests, and for which agents it lies where."""

    name: str
    uri: str
    server: Server
    files: Mapping[str, str]
    agents: Mapping[str, Mode]
    by: str
    at: str
    tool: str
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    def to_json(self) -> dict[str, Any]:
        """As it stands in the lock."""
        return {
            **self.extra,
            "agents": dict(self.agents),
            "at": self.at,
            "by": self.by,
            "files": dict(self.files),
            "server": self.server.to_json(),
            "tool": self.tool,
            "uri": self.uri,
        }


@dataclass(frozen=True, slots=True)
class Lock:
    """Every installed skill by name."""

    skills: Mapping[str, Installed] = field(default_factory=dict[str, Installed])
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    def having(self, skill: Installed) -> Lock:
        """The same with ``skill``, in the place of one of its name."""
        return replace(self, skills={**self.skills, skill.name: skill})

    def without(self, name: str) -> Lock:
        """The same without the skill called ``name``."""
        return replace(self, skills={key: skill for key, skill in self.skills.items() if key != name})


def format_lock(lock: Lock) -> bytes:
    """The file's bytes; ``FormatError`` if they could not be read again."""
    skills = {name: skill.to_json() for name, skill in lock.skills.items()}
    document = {**lock.extra, "version": VERSION, "skills": skills}
    try:
        data = (json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
        parse_lock(data)
    except UnicodeEncodeError as error:
        raise _unwritable("a name in it is not UTF-8") from error
    except FormatError as error:
        raise _unwritable(error.message.removeprefix(f"{LOCK_NAME} cannot be used: "), error.rule) from error
    return data


def parse_lock(data: bytes) -> Lock:
    """The lock in ``data``; ``FormatError`` if it is none, or not one that this version understands."""
    try:
        document: object = json.loads(data.decode(), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise FormatError(
            "lock-invalid",
            f"{LOCK_NAME} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}",
            _MERGING if b"<<<<<<<" in data else _MENDING,
            line=error.lineno,
            column=error.colno,
        ) from error
    except (ValueError, RecursionError) as error:  # no UTF-8, a number of thousands of digits, too deep
        raise FormatError("lock-invalid", f"{LOCK_NAME} is not JSON text", _MENDING) from error
    fields = _object(document, "it")
    _check_version(fields.get("version"))
    skills = _object(fields.get("skills"), "'skills'")
    found = {name: _skill(name, value) for name, value in skills.items()}
    _check_names(found)
    return Lock(found, _others(fields, frozenset({"version", "skills"})))


def parse_name(name: str) -> str:
    """``name`` if a skill's folder may have it: one segment, not hidden."""
    if segment_problem(name) or name.startswith(".") or len(name.encode()) > 255:
        raise FormatError(
            "name-invalid", f"{name!r:.100} cannot be the name of a skill's folder", "its server has to rename it"
        )
    return name


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        _refuse(f"it has {twice!r:.100} twice")
    return found


def _check_version(version: object) -> None:
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        raise FormatError(
            "lock-newer",
            f"{LOCK_NAME} was written by a newer skillwire (its version is {version}, this one reads {VERSION})",
            "update skillwire; nothing was changed",
        )
    if version != VERSION or isinstance(version, bool):
        _refuse(f"its 'version' is {version!r:.40}, not {VERSION}")


def _check_names(skills: Mapping[str, Installed]) -> None:
    """B5: two names that are one to some disks cannot both lie in a folder."""
    seen: dict[str, str] = {}
    for name in skills:
        other = seen.setdefault(fold(name), name)
        if other != name:
            raise FormatError(
                "lock-invalid", f"{LOCK_NAME} has {other!r:.100} and {name!r:.100}, one on some disks", _MENDING,
                rule="B5",
            )  # fmt: skip


def _skill(name: str, value: object) -> Installed:
    what = f"the skill {name!r:.80}"
    try:
        parse_name(name)
        fields = _object(value, what)
        uri = _text(fields, "uri", what)
        if skill_root(parse_uri(uri)).segments[-1] != name:
            _refuse(f"{what} has the 'uri' of another skill")
    except FormatError as error:
        raise error if error.reference == "lock-invalid" else _invalid(error.message) from error
    at = _text(fields, "at", what)
    if not _MOMENT.match(at):
        _refuse(f"'at' of {what} is not a time such as 2026-11-03T10:00:00Z")
    return Installed(
        name,
        uri,
        _server(fields.get("server"), what),
        _files(fields.get("files"), what),
        _agents(fields.get("agents"), what),
        _text(fields, "by", what),
        at,
        _text(fields, "tool", what),
        _others(fields, _SKILL_FIELDS),
    )


def _files(value: object, what: str) -> dict[str, str]:
    files = _object(value, f"'files' of {what}")
    for path, digest in files.items():
        try:
            parse_path(path)
        except FormatError as error:
            raise _invalid(f"{what}: {error.message}") from error
        if not is_digest(digest):
            _refuse(f"the digest of {path!r:.100} of {what} is not one")
    if SKILL_MD not in files:
        _refuse(f"{what} has no {SKILL_MD}")
    return cast("dict[str, str]", files)


def _agents(value: object, what: str) -> dict[str, Mode]:
    agents = _object(value, f"'agents' of {what}")
    for agent, mode in agents.items():
        if mode not in ("copy", "link") or not agent.isprintable() or "\\" in agent:
            _refuse(f"'agents' of {what} says {agent!r:.80}: {mode!r:.40}")
    if not agents:
        _refuse(f"{what} is installed for nobody")
    return cast("dict[str, Mode]", agents)


def _server(value: object, what: str) -> Server:
    fields = _object(value, f"'server' of {what}")
    kinds: list[ServerKind] = [kind for kind in _KINDS if kind in fields]
    if len(kinds) != 1:
        _refuse(f"'server' of {what} needs exactly one of {', '.join(_KINDS)}")
    raw: object = fields[kinds[0]]
    words: list[object] = cast("list[object]", raw) if kinds[0] == "command" and isinstance(raw, list) else [raw]
    if not words or not words[0] or not all(isinstance(word, str) and "\0" not in word for word in words):
        _refuse(f"'{kinds[0]}' of {what} is not text")
    optional = {key: _text(fields, key, what) for key in ("config", "dialect", "era") if key in fields}
    server = Server(kinds[0], tuple(map(str, words)), **optional, extra=_others(fields, _SERVER_FIELDS))
    _check_kind(server, what)
    return server


def _check_kind(server: Server, what: str) -> None:
    """A5: a word is what its kind says. A label in the place of a URL starts programs unasked."""
    if server.kind == "url" and not _URL.match(server.words[0]):
        _refuse(f"the 'url' of {what} does not begin with https:// or http://")
    if server.kind == "label" and "://" in server.words[0]:
        _refuse(f"the 'label' of {what} is a URL")
    if server.dialect is not None and server.dialect not in _DIALECTS:
        _refuse(f"the 'dialect' of {what} is {server.dialect!r:.40}, not one of {', '.join(_DIALECTS)}")
    if server.era not in (None, "auto", "legacy"):
        _refuse(f"the 'era' of {what} is {server.era!r:.40}, not legacy")


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(f"{what} is not an object")
    return cast("dict[str, Any]", value)


def _text(fields: Mapping[str, Any], key: str, what: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        _refuse(f"{key!r} of {what} is not a line of text")
    return value


def _others(fields: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in known}


def _unwritable(reason: str, rule: str = "") -> FormatError:
    return FormatError(
        "lock-unrecordable", f"it cannot be recorded: {reason}", "nothing was written; use another name", rule=rule
    )


def _invalid(reason: str) -> FormatError:
    return FormatError("lock-invalid", f"{LOCK_NAME} cannot be used: {reason}", _MENDING)


def _refuse(reason: str) -> NoReturn:
    raise _invalid(reason)
