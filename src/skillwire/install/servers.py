"""The server of an installed skill, recorded in the lock so that it can be reached again, without secrets.

Headers and variables are never recorded. A URL with a user, a password or a query is refused, because it may
contain a token. Such a server needs a label in an ``mcpServers`` file, and the lock records the label.

The lock of a user is used from every folder and means the same everywhere: its paths are absolute, a label is
recorded with its file, and commands start in the home folder. The current folder may be an untrusted repository,
so it has no influence (N1, A5, Z1).

``portable_words`` makes the file arguments of a command absolute. After one of our own verbs, a word without a dot
or a slash is a file if that file exists. In other commands such a word is not changed.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from skillwire.catalog.archive import is_archive
from skillwire.catalog.git_source import parse_git_source
from skillwire.client.servers import (
    as_url,
    check_local_name,
    check_own_configs,
    find_configs,
    find_server,
    is_own,
    target_kind,
)
from skillwire.errors import FormatError
from skillwire.install.lock import Server

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from skillwire.install.places import InstallScope

_WITH_VALUE = re.compile("--[^=]*=")
# Options of ours whose values may look like paths.
_OPTIONS_WITHOUT_PATH = ("--name", "--prefix", "--unlisted", "--instructions")


def portable_words(words: Sequence[str], folder: Path) -> list[str]:
    """Return the command with absolute paths: ``words`` were typed in ``folder``, but run in another one."""
    ours = next((place for place, word in enumerate(words) if Path(word).name == "skillwire"), len(words))
    # A program without a slash is found on the PATH.
    whole = [_absolute(folder, word) if "/" in word else word for word in words[:1]]
    for before, word in pairwise(words):
        is_ours = len(whole) > ours + 1  # after the verb
        option, equals, value = word.partition("=") if _WITH_VALUE.match(word) else ("", "", word)
        is_path = value.startswith(("./", "../"))
        if value and (is_ours or "/" in value or "." in value):
            is_path = is_path or os.path.exists(folder / value)
        if is_ours and (option or before) in _OPTIONS_WITHOUT_PATH:
            is_path = False
        whole.append(option + equals + (_absolute(folder, value) if is_path else value))
    return whole


def _absolute(folder: Path, word: str) -> str:
    return word if os.path.isabs(word) else os.path.normpath(folder / word)


def describe_server(
    target: str | Sequence[str],
    scope: InstallScope,
    *,
    config: Path | None = None,
    dialect: str | None = None,
    era: str | None = None,
) -> Server:
    """Return the record of ``target``: the words of a command, a repository, a URL, a folder or a label."""
    if not isinstance(target, str):
        words = portable_words(target, scope.project) if scope.kind == "global" else target
        return Server("command", tuple(words), None, dialect, era)
    kind = "label" if config is not None else target_kind(target)
    if kind == "git":
        source = parse_git_source(target)
        if source.is_local:
            path = _path_in_lock(Path(source.url), scope)
            source = replace(source, url=path if path.startswith(("/", "../")) else f"./{path}")
        return Server("git", (str(source),))
    if kind == "url":
        return Server("url", (_without_secret(as_url(target) or target),), None, dialect, era)
    if kind == "path":
        if target.endswith(".json") and os.path.isfile(target):
            raise FormatError(
                "target-unknown", "a listing has no files to install", "use the server that it was made from"
            )
        check_local_name(target, scope.home)
        return Server("folder", (_path_in_lock(Path(target), scope),))
    if config is None and scope.kind == "global" and os.sep not in target:
        config, _ = find_server(target, find_configs(scope.project, scope.home))
    file = None if config is None else _path_in_lock(config, scope)
    return Server("label", (target,), file, dialect, era)


def target_of(
    server: Server, scope: InstallScope, commit: str | None = None
) -> tuple[str | tuple[str, ...], Path | None]:
    """Return the target to open, and the configuration file of a label if one was given.

    A repository is opened at ``commit``, if it is given, instead of its ref.
    """
    base = scope.lock_path.parent
    match server.kind:
        case "command":
            return server.words, None
        case "url":
            return _without_secret(server.words[0]), None
        case "git":
            text = server.words[0]
            source = parse_git_source(os.path.normpath(base / text) if text.startswith(".") else text)
            return f"git+{source if commit is None else source.at(commit)}", None
        case "folder":
            folder = os.path.normpath(base / server.words[0])
            if not os.path.isdir(folder) and not (is_archive(folder) and os.path.isfile(folder)):
                raise FormatError(
                    "target-unknown",
                    f"the lock names {server.words[0]!r:.200}, which is not a folder or an archive of skills",
                    "restore it, or correct it in the lock",
                )
            return folder, None
        case "label":
            pass
    config = None if server.config is None else base / server.config
    if config is None and os.path.exists(server.words[0]):
        raise FormatError(
            "label-shadowed",
            f"a file or folder is called {server.words[0]!r:.100}, like the label of the server in the lock",
            "rename it, or add the skill again with --config FILE",
        )
    return server.words[0], config


def base_of(scope: InstallScope) -> Path:
    """Return the folder where programs start, and where labels without a file are searched."""
    return scope.home if scope.kind == "global" else scope.project


class ForeignServer(NamedTuple):
    """A server from a file of the project: the file, the label (empty in a lock), and the original entry."""

    file: Path
    label: str
    entry: Mapping[str, Any]


def needs_consent(server: Server, scope: InstallScope) -> ForeignServer | None:
    """Z1: return the server if the user has to allow it before it is used; ``None`` if it is their own."""
    if server.kind == "folder":
        return None
    label, entry = "", server.to_json()
    if server.kind == "label":
        label, (_, config) = server.words[0], target_of(server, scope)
        found = iter([config]) if config is not None else find_configs(base_of(scope), scope.home)
        file, entry = find_server(label, found)
        if not is_own(file, scope.home):
            if config is None:
                check_own_configs(label, scope.home)
            return ForeignServer(file, label, entry)
    return ForeignServer(scope.lock_path, label, entry) if scope.kind == "project" else None


def _without_secret(url: str) -> str:
    try:
        parts = urlsplit(url)
        is_plain = not (parts.username or parts.password or parts.query or parts.fragment)
    except ValueError:
        is_plain = False
    if not is_plain:
        raise FormatError(  # the URL is not repeated, because it may contain a secret
            "url-secret",
            "the URL has a user, a password or a query, which may be secret and would be recorded",
            "add the server to an mcpServers file, and use its label",
        )
    return url


def _path_in_lock(path: Path, scope: InstallScope) -> str:
    """Return the path relative to the lock of a project, or absolute for the lock of the user."""
    absolute = os.path.normpath(Path.cwd() / path)
    if scope.kind == "global":
        return absolute
    return os.path.relpath(absolute, scope.lock_path.parent)
