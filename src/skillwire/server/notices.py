"""Telling clients what changed, in both eras (S1).

The stateless era has one bus: whoever listens hears it. In the handshake era each session is told: everyone that
the list changed, subscribers of a file that it was updated. A session that cannot be told is forgotten; at most
``_MAX_SESSIONS`` are remembered.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated

if TYPE_CHECKING:
    from mcp.server.session import ServerSession
    from mcp.server.subscriptions import SubscriptionBus

    from skillwire.catalog.changes import Change
    from skillwire.catalog.contract import Catalog

_MAX_SESSIONS = 4096
_MAX_SUBSCRIPTIONS = 1024
_PATIENCE_SECONDS = 5.0

log = logging.getLogger("skillwire.server")


@dataclass
class _Listener:
    session: ServerSession
    uris: dict[str, None] = field(default_factory=dict[str, None])


class Notices:
    """Who is to be told, and the telling."""

    def __init__(self, bus: SubscriptionBus) -> None:
        self._bus = bus
        self._listeners: OrderedDict[int, _Listener] = OrderedDict()

    def add_session(self, session: ServerSession) -> None:
        """Remember a session of the handshake era; its client has just said hello."""
        self._listener(session)

    def subscribe(self, session: ServerSession, uri: str) -> None:
        """Tell ``session`` when the file at ``uri`` changes."""
        uris = self._listener(session).uris
        if len(uris) < _MAX_SUBSCRIPTIONS:
            uris[uri] = None

    def unsubscribe(self, session: ServerSession, uri: str) -> None:
        """Tell it no longer."""
        self._listener(session).uris.pop(uri, None)

    async def run(self, catalog: Catalog) -> None:
        """Watch the catalog and tell, until cancelled."""
        with catalog.changes() as changes:
            async with anyio.create_task_group() as group:
                group.start_soon(_follow, catalog)
                async for change in changes:
                    await self.tell(catalog, change)

    async def tell(self, catalog: Catalog, change: Change) -> None:
        """One change, to everybody whom it concerns."""
        updated = change.changed | change.removed
        files = set(updated)
        for uri in change.changed:
            files |= await _files(catalog, uri)
        for uri in sorted(files):
            await self._bus.publish(ResourceUpdated(uri=uri))
        await self._bus.publish(ResourcesListChanged())
        for key, listener in list(self._listeners.items()):
            await self._tell_one(key, listener, files)

    async def _tell_one(self, key: int, listener: _Listener, files: set[str]) -> None:
        try:
            with anyio.fail_after(_PATIENCE_SECONDS):
                for uri in listener.uris:
                    if uri in files:
                        await listener.session.send_resource_updated(uri)
                await listener.session.send_resource_list_changed()
        except Exception:
            log.debug("a session could not be told of a change and is forgotten", exc_info=True)
            self._listeners.pop(key, None)

    def _listener(self, session: ServerSession) -> _Listener:
        # The SDK makes a session object for each request; the connection behind it is what stays.
        key = id(getattr(session, "_connection", session))
        listener = self._listeners.get(key)
        if listener is None:
            listener = self._listeners[key] = _Listener(session)
            while len(self._listeners) > _MAX_SESSIONS:
                self._listeners.popitem(last=False)
        return listener


async def _files(catalog: Catalog, uri: str) -> set[str]:
    try:
        return {file.uri for file in (await catalog.get_skill(uri)).files}
    except Exception:
        return set()


async def _follow(catalog: Catalog) -> None:
    try:
        await catalog.follow()
    except Exception as error:
        log.warning("changes on disk are no longer noticed, but reads stay correct: %s", error)
