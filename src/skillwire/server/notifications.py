"""Notifications of changes, in both eras (S1).

A listener is a session of the handshake era, or an open ``subscriptions/listen`` stream of the stateless era,
which also carries the server's own events. All listeners are notified of a changed list, and subscribers of an
updated file. A listener is notified only of what the caller that opened it may see. A listener that cannot be
notified is removed.

On the endpoints that know skills by name there is also ``notifications/skills/list_changed`` (P5, M4).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

import anyio
from mcp.server.subscriptions import SUBSCRIPTION_ID_META_KEY, InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    Notification,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsListenRequestParams,
)

from skillwire.errors import FormatError, LimitError, SkillwireError
from skillwire.server.sdk_compat import connection_of
from skillwire.skill.uri import is_within, parse_uri, root_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.lowlevel import Server
    from mcp.server.session import ServerSession
    from mcp_types import RequestId, ServerNotification

    from skillwire.catalog.contract import Catalog, Change, ChangeStream
    from skillwire.server.dialect import Context, Endpoint
    from skillwire.skill.uri import SkillUri
    from skillwire.wire.native import BoundKind

    Sees = Callable[[str], bool]

_MAX_SESSIONS = 4096
_MAX_SUBSCRIPTIONS = 1024
_LISTEN = "subscriptions/listen"
_SEND_SECONDS = 5.0
_SKILLS = "skillsListChanged"

ListKind: TypeAlias = Literal["tools", "prompts", "resources", "skills"]

log = logging.getLogger("skillwire.server")


def check_subscriptions(count: int) -> None:
    """Raise a ``LimitError`` if a session or a stream subscribes to too many files."""
    if count > _MAX_SUBSCRIPTIONS:
        raise LimitError(
            "too-many-subscriptions",
            f"a session or a stream can subscribe to at most {_MAX_SUBSCRIPTIONS} files",
            "unsubscribe from some files first",
        )


@dataclass(eq=False)
class _Listener:
    """A session, or the stream that answers the request ``request_id``."""

    session: ServerSession
    sees: Sees
    endpoint: Endpoint = "extension"
    prompts: bool = False  # whether the client sees skills as prompts
    wanted: frozenset[ListKind] = frozenset(get_args(ListKind))
    uris: dict[str, None] = field(default_factory=dict[str, None])
    request_id: RequestId | None = None
    acknowledged: anyio.Event | None = None  # the acknowledgement is the first message of a stream
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)  # of the request

    async def send(self, method: str, **params: Any) -> None:
        """Send one notification."""
        if self.request_id is not None:
            params["_meta"] = {SUBSCRIPTION_ID_META_KEY: self.request_id}
        notification = Notification[dict[str, Any] | None, str](
            method=f"notifications/{method}", params=params or None
        )
        await self.session.send_notification(cast("ServerNotification", notification), self.request_id)


class Notifier:
    """Notifies streams and sessions of changes."""

    def __init__(self, server: Server[Any], catalog: Catalog, sees: Callable[[], Sees]) -> None:
        """A ``server`` without ``subscriptions/listen`` gets a handler for it."""
        self._catalog = catalog
        self._changes: ChangeStream | None = None
        self._turn = anyio.Lock()
        if server.get_request_handler(_LISTEN) is None:
            handler = ListenHandler(InMemorySubscriptionBus())
            server.add_request_handler(_LISTEN, SubscriptionsListenRequestParams, handler)
        self._sees = sees
        self._sessions: OrderedDict[int, _Listener] = OrderedDict()  # by connection
        self._streams: set[_Listener] = set()
        self.index_uris: frozenset[str] = frozenset()  # the URIs of the index, which changes with every skill
        # The kinds of items that skills bind (native).
        self.scoped_kinds: Callable[[], Iterable[BoundKind]] = tuple
        self.after_change: Callable[[], Awaitable[None]] | None = None

    def add_session(self, session: ServerSession, endpoint: Endpoint, *, prompts: bool) -> None:
        """Add a session of the handshake era, when its client initialises it.

        ``prompts``: whether it sees skills as prompts.
        """
        added = self._session(session)
        added.endpoint, added.prompts = endpoint, prompts

    def subscribe(self, session: ServerSession, uri: str) -> None:
        """Notify ``session`` when the file at ``uri`` changes."""
        uris = self._session(session).uris
        check_subscriptions(len(uris) + 1)
        uris[uri] = None

    def unsubscribe(self, session: ServerSession, uri: str) -> None:
        """Stop notifying ``session`` of changes of ``uri``."""
        self._session(session).uris.pop(uri, None)

    def _session(self, session: ServerSession) -> _Listener:
        connection = connection_of(session)
        key = id(connection)
        known = self._sessions.get(key)
        if known is not None:
            self._sessions.move_to_end(key)
        else:
            known = self._sessions[key] = _Listener(session, self._sees())
            # Without this, sessions that have ended would take the places of open ones.
            connection.exit_stack.callback(self._sessions.pop, key, None)
            while len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return known

    async def listen(
        self, ctx: Context, call_next: CallNext, endpoint: Endpoint, *, prompts: bool
    ) -> HandlerResult:
        """Serve ``subscriptions/listen``: our notifications beside those of the server's handler."""
        filters = SubscriptionsListenRequestParams.model_validate(ctx.params or {}, by_name=False).notifications
        requested = filters.model_dump(by_alias=True)
        kinds: frozenset[ListKind] = frozenset(
            kind for kind in get_args(ListKind) if requested.get(f"{kind}ListChanged") is True
        )
        if endpoint == "extension":
            kinds -= {"skills"}
        session = _AcknowledgedSession(ctx.session, skills="skills" in kinds)
        stream = _Listener(
            ctx.session,
            self._sees(),
            endpoint,
            prompts,
            kinds,
            dict.fromkeys(filters.resource_subscriptions or ()),
            ctx.request_id,
            session.acknowledged,
        )
        self._streams.add(stream)
        try:
            with stream.scope:
                return await call_next(replace(ctx, session=cast("ServerSession", session)))
        finally:
            self._streams.discard(stream)
        raise MCPError(INTERNAL_ERROR, "a notification could not be sent; listen again")

    def replace_catalog(self, catalog: Catalog) -> None:
        """Watch ``catalog`` instead of the current catalog."""
        if self._changes is not None:
            old, self._changes = self._changes, catalog.changes()
            old.close()
        self._catalog = catalog

    async def run(self, sources: Sequence[Catalog]) -> None:
        """Watch ``sources``, and send notifications of changes, until cancelled.

        In memory each connection runs the server. One of these runs sends notifications; the others wait.
        """
        async with self._turn, anyio.create_task_group() as group:
            for source in sources:
                group.start_soon(_follow, source)
            self._changes = self._catalog.changes()
            try:
                while True:
                    async for change in self._changes:  # ends when the catalog is replaced
                        try:
                            await self._notify(change)
                            if self.after_change is not None:
                                await self.after_change()
                        except Exception:  # a failed notification must not stop the server
                            log.exception("a notification of a change failed")
            finally:
                self._changes.close()
                self._changes = None

    async def _notify(self, change: Change) -> None:
        """Send the notifications for one change."""
        files = set(change.changed | change.removed)
        for uri in change.changed:
            with suppress(SkillwireError):  # it may be removed again
                files |= {file.uri for file in (await self._catalog.get_skill(uri)).files}
        roots = [root_of(uri) for uri in change.uris]
        async with anyio.create_task_group() as group:  # a slow listener does not delay the others
            for listener in [*self._sessions.values(), *self._streams]:
                group.start_soon(self._notify_one, listener, change.uris, files, roots)

    async def _notify_one(
        self, listener: _Listener, uris: frozenset[str], files: set[str], roots: list[SkillUri]
    ) -> None:
        try:
            with anyio.fail_after(_SEND_SECONDS):
                if listener.acknowledged is not None:
                    await listener.acknowledged.wait()
                is_concerned = any(listener.sees(uri) for uri in uris)
                for uri in list(listener.uris):
                    is_updated = is_concerned
                    if uri not in self.index_uris:
                        is_updated = _is_updated(uri, files, roots) and listener.sees(uri)
                    if is_updated:
                        await listener.send("resources/updated", uri=uri)
                if is_concerned:
                    for kind in self._changed_lists(listener):
                        await listener.send(f"{kind}/list_changed")
        except Exception:  # a broken connection may raise anything
            log.debug("a listener cannot be notified and is removed", exc_info=True)
            for key in [key for key, each in self._sessions.items() if each is listener]:
                del self._sessions[key]
            # A stream ends with an error, so its client knows that it has to listen and list again.
            listener.scope.cancel()

    def _changed_lists(self, listener: _Listener) -> list[ListKind]:
        """The lists that changed. P5, M4: in dialects by name also the skills; M3: the kinds that skills bind."""
        kinds: list[ListKind] = ["resources"] if listener.endpoint == "extension" else ["skills", "resources"]
        if listener.prompts:
            kinds.append("prompts")
        if listener.endpoint == "native":
            kinds.extend(self.scoped_kinds())
        return [kind for kind in dict.fromkeys(kinds) if kind in listener.wanted]


