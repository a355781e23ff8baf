"""The desk on a socket: its pages behind the guard, until somebody ends it. Loopback only."""

from __future__ import annotations

import ipaddress
from functools import partial
from typing import TYPE_CHECKING

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from skillwire.errors import NotFoundError, OriginError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.server.bounds import BoundedProtocol, Connections
from skillwire.server.signals import StoppingServer
from skillwire.web.desk.answers import failure, shown
from skillwire.web.desk.desk import Desk
from skillwire.web.desk.guard import ENTER, Guard
from skillwire.web.desk.pages import approvals, files, log, login, origins, overview, question, skill
from skillwire.web.desk.sessions import Sessions
from skillwire.web.theme import static_route

if TYPE_CHECKING:
    import socket

    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.types import ASGIApp

    from skillwire.host.runtime import Host
    from skillwire.server.signals import StopSignals

_DRAIN_SECONDS = 3
_MOST_CONNECTIONS = 256


class DeskServer:
    """One desk on one listening socket. ``link`` is what lets one browser in, once."""

    def __init__(self, host: Host, listener: socket.socket, *, by: str = "user") -> None:
        address, port = listener.getsockname()[:2]
        if not ipaddress.ip_address(address).is_loopback:
            listener.close()
            raise OriginError(
                "desk-exposed", "the desk is for this machine alone", "let it listen on 127.0.0.1", rule="O1"
            )
        self._listener = listener
        self._sessions = Sessions()
        self._names = frozenset({f"{_in_url(address)}:{port}", f"localhost:{port}"})
        self._cookie = f"skillwire-desk-{port}"
        self.desk = Desk(host, by)
        self.url = f"http://{_in_url(address)}:{port}"
        self.link = f"{self.url}{ENTER}?key={self._sessions.key}"

    def app(self) -> ASGIApp:
        """The whole web application."""
        desk = self.desk
        pages = (overview, skill, files, question, log, approvals, origins)
        routes = [route for page in pages for route in page.routes(desk)]
        app = Starlette(
            routes=[
                *login.routes(self._sessions, self._cookie),
                Route("/events", desk.watcher.stream),
                static_route(),
                *routes,
            ],
            middleware=[Middleware(desk.numbered)],
            exception_handlers={SkillwireError: failure, HTTPException: _unknown, Exception: _broken},
        )
        return Guard(app, self._sessions, self._names, self._cookie)

    def config(self, limits: Limits = DEFAULT_LIMITS) -> uvicorn.Config:
        """The web server's settings, and the application."""
        return uvicorn.Config(
            self.app(),
            http=partial(BoundedProtocol, Connections(_MOST_CONNECTIONS, limits=limits)),  # type: ignore[arg-type]
            log_level="warning",
            access_log=False,  # the one-time key is in an address
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="off",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=_DRAIN_SECONDS,
        )

    async def run(self, signals: StopSignals) -> None:
        """Serve until a signal asks to stop; then end the streams of events."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.desk.watcher.run)
            await StoppingServer(self.config(), signals, self.desk.watcher.end).serve([self._listener])
            group.cancel_scope.cancel()


def _unknown(request: Request, error: Exception) -> Response:
    """There is no such page, or it is none to look at."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    said = NotFoundError("page-unknown", "there is no such page", "go back to the overview")
    return shown(request, "desk/failure.html", status=status, error=said)


def _broken(request: Request, error: Exception) -> Response:  # noqa: ARG001 - the shape of a Starlette handler
    """A fault of ours: whoever started the desk sees it there in full."""
    said = SkillwireError("desk-broken", "the desk made a mistake", "see what it says where skillwire ui runs")
    return shown(request, "desk/failure.html", status=500, error=said)


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address
