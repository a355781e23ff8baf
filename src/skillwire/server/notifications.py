"""Notifications of changes, in both eras (S1).

In the stateless era every open ``subscriptions/listen`` stream gets our events beside those of the server. In the
handshake era each session is notified: all sessions of a changed list, subscribers of an updated file. A client
gets no notification about something that it may not see; that is decided for the caller that opened the stream or
the session. A session that has ended, or cannot be notified, is removed.

On the endpoints that know skills by name there is also ``notifications/skills/list_changed`` (P5, M4).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import anyio
from mcp.server.subscriptions import (
    SUBSCRIPTION_ID_META_KEY,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import event_matches, event_to_notification
from mcp_types import (
    INTERNAL_ERROR,
    Notification,
    NotificationParams,
    ResourceListChangedNotification,
    SubscriptionsAcknowledgedNotification,
    SubscriptionsListenRequestParams,
)

from skillwire.errors import LimitError, SkillwireError
from skillwire.server.sdk_compat import connection_of
from skillwire.skill.uri import is_within, parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from mcp.server.context import CallNext, HandlerResult
    from mcp.server.lowlevel import Server
    from mcp.server.session import ServerSession
    from mcp.server.subscriptions import ServerEvent
    from mcp_types import ServerNotification

    from skillwire.catalog.contract import Catalog, Change, ChangeStream
    from skillwire.server.dialect import Context, Endpoint
    from skillwire.wire.native import Kind

    Sees = Callable[[str], bool]

_MAX_SESSIONS = 4096
_MAX_SUBSCRIPTIONS = 1024
_MAX_BACKLOG = 1024  # events that wait for a client to read them, as in the SDK
_LISTEN = "subscriptions/listen"
_SEND_SECONDS = 5.0
_SKILLS_LIST_CHANGED = "notifications/skills/list_changed"
_SKILLS, _RESOURCES = "skillsListChanged", "resourcesListChanged"

ListKind: TypeAlias = Literal["tools", "prompts", "resources", "skills"]

log = logging.getLogger("skillwire.server")
# Whether the stream that opens gets events about prompts (X2). The SDK calls ``subscribe`` without this.
_prompt_events: ContextVar[bool] = ContextVar("skillwire_prompt_events", default=False)


def check_subscriptions(count: int) -> None:
    """Raise a ``LimitError`` if a session or a stream subscribes to too many files."""
    if count > _MAX_SUBSCRIPTIONS:
        raise LimitError(
            "too-many-subscriptions",
            f"a session or a stream can subscribe to at most {_MAX_SUBSCRIPTIONS} files",
            "unsubscribe from some files first",
        )


class NotificationBus:
    """A subscription bus for the SDK: each listener gets only events that its caller may see."""

    def __init__(self, sees: Callable[[], Sees]) -> None:
        self._sees = sees
        self._listeners: dict[object, tuple[Callable[[ServerEvent], None], Sees, bool]] = {}

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Add a listener. The SDK calls this during ``subscriptions/listen``, so the caller is known."""
        token = object()
        self._listeners[token] = (listener, self._sees(), _prompt_events.get())
        return lambda: self._listeners.pop(token, None) and None

    async def publish(self, event: ServerEvent) -> None:
        """Send an event to all listeners; an event about a file only to those that may see it."""
        for listener, sees, _ in list(self._listeners.values()):
            if not isinstance(event, ResourceUpdated) or sees(event.uri):
                listener(event)
        await anyio.lowlevel.checkpoint()

    async def list_changed(self, uris: frozenset[str], index_uris: frozenset[str]) -> None:
        """Send that the list and the index changed at ``uris``, to listeners that may see one of them."""
        for listener, sees, prompts in list(self._listeners.values()):
            if any(sees(uri) for uri in uris):
                listener(ResourcesListChanged())
                for index in sorted(index_uris):
                    listener(ResourceUpdated(uri=index))
                if prompts:
                    listener(PromptsListChanged())
        await anyio.lowlevel.checkpoint()


@dataclass
class _Session:
    session: ServerSession
    sees: Sees
    endpoint: Endpoint = "extension"
    prompts: bool = False
    uris: dict[str, None] = field(default_factory=dict[str, None])


