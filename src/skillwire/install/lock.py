"""``skills.lock.json``: the installed skills, their source, digests, time and user.

``parse_lock`` and ``format_lock`` are pure. Equal values give equal text: sorted keys, two spaces, one digest per
line, a final line break. So a change of one file is a change of one line. Unknown fields are kept. A newer
version, an invalid value or a duplicate key is a ``FormatError``.

The lock has no headers, tokens or values of variables, only what is needed to reach the server again.

Only one process changes the file at a time: it locks the folder (``flock``), reads the file again, and replaces
it by a rename. So the changes of two processes are both kept, and a killed process leaves the old file or the new
one.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import time
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, cast

from skillwire.catalog.git_source import is_commit
from skillwire.client.dialects import DIALECT_NAMES
from skillwire.errors import FormatError, NotFoundError, StoreError
from skillwire.install.agents import shown
from skillwire.install.places import LOCK_NAME
from skillwire.install.transaction import read_file, replace_file
from skillwire.limits import MIB
from skillwire.skill.entry import collisions, is_digest
from skillwire.skill.uri import SKILL_MD, parse_path, root_of, segment_problem
from skillwire.skill.version_status import UNVERSIONED, VersionStatus

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

VERSION = 1
Mode: TypeAlias = Literal["copy", "link"]
ServerKind: TypeAlias = Literal["url", "command", "folder", "label", "git"]
_KINDS: tuple[ServerKind, ...] = ("url", "command", "folder", "label", "git")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
_SERVER_FIELDS = frozenset({*_KINDS, "config", "dialect", "era"})
_SKILL_FIELDS = frozenset({"agents", "at", "by", "commit", "files", "server", "tool", "uri", "version"})
_URL = re.compile(r"https?://[^/]", re.IGNORECASE)
# Not owner/repository, which may be a folder.
_GIT = re.compile(r"(https?|ssh)://[^/]|\.{0,2}/|[^/:@-][^/:@]*@[^/:@]+:")
_SECRET = re.compile(r"https?://[^/]*@|ssh://[^/@]*:[^/@]*@", re.IGNORECASE)
_FIX = "correct it, or restore it from version control; nothing was changed"
_MAX_BYTES = 64 * MIB
_PATIENCE_SECONDS = 30.0
_PAUSE = 0.02
_RESOLVE = "resolve the merge conflict in it; nothing was changed"


@dataclass(frozen=True, slots=True)
class Server:
    """How to reach the source again: a URL, a command, a folder or archive, a label, or a Git repository.

    Paths are relative to the lock of a project. A repository is recorded with its ref and folder.
    """

    kind: ServerKind
    words: tuple[str, ...]
    config: str | None = None
    dialect: str | None = None
    era: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    @property
    def origin(self) -> tuple[str, ...]:
        """The identity of the origin, without dialect and era."""
        return (self.kind, self.config or "", *self.words)

    def __str__(self) -> str:
        return " ".join(self.words)

    def to_json(self) -> dict[str, Any]:
        """Return the form in the lock."""
        value = list(self.words) if self.kind == "command" else self.words[0]
        known = {self.kind: value, "config": self.config, "dialect": self.dialect, "era": self.era}
        return {**self.extra, **{key: value for key, value in known.items() if value is not None}}


@dataclass(frozen=True, slots=True)
class Installed:
    """One installed skill: its source, its files with digests, and its agents.

    ``commit`` is that of a Git repository, and ``version`` what a registry stated: its number and its own URI.
    """

    name: str
    uri: str
    server: Server
    files: Mapping[str, str]
    agents: Mapping[str, Mode]
    by: str
    at: str
    tool: str
    commit: str | None = None
    version: VersionStatus = UNVERSIONED
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the form in the lock."""
        return {
            **self.extra,
            **({} if self.commit is None else {"commit": self.commit}),
            **({"version": stated} if (stated := self.version.to_json()) else {}),
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
        """Return a lock with ``skill``, which replaces one with the same name."""
        return replace(self, skills={**self.skills, skill.name: skill})

    def without(self, name: str) -> Lock:
        """Return a lock without the skill called ``name``."""
        return replace(self, skills={key: skill for key, skill in self.skills.items() if key != name})


def format_lock(lock: Lock) -> bytes:
    """Return the bytes of the file; ``FormatError`` if they could not be parsed again."""
    skills = {name: skill.to_json() for name, skill in lock.skills.items()}
    document = {**lock.extra, "version": VERSION, "skills": skills}
    try:
        data = (json.dumps(document, indent=2, sort_keys=True, ensure_ascii=False) + "\n").encode()
        parse_lock(data)
    except UnicodeEncodeError as error:
        raise _unwritable("a name is not valid UTF-8") from error
    except FormatError as error:
        raise _unwritable(error.message.removeprefix(f"{LOCK_NAME} is invalid: "), error.rule) from error
    return data


def parse_lock(data: bytes) -> Lock:
    """Parse a lock; ``FormatError`` if it is invalid or of a newer version."""
    try:
        document: object = json.loads(data.decode(), object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise FormatError(
            "lock-invalid",
            f"{LOCK_NAME} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}",
            _RESOLVE if b"<<<<<<<" in data else _FIX,
            line=error.lineno,
            column=error.colno,
        ) from error
    except (ValueError, RecursionError) as error:  # invalid UTF-8, a number with thousands of digits, too deep
        raise FormatError("lock-invalid", f"{LOCK_NAME} is not JSON text", _FIX) from error
    fields = _object(document, "the document")
    version = fields.get("version")
    if type(version) is int and version > VERSION:
        raise FormatError(
            "lock-newer",
            f"{LOCK_NAME} has version {version}, and this skillwire reads version {VERSION}",
            "update skillwire; nothing was changed",
        )
    if type(version) is not int or version != VERSION:
        _refuse(f"'version' is {version!r:.40}, not {VERSION}")
    skills = _object(fields.get("skills"), "'skills'")
    found = {name: _skill(name, value) for name, value in skills.items()}
    for first, second in collisions(found):
        message = f"{LOCK_NAME} has {first!r:.100} and {second!r:.100}, the same name on some disks"
        raise FormatError("lock-invalid", message, _FIX, rule="B5")
    return Lock(found, _others(fields, frozenset({"version", "skills"})))


def parse_name(name: str) -> str:
    """Check the name of the folder of a skill: one segment, not hidden."""
    if segment_problem(name) or name.startswith(".") or len(name.encode()) > 255:
        raise FormatError(
            "name-invalid", f"{name!r:.100} cannot be the name of a folder", "the server has to rename the skill"
        )
    return name


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for index, (key, _) in enumerate(pairs) if key in dict(pairs[:index]))
        _refuse(f"duplicate key {twice!r:.100}")
    return found


def _skill(name: str, value: object) -> Installed:
    what = f"the skill {name!r:.80}"
    try:
        parse_name(name)
        fields = _object(value, what)
        uri = _text(fields, "uri", what)
        if root_of(uri).segments[-1] != name:
            _refuse(f"{what} has the 'uri' of another skill")
    except FormatError as error:
        raise error if error.reference == "lock-invalid" else _invalid(error.message) from error
    at = _text(fields, "at", what)
    if not _MOMENT.match(at):
        _refuse(f"'at' of {what} is not a time such as 2026-11-03T10:00:00Z")
    server, commit = _server(fields.get("server"), what), fields.get("commit")
    if commit is not None and (server.kind != "git" or not isinstance(commit, str) or not is_commit(commit)):
        _refuse(f"'commit' of {what} is not a commit of a Git repository")
    return Installed(
        name,
        uri,
        server,
        _files(fields.get("files"), what),
        _agents(fields.get("agents"), what),
        _text(fields, "by", what),
        at,
        _text(fields, "tool", what),
        commit,
        _version(name, fields.get("version"), what),
        _others(fields, _SKILL_FIELDS),
    )


def _version(name: str, value: object, what: str) -> VersionStatus:
    if value is None:
        return UNVERSIONED
    fields, where = _object(value, f"'version' of {what}"), f"'version' of {what}"
    uri = _text(fields, "uri", where) if "uri" in fields else ""
    if uri and not is_version_uri(uri, name):
        _refuse(f"{where} has the 'uri' of another skill")
    return VersionStatus(_text(fields, "number", where), uri)


def is_version_uri(uri: str, name: str) -> bool:
    """Whether ``uri`` may be that of a version of the skill called ``name``."""
    try:
        return root_of(uri).segments[-1] == name
    except FormatError:
        return False


def _files(value: object, what: str) -> dict[str, str]:
    files = _object(value, f"'files' of {what}")
    for path, digest in files.items():
        try:
            parse_path(path)
        except FormatError as error:
            raise _invalid(f"{what}: {error.message}") from error
        if not is_digest(digest):
            _refuse(f"the digest of {path!r:.100} of {what} is invalid")
    if SKILL_MD not in files:
        _refuse(f"{what} has no {SKILL_MD}")
    return cast("dict[str, str]", files)


def _agents(value: object, what: str) -> dict[str, Mode]:
    agents = _object(value, f"'agents' of {what}")
    for agent, mode in agents.items():
        if mode not in ("copy", "link") or not agent.isprintable() or "\\" in agent:
            _refuse(f"'agents' of {what} has the invalid member {agent!r:.80}: {mode!r:.40}")
    if not agents:
        _refuse(f"{what} has no agents")
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
    # A5: a label in place of a URL could start a program without consent.
    if server.kind == "url" and not _URL.match(server.words[0]):
        _refuse(f"the 'url' of {what} does not begin with https:// or http://")
    if server.kind == "label" and "://" in server.words[0]:
        _refuse(f"the 'label' of {what} is a URL")
    if server.kind == "git" and not (_GIT.match(server.words[0]) and server.words[0].isprintable()):
        _refuse(f"the 'git' of {what} is neither a URL nor a path that begins with ./ or ../")
    if server.kind == "git" and _SECRET.match(server.words[0]):  # not repeated
        _refuse(f"the 'git' of {what} contains a user or a password")
    if server.dialect not in (None, *DIALECT_NAMES):
        _refuse(f"the 'dialect' of {what} is {server.dialect!r:.40}, not one of {', '.join(DIALECT_NAMES)}")
    if server.era not in (None, "auto", "legacy"):
        _refuse(f"the 'era' of {what} is {server.era!r:.40}, not legacy")
    return server


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
        "lock-unrecordable",
        f"the lock cannot record it: {reason}",
        "nothing was written; use another name",
        rule=rule,
    )


