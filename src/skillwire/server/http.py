"""Streamable HTTP for operators: health and readiness, metrics, access logs, limits, compression, drain.

The SDK implements the protocol; this module adds the rest of a web server. The SDK limits the size of bodies, and
``http_protocol.py`` everything else that a client can take. One caller, by its subject or by its address, has at
most a quarter of the sessions of the handshake era (Z6). A server on a loopback address, or with a public URL,
accepts only requests with its own host names (DNS rebinding). A server on ``0.0.0.0`` does not know its names.

``WebApp`` is the application, for any web server and for mounting; ``HttpServer`` runs it on a socket.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import socket
import time
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.routes import create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import AnyHttpUrl
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

from skillwire.errors import FormatError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, MIB, Limits
from skillwire.server.access import Access, Verifier, read_access
from skillwire.server.callers import CallerViews
from skillwire.server.endpoints import MCP_PATH, DialectPaths, route_path
from skillwire.server.http_protocol import BoundedProtocol, CachedProtocol, Connections, network_of
from skillwire.server.metrics import Metrics
from skillwire.server.page import Guard
from skillwire.server.response_cache import COMPRESS_FROM, DEFAULT_BYTES, ResponseCache
from skillwire.server.sdk_compat import wrap_session_manager
from skillwire.server.signals import StoppingServer

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Callable, Container

    from mcp.server.lowlevel import Server
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillwire.catalog.contract import Catalog
    from skillwire.server.page import MountedPage
    from skillwire.server.response_cache import Headers
    from skillwire.server.signals import StopSignals

_HEALTH = ("/healthz", "/readyz")  # orchestrators send any host name
_SESSION_ID, _VERSION = b"mcp-session-id", b"mcp-protocol-version"
_ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
_NO_CONTENT = {"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff"}
_WRONG_HOST = (
    "The host name or the origin of the request is not one of this server. Add it: public_url, --public-url.\n"
)
_NOT_STARTED = (
    "The application with skills is mounted but not started. Give its lifespan to the outer application:"
    " FastAPI(lifespan=app.lifespan) or Starlette(lifespan=app.lifespan), where app is the result of asgi()."
)

access_log = logging.getLogger("skillwire.access")
log = logging.getLogger("skillwire.server")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Settings of an operator."""

    access: Access | None = None
    public_url: str | None = None  # the URL that clients use; OAuth metadata contains it
    path: str = MCP_PATH
    metrics: bool = True
    max_body_bytes: int = MIB
    max_connections: int = 1024
    max_sessions: int = 4096  # of the handshake era
    drain_seconds: int = 5
    asks: bool = False  # whether the server sends requests to clients of the handshake era: needs event streams
    replay_bytes: int = DEFAULT_BYTES  # memory of the response cache; 0 for no cache
    limits: Limits = DEFAULT_LIMITS


def embedding_options(
    path: str, access: Access | str | os.PathLike[str] | None, public_url: str | None, *, metrics: bool
) -> HttpOptions:
    """Settings of an application whose address is unknown. ``access`` may be the path of an access file."""
    opened = access if access is None or isinstance(access, Access) else read_access(Path(access))
    options = HttpOptions(opened, public_url, path, metrics)
    _auth_settings(options, None)  # raises an error if the address is needed
    return options