class Notifier:
    """Notifies streams and sessions of changes."""

    def __init__(self, server: Server[Any], catalog: Catalog, sees: Callable[[], Sees]) -> None:
        """A ``server`` without ``subscriptions/listen`` gets a handler for it."""
        self._catalog = catalog
        self._changes: ChangeStream | None = None
        self._turn = anyio.Lock()
        self._bus = NotificationBus(sees)
        self._server = server
        self._handler = ListenHandler(self._bus)
        if server.get_request_handler(_LISTEN) is None:
            server.add_request_handler(_LISTEN, SubscriptionsListenRequestParams, self._handler)
        self._sees = sees
        self._sessions: OrderedDict[int, _Session] = OrderedDict()
        self.index_uris: frozenset[str] = frozenset()  # the URIs of the index, which changes with every skill
        self.scoped_kinds: Callable[[], Iterable[Kind]] = tuple  # the kinds of items that skills bind (native)
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

    async def listen(self, ctx: Context, call_next: CallNext, *, prompts: bool) -> HandlerResult:
        """Serve ``subscriptions/listen``: our events beside those of the server's own handler.

        The acknowledgement of the server's handler is the first message of the stream, so our events wait for it.
        """
        _prompt_events.set(prompts)  # every request runs in its own context
        entry = self._server.get_request_handler(_LISTEN)
        if entry is None or entry.handler is self._handler:
            return await call_next(ctx)
        wanted = SubscriptionsListenRequestParams.model_validate(ctx.params or {}, by_name=False).notifications
        uris = frozenset(wanted.resource_subscriptions or ())
        session = _AcknowledgedSession(ctx.session)
        send, receive = anyio.create_memory_object_stream[Any](_MAX_BACKLOG)
        failure: Exception | None = None
        result: HandlerResult = None

        def deliver(event: ServerEvent) -> None:
            if event_matches(wanted, uris, event):
                try:
                    send.send_nowait(event)
                except anyio.WouldBlock:  # the client does not read, so it would miss events
                    group.cancel_scope.cancel()

        async def forward() -> None:
            await session.acknowledged.wait()
            meta = {SUBSCRIPTION_ID_META_KEY: ctx.request_id}
            try:
                async for event in receive:
                    await ctx.session.send_notification(event_to_notification(event, meta), ctx.request_id)
            except Exception:  # a broken connection may raise anything; the server's handler ends with it
                log.debug("a stream cannot be notified", exc_info=True)

        unsubscribe = self._bus.subscribe(deliver)
        try:
            with send, receive:
                async with anyio.create_task_group() as group:
                    group.start_soon(forward)
                    try:
                        result = await call_next(replace(ctx, session=cast("ServerSession", session)))
                    except Exception as error:  # raised below: a task group would wrap it
                        failure = error
                    group.cancel_scope.cancel()
        finally:
            unsubscribe()
        if failure is not None:
            raise failure
        if result is None:
            raise MCPError(INTERNAL_ERROR, "too many unread events; listen again")
        return result

    def replace_catalog(self, catalog: Catalog) -> None:
        """Notify of changes of another catalog from now on."""
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
                            await self.notify(change)
                            if self.after_change is not None:
                                await self.after_change()
                        except Exception:  # a failed notification must not stop the server
                            log.exception("a notification of a change failed")
            finally:
                self._changes.close()
                self._changes = None

    async def notify(self, change: Change) -> None:
        """Send the notifications for one change."""
        files = set(change.changed | change.removed)
        for uri in change.changed:
            with suppress(SkillwireError):  # it may be removed again
                files |= {file.uri for file in (await self._catalog.get_skill(uri)).files}
        for uri in sorted(files):
            await self._bus.publish(ResourceUpdated(uri=uri))
        await self._bus.list_changed(change.uris, self.index_uris)
        async with anyio.create_task_group() as group:  # a slow session does not delay the others
            for key, session in list(self._sessions.items()):
                group.start_soon(self._notify_session, key, session, change.uris, files)

    async def _notify_session(self, key: int, session: _Session, uris: frozenset[str], files: set[str]) -> None:
        try:
            with anyio.fail_after(_SEND_SECONDS):
                is_concerned = any(session.sees(uri) for uri in uris)
                for uri in list(session.uris):
                    is_index = uri in self.index_uris
                    if is_concerned if is_index else str(parse_uri(uri)) in files or _was_in(uri, uris):
                        await session.session.send_resource_updated(uri)
                if is_concerned:
                    for kind in self._kinds(session):
                        await _send_list_changed(session.session, kind)
        except Exception:  # a broken connection may raise anything
            log.debug("a session cannot be notified and is removed", exc_info=True)
            self._sessions.pop(key, None)

    def _kinds(self, session: _Session) -> Iterable[ListKind]:
        """The lists that changed. P5, M4: in dialects by name also the skills; M3: the kinds that skills bind."""
        kinds: list[ListKind] = ["resources"] if session.endpoint == "extension" else ["skills", "resources"]
        if session.prompts:
            kinds.append("prompts")
        if session.endpoint == "native":
            kinds.extend(self.scoped_kinds())
        return dict.fromkeys(kinds)

    def _session(self, session: ServerSession) -> _Session:
        connection = connection_of(session)
        key = id(connection)
        known = self._sessions.get(key)
        if known is not None:
            self._sessions.move_to_end(key)
        else:
            known = self._sessions[key] = _Session(session, self._sees())
            # Without this, sessions that have ended would take the places of open ones.
            connection.exit_stack.callback(self._sessions.pop, key, None)
            while len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return known