def _is_updated(uri: str, files: set[str], roots: list[SkillUri]) -> bool:
    """Whether the file at ``uri`` changed, or is or was in a changed skill: a removed file is in no entry."""
    try:
        file = parse_uri(uri)
    except FormatError:  # a resource of the server
        return False
    return str(file) in files or any(is_within(root, file) for root in roots)


async def _follow(catalog: Catalog) -> None:
    try:
        await catalog.follow()
    except Exception as error:  # reads stay correct without watching
        log.warning("changes are no longer watched; reads stay correct: %s", error)


class _AcknowledgedSession:
    """A session that sets ``acknowledged`` after it has sent the acknowledgement of a subscription.

    The SDK does not know ``skillsListChanged``; with ``skills`` it is added to the acknowledgement.
    """

    def __init__(self, session: ServerSession, *, skills: bool) -> None:
        self._session = session
        self._skills = skills
        self.acknowledged = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        """Send a notification."""
        is_acknowledgement = isinstance(notification, SubscriptionsAcknowledgedNotification)
        if is_acknowledgement and self._skills:
            honored = notification.params.notifications.model_copy(update={_SKILLS: True})
            params = notification.params.model_copy(update={"notifications": honored})
            notification = notification.model_copy(update={"params": params})
        await self._session.send_notification(notification, related_request_id)
        if is_acknowledgement:
            self.acknowledged.set()