class WebApp:
    """Skills as a web application (ASGI): the protocol at its path, health, metrics, and a page for people.

    Run it with any web server, or mount it in Starlette or FastAPI below any prefix. These do not start an
    application that they mount, so give them its lifespan: ``FastAPI(lifespan=app.lifespan)``.
    """

    def __init__(
        self,
        server: Server[Any],
        options: HttpOptions | None = None,
        *,
        catalog: Callable[[], Catalog] | None = None,
        page: MountedPage | None = None,
    ) -> None:
        """``catalog`` returns everything that ``server`` serves. Without it responses are not cached."""
        self.options = options or HttpOptions()
        self.cache: ResponseCache | None = None
        self._server = server
        self._page = page
        self._metrics = Metrics()
        if self.options.metrics:
            server.middleware.insert(0, self._metrics)
        self._draining = False
        self._started: Starlette | None = None
        self._url: str | None = None  # at the listening socket
        self._names = None if self.options.public_url is None else _allowed_names("", self.options.public_url)
        self._app: ASGIApp = DialectPaths(self._pass_on, self.options.path)
        access, room = self.options.access, self.options.replay_bytes
        if catalog is not None and room and (access is None or access.jwt is None):  # web tokens expire
            view_of = _everything if access is None else _views(access)
            self.cache = ResponseCache(self._app, self.options.path, catalog, self._metrics, room, view_of)

    def bind(self, url: str, host: str) -> None:
        """Serve at a known address. Only requests with its host names are accepted."""
        self._url = url
        self._names = _allowed_names(host, self.options.public_url)

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:  # noqa: ARG002 - given by Starlette
        """Run the server. Use it as the lifespan of the application around this one, or inside that lifespan."""
        self._started, self._draining = self._starlette(), False  # new each time: the SDK runs a manager once
        try:
            async with self._server.session_manager.run():
                yield
        finally:
            self._started = None

    @property
    def metadata_routes(self) -> list[Route]:
        """OAuth metadata of the protected resource, for web tokens. It belongs at the root of the host (RFC 9728).

        The application has this route itself. If it is mounted below a prefix, add it to the outer application.
        """
        auth = _auth_settings(self.options, self._url)
        if auth is None or auth.resource_server_url is None:
            return []
        return create_protected_resource_routes(auth.resource_server_url, [auth.issuer_url])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or the lifespan if a web server runs this application itself."""
        if scope["type"] == "lifespan":
            await Router(lifespan=self.lifespan)(scope, receive, send)
            return
        if scope["type"] != "http":
            await self._pass_on(scope, receive, send)
            return
        # RFC 9110, 5.5: spaces around a value do not belong to it. The fast parser keeps those at its end.
        scope = {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}
        if access_log.isEnabledFor(logging.INFO):
            await _logged(self._answer, scope, receive, send)
        else:
            await self._answer(scope, receive, send)

    def drain(self) -> None:
        """Report "not ready", and close the event streams, which would stay open forever."""
        self._draining = True
        listening = self._server.get_request_handler("subscriptions/listen")
        close = getattr(listening.handler, "close", None) if listening else None
        if close is not None:
            close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        names = self._names
        if names is None and _is_loopback(scope):
            names = _LOOPBACK_NAMES
        if names is not None and route_path(scope) not in _HEALTH:
            refusal = await names.validate_request(Request(scope))
            if refusal is not None:
                await PlainTextResponse(_WRONG_HOST, refusal.status_code, headers=_NO_CONTENT)(
                    scope, receive, send
                )
                return
        await (self.cache or self._app)(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._started is None:
            log.error(_NOT_STARTED)
            await PlainTextResponse(f"{_NOT_STARTED}\n", 500)(scope, receive, send)
            return
        await self._started(scope, receive, send)

    def _starlette(self) -> Starlette:
        options = self.options
        app = self._server.streamable_http_app(
            streamable_http_path=options.path,
            json_response=not options.asks,
            max_request_body_size=options.max_body_bytes,
            max_sessions=options.max_sessions,
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),  # see _answer
            auth=_auth_settings(options, self._url),
            token_verifier=Verifier(options.access) if options.access else None,
            custom_starlette_routes=self._routes(),
        )
        wrap_session_manager(self._server, partial(SessionShares, most=options.max_sessions))
        app.add_middleware(GZipMiddleware, minimum_size=COMPRESS_FROM)
        return app

    def _routes(self) -> list[Route]:
        routes = [Route("/healthz", self._health), Route("/readyz", self._ready)]
        if self.options.metrics:
            routes.append(Route("/metrics", self._measured))
        if self._page is not None:
            guard = Guard(self._page)
            routes += [Route(path, guard) for path in self._page.paths]
        return routes

    async def _health(self, request: Request) -> Response:  # noqa: ARG002 - the shape of a Starlette endpoint
        return PlainTextResponse("ok\n")

    async def _ready(self, request: Request) -> Response:  # noqa: ARG002
        if self._draining:
            return PlainTextResponse("draining\n", status_code=503)
        return PlainTextResponse("ready\n")

    async def _measured(self, request: Request) -> Response:  # noqa: ARG002
        return Response(self._metrics.page(), media_type=Metrics.content_type)


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket; raises an ``UpstreamError`` with a hint. Port 0 chooses a free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With an explicit protocol asyncio disables Nagle's algorithm, which would cost 40 ms a request.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise UpstreamError(
            "address-unavailable",
            f"cannot listen on {host}:{port}: {error.strerror or error}",
            "choose another port, or stop the program that uses this one",
        ) from error
    return listener


def url_of(listener: socket.socket) -> str:
    """The URL of the protocol's endpoint on this socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{MCP_PATH}"


class HttpServer:
    """A web application on a listening socket, with limits for its connections (``http_protocol.py``)."""

    def __init__(self, app: WebApp, listener: socket.socket) -> None:
        self.app = app
        self.url = url_of(listener)
        self._listener = listener
        app.bind(self.url, str(listener.getsockname()[0]))

    def config(self) -> uvicorn.Config:
        """The web server's settings, and the application."""
        options = self.app.options
        connections = Connections(
            options.max_connections, max_body_bytes=options.max_body_bytes, limits=options.limits
        )
        protocol: Any = partial(BoundedProtocol, connections)
        if self.app.cache is not None and not access_log.isEnabledFor(logging.INFO):
            # With an access log every request goes through the application.
            protocol = partial(CachedProtocol, options.path, self.app.cache, connections)
        return uvicorn.Config(
            self.app,
            http=protocol,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # a client could claim any address
            ws="none",
            limit_concurrency=options.max_connections,
            timeout_graceful_shutdown=options.drain_seconds,
        )

    async def run(self, signals: StopSignals) -> None:
        """Serve until a stop signal; then finish the requests in progress, for a bounded time."""
        await StoppingServer(self.config(), signals, self.app.drain).serve([self._listener])


def _everything(headers: Headers) -> Callable[[Catalog], Catalog]:  # noqa: ARG001 - without tokens all callers are the same
    return lambda catalog: catalog