async def _send_list_changed(session: ServerSession, kind: ListKind) -> None:
    match kind:
        case "tools":
            await session.send_tool_list_changed()
        case "prompts":
            await session.send_prompt_list_changed()
        case "resources":
            await session.send_resource_list_changed()
        case "skills":
            notification = Notification[NotificationParams | None, str](method=_SKILLS_LIST_CHANGED, params=None)
            await session.send_notification(cast("ServerNotification", notification))


def _was_in(uri: str, skills: frozenset[str]) -> bool:
    """Whether the file at ``uri`` is or was in one of ``skills``. A removed file is in no entry any more."""
    file = parse_uri(uri)
    return any(is_within(skill_root(parse_uri(skill)), file) for skill in skills)


async def _follow(catalog: Catalog) -> None:
    try:
        await catalog.follow()
    except Exception as error:  # reads stay correct without watching
        log.warning("changes are no longer watched; reads stay correct: %s", error)


async def listen_for_skills(ctx: Context, call_next: CallNext) -> HandlerResult:
    """A handler for ``subscriptions/listen`` on the endpoints that know skills by name (P5, M4).

    A client that subscribes to ``skillsListChanged`` is notified of skills whenever its stream would notify it of
    resources. It is notified of resources only if it subscribed to them too. The SDK's handler serves the stream;
    the session is replaced by one that translates the notifications.
    """
    wanted = (ctx.params or {}).get("notifications")
    if not isinstance(wanted, dict) or cast("dict[str, Any]", wanted).get(_SKILLS) is not True:
        return await call_next(ctx)
    wanted = cast("dict[str, Any]", wanted)
    session = cast("ServerSession", _SkillsSession(ctx.session, resources=wanted.get(_RESOURCES) is True))
    others = {name: value for name, value in wanted.items() if name != _SKILLS}
    params = {**(ctx.params or {}), "notifications": {**others, _RESOURCES: True}}
    return await call_next(replace(ctx, session=session, params=params))


class _AcknowledgedSession:
    """A session that sets ``acknowledged`` after it has sent the acknowledgement of a subscription."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self.acknowledged = anyio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        """Send a notification."""
        await self._session.send_notification(notification, related_request_id)
        if isinstance(notification, SubscriptionsAcknowledgedNotification):
            self.acknowledged.set()


class _SkillsSession:
    """A session that sends notifications about skills in addition to, or instead of, those about resources."""

    def __init__(self, session: ServerSession, *, resources: bool) -> None:
        self._session = session
        self._resources = resources

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    async def send_notification(self, notification: Any, related_request_id: Any = None) -> None:
        """Send the notifications that the client subscribed to."""
        if isinstance(notification, SubscriptionsAcknowledgedNotification):
            honored: dict[str, Any] = {_SKILLS: True}
            if not self._resources:
                honored["resources_list_changed"] = None
            acknowledged = notification.params.notifications.model_copy(update=honored)
            params = notification.params.model_copy(update={"notifications": acknowledged})
            notification = notification.model_copy(update={"params": params})
        elif isinstance(notification, ResourceListChangedNotification):
            changed: Any = Notification[NotificationParams | None, str](
                method=_SKILLS_LIST_CHANGED, params=notification.params
            )
            await self._session.send_notification(changed, related_request_id)
            if not self._resources:
                return
        await self._session.send_notification(notification, related_request_id)
