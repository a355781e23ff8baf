"""The state of a host: where it is stored, and the origins that the user stored in it."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from skillwire.client.servers import read_servers
from skillwire.errors import FormatError
from skillwire.skill.uri import fold
from skillwire.store.content_cache import ContentCache, check_place
from skillwire.store.place import USER, expanded, is_url, state_folder
from skillwire.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


T = TypeVar("T")
_LABEL = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")


def several(folders: Sequence[T]) -> Sequence[T]:
    """``folders``, if it is a list. A text would be the folders that its letters name, such as ``/``."""
    if isinstance(cast("object", folders), str | os.PathLike):
        raise TypeError(f"'folders' is a list: folders=[{str(folders)!r}]")
    return folders


async def open_store(state: str | Path = USER) -> Store:
    """Open the store of the host with this state folder, or in the database with this URL."""
    return await Store.open(state if is_url(state) else state_folder(state) / "host.sqlite3")


def open_cache(state: str | Path = USER, folders: Sequence[Path] = ()) -> ContentCache:
    """Open the content cache of that host; ``StoreError`` if it would be in or above one of ``folders`` (C2)."""
    return ContentCache(state_folder(state) / "cache", forbidden=folders)


def check_state(state: str | Path, folders: Sequence[Path]) -> None:
    """Raise the ``StoreError`` of ``open_cache`` before any file is created."""
    check_place(state_folder(state) / "cache", folders)


async def known_origins(
    store: Store, config: str | Path | None = None, *, stored: bool = True
) -> tuple[dict[str, Path], dict[str, Any]]:
    """Folders and servers by label: the stored origins, overridden by the servers of an ``mcpServers`` file.

    The file cannot name folders: their skills need no approval, and the file may come from another person.
    """
    configured = {} if config is None else labelled_servers(expanded(config))
    origins = {origin.label: dict(origin.settings) for origin in await store.origins()} if stored else {}
    added = {label: settings for label, settings in origins.items() if label not in configured}
    folders = {label: Path(settings["folder"]) for label, settings in added.items() if "folder" in settings}
    return folders, {label: each for label, each in {**added, **configured}.items() if label not in folders}


def labelled_servers(config: Path) -> dict[str, Mapping[str, Any]]:
    """The servers of a file by label (O1). Two names with the same label are an error (N1).

    ``config`` may also be the policy of a gateway, with its Git repositories and the file of its servers.
    """
    if config.suffix == ".toml":
        return _servers_of_policy(config)
    found: dict[str, Mapping[str, Any]] = {}
    names: dict[str, str] = {}  # by folded label, since labels become folder names and parts of URIs
    for name, entry in read_servers(config, strict=True).items():
        label = label_for(name)
        other = names.setdefault(fold(label), name)
        if other != name:
            raise FormatError(
                "label-duplicate",
                f"the servers {other!r:.80} and {name!r:.80} in {config.name!r} have the same label {label!r}",
                "rename one of them",
                rule="O1",
            )
        found[label] = entry
    return found


def _servers_of_policy(policy: Path) -> dict[str, Mapping[str, Any]]:
    """The upstreams of a ``gateway.toml`` that need approvals. The gateway itself checks the whole file."""
    try:
        document = tomllib.loads(policy.read_text())
        servers, upstreams = document.get("servers"), document.get("upstream", {}).items()
        repositories = {
            label: table["git"] for label, table in upstreams if "git" in table and table.get("enabled", True)
        }
        known = {} if servers is None else labelled_servers(policy.parent / servers)
        return {**known, **{label: git_entry(git, policy.parent) for label, git in repositories.items()}}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise FormatError(
            "policy-invalid", f"{policy.name!r} is not a policy", "check its path and its text"
        ) from error


def git_entry(text: str, base: Path) -> dict[str, str]:
    """The entry of a Git repository in a policy. A local path is relative to the file, and begins with a dot."""
    return {"git": os.path.normpath(base.absolute() / text) if text.startswith(".") else text}


def is_label(text: str) -> bool:
    """Whether ``text`` can be the label of an origin. It has no ``#``, which is for clients of a gateway (Z5)."""
    return _LABEL.match(text) is not None


def label_for(name: str) -> str:
    """The label for a server name in a file, which may have characters that a label cannot have (O1)."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-")[:64] or "server"
