"""Telling clients what changed, in both eras (S1).

The stateless era has a bus: whoever listens hears it. In the handshake era each session is told: everyone that
the list changed, subscribers of a file that it was updated. Nobody hears of what they may not see: whose request
it is decides, when it begins to listen. A session that ended, or cannot be told, is forgotten.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

import anyio
from mcp.server.connection import Connection
from mcp.server.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated
from mcp_types import Notification, NotificationParams

from skillwire.errors import LimitError, SkillwireError
from skillwire.skill.uri import is_within, parse_uri, skill_root

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

    from mcp.server.session import ServerSession
    from mcp.server.subscriptions import ServerEvent, SubscriptionBus
    from mcp_types import ServerNotification

    from skillwire.catalog.changes import Change
    from skillwire.catalog.contract import Catalog
    from skillwire.server.routing import Endpoint
    from skillwire.wire.native import Kind

    Sees = Callable[[str], bool]

_MAX_SESSIONS = 4096
_MAX_SUBSCRIPTIONS = 1024
_PATIENCE_SECONDS = 5.0
SKILLS_LIST_CHANGED = "notifications/skills/list_changed"

ListKind: TypeAlias = Literal["tools", "prompts", "resources", "skills"]

log = logging.getLogger("skillwire.server")
_hears_prompts: ContextVar[bool] = ContextVar("skillwire_hears_prompts", default=False)


@contextmanager
def hears_of_prompts(hears: bool) -> Generator[None]:
    """Whoever begins to listen in here sees skills as prompts, or does not (X2)."""
    token = _hears_prompts.set(hears)
    try:
        yield
    finally:
        _hears_prompts.reset(token)


def everything(uri: str) -> bool:  # noqa: ARG001 - no policy, no limits
    """What a caller may see where nobody is restricted."""
    return True


def check_subscriptions(count: int) -> None:
    """Raise a ``LimitError`` if a session or a stream wants to hear of too many files."""
    if count > _MAX_SUBSCRIPTIONS:
        raise LimitError(
            "too-many-subscriptions",
            f"a session or a stream may subscribe to {_MAX_SUBSCRIPTIONS} files",
            "drop some first",
        )


class NoticeBus:
    """The SDK's subscription bus, for a server of our own: each listener hears what its caller may see."""

    def __init__(self, sees: Callable[[], Sees]) -> None:
        self._sees = sees
        self._listeners: dict[object, tuple[Callable[[ServerEvent], None], Sees, bool]] = {}

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Called by the SDK while it answers ``subscriptions/listen``, so the caller is known."""
        token = object()
        self._listeners[token] = (listener, self._sees(), _hears_prompts.get())
        return lambda: self._listeners.pop(token, None) and None

    async def publish(self, event: ServerEvent) -> None:
        """An event for everybody; one about a file only for those who may see it."""
        for listener, sees, _ in list(self._listeners.values()):
            if not isinstance(event, ResourceUpdated) or sees(event.uri):
                listener(event)
        await anyio.lowlevel.checkpoint()

    async def list_changed(self, uris: frozenset[str], index_uris: frozenset[str]) -> None:
        """The list, and the index with it, changed at ``uris``: for those who may see one of them."""
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
    endpoint: Endpoint
    prompts: bool = False
    uris: dict[str, None] = field(default_factory=dict[str, None])


class Notices:
    """Who is to be told, and the telling."""

    def __init__(self, bus: SubscriptionBus, sees: Callable[[], Sees]) -> None:
        self._bus = bus
        self._sees = sees
        self._sessions: OrderedDict[int, _Session] = OrderedDict()
        self._tells_of_prompts = False
        self.index_uris: frozenset[str] = frozenset()  # where the index is, which changes with every skill
        self.scoped_kinds: Callable[[], Iterable[Kind]] = tuple  # what skills bind, on the native endpoint

    def tell_of_prompts(self) -> None:
        """Skills are prompts too, for those who do not know them otherwise (X2)."""
        self._tells_of_prompts = True

    def add_prompts(self, session: ServerSession) -> None:
        """Remember that a session of the handshake era sees skills as prompts."""
        self._session(session).prompts = True

    def add_session(self, session: ServerSession, endpoint: Endpoint) -> None:
        """Remember a session of the handshake era; its client has just said hello."""
        self._session(session, endpoint)

    def subscribe(self, session: ServerSession, uri: str) -> None:
        """Tell ``session`` when the file at ``uri`` changes."""
        uris = self._session(session).uris
        check_subscriptions(len(uris) + 1)
        uris[uri] = None

    def unsubscribe(self, session: ServerSession, uri: str) -> None:
        """Tell it no longer."""
        self._session(session).uris.pop(uri, None)

    async def run(self, catalog: Catalog, *, watch: bool) -> None:
        """Tell, until cancelled, what changes: seen by watching the source, or only when something is read."""
        with catalog.changes() as changes:
            async with anyio.create_task_group() as group:
                if watch:
                    group.start_soon(_follow, catalog)
                async for change in changes:
                    try:
                        await self.tell(catalog, change)
                    except Exception:  # whatever it is, the server must not end because of a notice
                        log.exception("a change could not be told")

    async def tell(self, catalog: Catalog, change: Change) -> None:
        """One change, to everybody whom it concerns."""
        files = set(change.changed | change.removed)
        for uri in change.changed:
            with suppress(SkillwireError):  # it may be gone again
                files |= {file.uri for file in (await catalog.get_skill(uri)).files}
        for uri in sorted(files):
            await self._bus.publish(ResourceUpdated(uri=uri))
        if isinstance(self._bus, NoticeBus):
            await self._bus.list_changed(change.uris, self.index_uris)
        else:  # the bus of a server that has things of its own
            await self._bus.publish(ResourcesListChanged())
            for uri in sorted(self.index_uris):
                await self._bus.publish(ResourceUpdated(uri=uri))
            if self._tells_of_prompts:
                await self._bus.publish(PromptsListChanged())
        async with anyio.create_task_group() as group:  # one that is slow does not make the others wait
            for key, session in list(self._sessions.items()):
                group.start_soon(self._tell_session, key, session, change.uris, files)

    async def _tell_session(self, key: int, session: _Session, uris: frozenset[str], files: set[str]) -> None:
        try:
            with anyio.fail_after(_PATIENCE_SECONDS):
                is_concerned = any(session.sees(uri) for uri in uris)
                for uri in list(session.uris):
                    is_index = uri in self.index_uris
                    if is_concerned if is_index else str(parse_uri(uri)) in files or _was_in(uri, uris):
                        await session.session.send_resource_updated(uri)
                if is_concerned:
                    for kind in self._kinds(session):
                        await _tell_of(session.session, kind)
        except Exception:  # whatever a broken connection raises
            log.debug("a session could not be told of a change and is forgotten", exc_info=True)
            self._sessions.pop(key, None)

    def _kinds(self, session: _Session) -> Iterable[ListKind]:
        """P5, M4: where skills are known by name, their list is one of its own; M3: and may bring things along."""
        kinds: list[ListKind] = ["resources"] if session.endpoint == "extension" else ["skills", "resources"]
        if session.prompts:
            kinds.append("prompts")
        if session.endpoint == "native":
            kinds.extend(self.scoped_kinds())
        return dict.fromkeys(kinds)

    def _session(self, session: ServerSession, endpoint: Endpoint = "extension") -> _Session:
        # The SDK makes a session object for each request; the connection behind it is what stays.
        connection = getattr(session, "_connection", session)
        key = id(connection)
        known = self._sessions.get(key)
        if known is not None:
            self._sessions.move_to_end(key)
        else:
            known = self._sessions[key] = _Session(session, self._sees(), endpoint)
            if isinstance(connection, Connection):  # else those that ended would push out those that listen
                connection.exit_stack.callback(self._sessions.pop, key, None)
            while len(self._sessions) > _MAX_SESSIONS:
                self._sessions.popitem(last=False)
        return known


async def _tell_of(session: ServerSession, kind: ListKind) -> None:
    match kind:
        case "tools":
            await session.send_tool_list_changed()
        case "prompts":
            await session.send_prompt_list_changed()
        case "resources":
            await session.send_resource_list_changed()
        case "skills":
            notification = Notification[NotificationParams | None, str](method=SKILLS_LIST_CHANGED, params=None)
            await session.send_notification(cast("ServerNotification", notification))


def _was_in(uri: str, skills: frozenset[str]) -> bool:
    """Whether the file at ``uri`` is, or was, in one of ``skills``: one that is gone is in no entry any more."""
    file = parse_uri(uri)
    return any(is_within(skill_root(parse_uri(skill)), file) for skill in skills)


async def _follow(catalog: Catalog) -> None:
    try:
        await catalog.follow()
    except Exception as error:  # as above: reads stay correct without watching
        log.warning("changes on disk are no longer noticed, but reads stay correct: %s", error)
