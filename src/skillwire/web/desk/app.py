"""The desk: the state that its pages share, their live updates, its application, and its loopback server."""

from __future__ import annotations

import ipaddress
import logging
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Route

from skillwire.errors import NotFoundError, OriginError, SkillwireError, StoreError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.server.http_protocol import BoundedProtocol, Connections
from skillwire.server.signals import StoppingServer
from skillwire.web.desk import history, overview, records, skill
from skillwire.web.desk.guard import ENTER, DeskGuard, DeskSessions, login_route, refusal
from skillwire.web.desk.overview import SkillRows, list_questions
from skillwire.web.desk.reader import DeskReader
from skillwire.web.desk.responses import HEADERS, error_page, named_skill, page_response
from skillwire.web.events import ChangeCounter, EventStreams
from skillwire.web.theme import static_route

if TYPE_CHECKING:
    import socket

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.host.host import SkillHost
    from skillwire.host.origins import NamedEntry
    from skillwire.server.signals import StopSignals
    from skillwire.store.records import Question

_PAGES = (overview, skill, history, records)
_POLL_SECONDS = 0.5  # other processes may change the same store
_DRAIN_SECONDS = 3
_MAX_CONNECTIONS = 256
log = logging.getLogger("skillwire.desk")


class Watcher(ChangeCounter):
    """Counts changes. ``run`` polls for them until it is cancelled."""

    def __init__(self, host: SkillHost) -> None:
        super().__init__()
        self._host = host
        self._compared: list[Any] = []
        self._streams = EventStreams()

    async def run(self) -> None:
        """Poll for changes, and notify the streams."""
        seen: object = None
        while True:
            try:
                snapshot = await self._snapshot()
            except StoreError as error:
                log.info("the store cannot be read: %s", error.reference)
                snapshot = seen
            if snapshot != seen:
                seen = snapshot
                self.tell()
            await anyio.sleep(_POLL_SECONDS)

    def end(self) -> None:
        """End every stream, because the desk closes."""
        self._streams.end()

    async def stream(self, request: Request) -> Response:
        """The event stream of one page."""
        return self._streams.response(request, self, HEADERS) or refusal("too-many-streams", request)

    async def _snapshot(self) -> Any:
        """A value that is equal as long as no page would change.

        Errors and lists of origins are compared by identity, because a list can have thousands of skills.
        """
        store = self._host.store
        waiting = [question.id for question in await store.questions(time.time())]
        origins = [(each.label, each.state, each.error, each.known) for each in self._host.registry]
        same = [(label, state, id(error), id(entries)) for label, state, error, entries in origins]
        self._compared = origins  # keeps the objects alive until the next snapshot, so that no id is used again
        return await store.version(), waiting, same


@dataclass
class Desk:
    """The state that all pages share. ``by`` is the name of the user, for the log."""

    host: SkillHost
    by: str = "user"
    reader: DeskReader = field(init=False)
    watcher: Watcher = field(init=False)
    rows: SkillRows = field(init=False)

    def __post_init__(self) -> None:
        self.reader = DeskReader(self.host)
        self.watcher = Watcher(self.host)
        self.rows = SkillRows(self.host, self.reader)

    async def show(
        self, request: Request, template: str, *, block: str = "", status: int = 200, **context: Any
    ) -> Response:
        """Render a page, with the number of changes from ``numbered``, or only a ``block`` of it on request."""
        if block and request.query_params.get("part"):
            return page_response(request, template, block=block, **context)
        number, waiting = request.state.number, len(await list_questions(self.host))
        return page_response(
            request, template, status=status, number=number, waiting=waiting, by=self.by, **context
        )

    def numbered(self, app: ASGIApp) -> ASGIApp:
        """Store the number of changes with each request before its page is made.

        Making a page can take long. With the number, the page learns from the first event that it is outdated.
        """

        async def with_number(scope: Scope, receive: Receive, send: Send) -> None:
            scope.setdefault("state", {})["number"] = self.watcher.number
            await app(scope, receive, send)

        return with_number

    async def requested_skill(self, request: Request) -> NamedEntry:
        """The skill in the address of a request, with its complete entry."""
        return await self.find_skill(*named_skill(request))

    async def find_skill(self, label: str, uri: str) -> NamedEntry:
        """A skill by origin and URI, with its complete entry if its server responds."""
        self.host.registry.get(label)
        try:
            return await self.host.find(uri, label)
        except (UpstreamError, OriginError):  # the server does not respond: use the known entry
            return self.known_skill(label, uri)

    def known_skill(self, label: str, uri: str) -> NamedEntry:
        """A skill with its known entry, without a request to its server."""
        origin = self.host.registry.get(label)
        for named in self.host.names.skills:
            if named.origin is origin and named.entry.uri == uri:
                return named
        raise NotFoundError(
            "skill-unknown",
            f"{label!r:.80} lists no skill {uri!r:.300}",
            "go back to the overview: the skill was removed, or its server has not responded yet",
        )

    async def open_question(self, identity: str) -> Question:
        """An open question; ``NotFoundError`` if it was answered or withdrawn."""
        for open_question in await self.host.store.questions(time.time()):
            if open_question.id == identity:
                return open_question
        raise NotFoundError(
            "question-gone",
            "this question is closed",
            "it was answered, or the program that asked has ended; see the log",
        )


class DeskServer:
    """A desk on a listening socket. ``link`` admits one browser, once."""

    def __init__(self, host: SkillHost, listener: socket.socket, *, by: str = "user") -> None:
        address, port = listener.getsockname()[:2]
        if not ipaddress.ip_address(address).is_loopback:
            listener.close()
            raise OriginError(
                "desk-exposed", "the desk serves only this machine", "let it listen on 127.0.0.1", rule="O1"
            )
        name = f"[{address}]" if ":" in address else address
        self._listener = listener
        self._sessions = DeskSessions()
        self._names = frozenset({f"{name}:{port}", f"localhost:{port}"})
        self._cookie = f"skillwire-desk-{port}"
        self.desk = Desk(host, by)
        self.url = f"http://{name}:{port}"
        self.link = f"{self.url}{ENTER}?key={self._sessions.key}"

    def app(self) -> ASGIApp:
        """The web application."""
        desk, failed = self.desk, Middleware(ExceptionMiddleware, handlers={Exception: error_page})
        app = Starlette(
            routes=[
                login_route(self._sessions, self._cookie),
                Route("/events", desk.watcher.stream),
                static_route(),
                *(route for page in _PAGES for route in page.routes(desk)),
            ],
            middleware=[failed, Middleware(desk.numbered)],
            exception_handlers={SkillwireError: error_page, HTTPException: error_page},
        )
        return DeskGuard(app, self._sessions, self._names, self._cookie)

    def config(self, limits: Limits = DEFAULT_LIMITS) -> uvicorn.Config:
        """The settings of the web server, with the application."""
        return uvicorn.Config(
            self.app(),
            http=partial(BoundedProtocol, Connections(_MAX_CONNECTIONS, limits=limits)),  # type: ignore[arg-type]
            log_level="warning",
            access_log=False,  # the one-time key is in a URL
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        )

    async def run(self, signals: StopSignals) -> None:
        """Serve until a stop signal; then end the event streams."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.desk.watcher.run)
            await StoppingServer(self.config(), signals, self.desk.watcher.end).serve([self._listener])
            group.cancel_scope.cancel()