def _views(access: Access) -> Callable[[Headers], Callable[[Catalog], Catalog] | None]:
    """The views of the holders of static tokens."""
    policy = CallerViews(access.visible)

    def view_of(headers: Headers) -> Callable[[Catalog], Catalog] | None:
        subject = access.holder(headers)
        return None if subject is None else lambda catalog: policy.view(catalog, access.prefixes(subject))

    return view_of


class SessionShares:
    """Limits the open sessions of each caller in the handshake era. Wraps the SDK's session manager."""

    def __init__(self, app: ASGIApp, open_ids: Container[str], most: int) -> None:
        self._app = app
        self._open = open_ids
        self._most = most
        self._share = max(1, most // 4)
        self._opening: defaultdict[str, int] = defaultdict(int)
        self._opened: defaultdict[str, set[str]] = defaultdict(set)  # by caller; ended ones are removed later

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, unless it would open too many sessions."""
        if not _may_open_session(scope):
            await self._app(scope, receive, send)
            return
        caller = _caller(scope)
        if self._count(caller) >= self._share:
            await PlainTextResponse("Too many open sessions\n", 503)(scope, receive, send)
            return

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                opened = [value.decode() for name, value in message["headers"] if name.lower() == _SESSION_ID]
                self._opened[caller].update(opened)
            await send(message)

        self._opening[caller] += 1
        try:
            await self._app(scope, receive, watched)
        finally:
            self._opening[caller] -= 1
            if not self._opening[caller]:
                del self._opening[caller]

    def _count(self, caller: str) -> int:
        """How many sessions a caller has open or is opening."""
        crowd = [caller] if len(self._opened) <= self._most else list(self._opened)
        for one in crowd:
            self._opened[one] = {each for each in self._opened[one] if each in self._open}
            if not self._opened[one]:
                del self._opened[one]
        return len(self._opened.get(caller, ())) + self._opening.get(caller, 0)


def _may_open_session(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    version = headers.get(_VERSION)
    is_modern = version is not None and version.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS
    return scope["method"] == "POST" and _SESSION_ID not in headers and not is_modern


def _caller(scope: Scope) -> str:
    user = scope.get("user")
    if isinstance(user, AuthenticatedUser):
        return f"subject:{user.access_token.subject or user.access_token.client_id}"
    return network_of(scope.get("client"))


async def _logged(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Log one JSON line for the request, without headers and bodies, which may contain secrets."""
    begun, status, size = time.perf_counter(), 500, 0

    async def watched(message: Message) -> None:
        nonlocal status, size
        if message["type"] == "http.response.start":
            status = message["status"]
        elif message["type"] == "http.response.body":
            size += len(message.get("body", b""))
        await send(message)

    try:
        await app(scope, receive, watched)
    finally:
        access_log.info(json.dumps(_line(scope, status, size, time.perf_counter() - begun)))


def _line(scope: Scope, status: int, size: int, seconds: float) -> dict[str, Any]:
    headers = dict(scope["headers"])
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "client": (scope.get("client") or ["?"])[0],
        "http": scope["method"],
        "path": scope["path"][:200],
        "method": headers.get(b"mcp-method", b"").decode(errors="replace")[:100],
        "status": status,
        "bytes": size,
        "ms": round(seconds * 1000, 2),
    }


def _is_loopback(scope: Scope) -> bool:
    """Whether a request arrived at a loopback address of this machine."""
    server = scope.get("server")
    try:
        return bool(server) and ipaddress.ip_address(server[0]).is_loopback
    except ValueError:  # a Unix socket, or a test client
        return False


def _allowed_names(host: str, public_url: str | None) -> TransportSecurityMiddleware | None:
    """The check of a request's host and origin; see the module's docstring. ``None`` if all are allowed."""
    names = ["127.0.0.1", "localhost", "[::1]"]
    if host:
        names.append(f"[{host}]" if ":" in host else host)
    if public_url is not None:
        names.append(AnyHttpUrl(public_url).host or "")
    elif host in _ANY_ADDRESS:
        return None
    settings = TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[
            f"{scheme}://{name}{port}" for scheme in ("http", "https") for name in names for port in ("", ":*")
        ],
    )
    return TransportSecurityMiddleware(settings)


_LOOPBACK_NAMES = _allowed_names("", None)


def _auth_settings(options: HttpOptions, url: str | None) -> AuthSettings | None:
    """Settings of the SDK. It requires an issuer; for static tokens, which have none, nothing is published."""
    if options.access is None:
        return None
    jwt = options.access.jwt
    resource = options.public_url or url
    if jwt is not None and resource is None:
        raise FormatError(
            "public-url-missing",
            "web tokens need the URL of this server, which is unknown",
            'give it: asgi(…, public_url="https://example.com/mcp")',
        )
    return AuthSettings.model_validate(  # from text: an issuer is compared exactly, so it must not be normalised
        {
            "issuer_url": jwt.issuer if jwt else resource or "http://localhost",
            "resource_server_url": resource if jwt else None,
            "validate_token_resource": False if jwt else None,  # the verifier checks the audience
        }
    )