def _invalid(reason: str) -> FormatError:
    return FormatError("lock-invalid", f"{LOCK_NAME} is invalid: {reason}", _FIX)


def _refuse(reason: str) -> NoReturn:
    raise _invalid(reason)


class LockFile:
    """A lock that only this process may change; ``now`` is its content."""

    def __init__(self, path: Path, now: Lock) -> None:
        self._path = path
        self.now = now

    def write(self, lock: Lock) -> None:
        """Replace the file if its content changes."""
        if lock != self.now or not self._path.exists():
            replace_file(self._path, format_lock(lock))
            self.now = lock


def read_lock(path: Path) -> Lock | None:
    """Read the lock at ``path``; ``None`` if there is none."""
    data = read_file(path, _MAX_BYTES, "lock", _called(path))
    if data is None:
        return None
    try:
        return parse_lock(data)
    except FormatError as error:
        error.message = _called(path) + error.message.removeprefix(LOCK_NAME)
        raise


def require_lock(path: Path) -> Lock:
    """Read the lock at ``path``, which must exist."""
    lock = read_lock(path)
    if lock is None:
        raise NotFoundError(
            "lock-missing",
            f"no {LOCK_NAME} here",
            "install a skill first: skillwire add TARGET SKILL --agent AGENT; for all your projects: --global",
        )
    return lock


@contextmanager
def held_lock(path: Path, patience: float = _PATIENCE_SECONDS) -> Generator[LockFile]:
    """Hold the lock at ``path`` for this process while the block runs."""
    if path.is_symlink():
        raise StoreError("lock-linked", f"{LOCK_NAME} is a symbolic link", "replace it by a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise StoreError(
            "lock-unwritable",
            f"the folder of {LOCK_NAME} cannot be used: {error.strerror}",
            "check its permissions; nothing was written",
        ) from error
    try:
        _wait_for(folder, patience)
        yield LockFile(path, read_lock(path) or Lock())
    finally:
        os.close(folder)


def _called(path: Path) -> str:
    """Return the path of the lock for messages: it shows whether the lock is that of a project or of the user."""
    return f"./{path.name}" if path.parent == Path.cwd() else shown(path, Path.home())


def _wait_for(folder: int, patience: float) -> None:
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise StoreError(
                    "lock-busy",
                    f"another process is changing {LOCK_NAME}",
                    "run the command again when it has ended",
                ) from None
            time.sleep(_PAUSE)
        except OSError as error:
            raise StoreError(
                "lock-unwritable", f"{LOCK_NAME} cannot be locked: {error.strerror}", "use a local disk"
            ) from error
        else:
            return
