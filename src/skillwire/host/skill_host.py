"""``SkillHost``: a host made from an ``mcpServers`` file, folders and a state folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from skillwire.client.servers import read_servers
from skillwire.errors import FormatError
from skillwire.host.approvals import cannot_ask
from skillwire.host.host import Host
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.entry import fold
from skillwire.store.content_cache import ContentCache, check_place
from skillwire.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from skillwire.host.approvals import Ask, Policy
    from skillwire.store.contract import Store

DEFAULT_STATE = "~/.local/state/skillwire"


class SkillHost(Host):
    """A host with stored state: ``async with SkillHost.open(…) as host``."""

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        *,
        config: str | Path | None = None,
        servers: Mapping[str, Any] | None = None,
        folders: Sequence[str | Path] | Mapping[str, str | Path] = (),
        state: str | Path = DEFAULT_STATE,
        policy: Policy | None = None,
        ask: Ask = cannot_ask,
        limits: Limits = DEFAULT_LIMITS,
        instructions: bool = False,
    ) -> AsyncGenerator[SkillHost]:
        """Open a host with the servers of an ``mcpServers`` file, other servers, folders, and stored origins.

        It is ready at once, with the last listing of each server; ``settle`` waits for their current answers. With
        ``instructions``, it also requests the skills that are named in a server's instructions (I5).
        """
        given = _labelled(folders)
        await to_thread.run_sync(check_state, state, list(given.values()))
        store = await open_store(state)
        try:
            added, targets = await known_origins(store, config, servers)
            places = [*given.items(), *added.items()]
            cache = await to_thread.run_sync(open_cache, state, [path for _, path in places])
            host = cls(store, cache=cache, policy=policy, ask=ask, limits=limits, instructions=instructions)
            for label, path in places:
                await to_thread.run_sync(host.origins.add_folder, label, path)
            async with host.connected(targets):
                yield host
        finally:
            await store.close()


async def open_store(state: str | Path = DEFAULT_STATE) -> SqliteStore:
    """Open the store of the host with this state folder."""
    return await SqliteStore.open(_expanded(state) / "host.sqlite3")


def open_cache(state: str | Path = DEFAULT_STATE, folders: Sequence[Path] = ()) -> ContentCache:
    """Open the content cache of that host; ``StoreError`` if it would be in or above one of ``folders`` (C2)."""
    return ContentCache(_expanded(state) / "cache", forbidden=folders)


def check_state(state: str | Path, folders: Sequence[Path]) -> None:
    """Raise the ``StoreError`` of ``open_cache`` before any file is created."""
    check_place(_expanded(state) / "cache", folders)


async def known_origins(
    store: Store, config: str | Path | None = None, servers: Mapping[str, Any] | None = None
) -> tuple[dict[str, Path], dict[str, Any]]:
    """Folders and servers by label: stored origins, overridden by the file, overridden by ``servers``.

    The file cannot name folders: their skills need no approval, and the file may come from another person.
    """
    configured = labelled_servers(_expanded(config)) if config is not None else {}
    named = {**configured, **(servers or {})}
    added = {origin.label: dict(origin.settings) for origin in await store.origins() if origin.label not in named}
    folders = {label: Path(settings["folder"]) for label, settings in added.items() if "folder" in settings}
    return folders, {label: each for label, each in {**added, **named}.items() if label not in folders}


def labelled_servers(config: Path) -> dict[str, Mapping[str, Any]]:
    """The servers of a file by label (O1). Two names with the same label are an error (N1)."""
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


def label_for(name: str) -> str:
    """The label for a server name in a file, which may have characters that a label cannot have (O1)."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-")[:64] or "server"


def _expanded(path: str | Path) -> Path:
    return Path(os.path.expanduser(path))


def _labelled(folders: Sequence[str | Path] | Mapping[str, str | Path]) -> dict[str, Path]:
    """Folders by label: the given labels, or ``local``, ``local-2`` …"""
    if not isinstance(folders, Mapping):
        labels = ("local", *(f"local-{number}" for number in range(2, len(folders) + 1)))
        folders = dict(zip(labels, folders, strict=False))
    return {label: _expanded(path) for label, path in folders.items()}
