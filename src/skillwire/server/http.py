"""Streamable HTTP for operators: health and readiness, metrics, access logs, limits, compression, drain.

The SDK implements the protocol; this module adds the rest of a web server. The SDK limits the size of bodies, and
``http_protocol.py`` everything else that a client can take. One caller, by its subject or by its address, has at
most a quarter of the sessions of the handshake era (Z6). A server on a loopback address, or with a public URL,
accepts only requests with its own host names (DNS rebinding). A server on ``0.0.0.0`` does not know its names.
"""

from __future__ import annotations

import json
import logging
import socket
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import AnyHttpUrl
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from skillwire.errors import UpstreamError
from skillwire.limits import DEFAULT_LIMITS, MIB, Limits
from skillwire.server.access import Access, Verifier
from skillwire.server.callers import CallerViews
from skillwire.server.endpoints import DialectPaths
from skillwire.server.http_protocol import BoundedProtocol, CachedProtocol, Connections, network_of
from skillwire.server.metrics import Metrics
from skillwire.server.page import Guard
from skillwire.server.response_cache import COMPRESS_FROM, DEFAULT_BYTES, ResponseCache
from skillwire.server.sdk_compat import wrap_session_manager
from skillwire.server.signals import StoppingServer

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from mcp.server.lowlevel import Server
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillwire.catalog.contract import Catalog
    from skillwire.server.page import MountedPage
    from skillwire.server.response_cache import Headers
    from skillwire.server.signals import StopSignals

MCP_PATH = "/mcp"
_SESSION_ID, _VERSION = b"mcp-session-id", b"mcp-protocol-version"
_ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to

access_log = logging.getLogger("skillwire.access")


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Settings of an operator."""

    access: Access | None = None
    public_url: str | None = None  # the URL that clients use; OAuth metadata contains it
    max_body_bytes: int = MIB
    max_connections: int = 1024
    max_sessions: int = 4096  # of the handshake era
    drain_seconds: int = 5
    asks: bool = False  # whether the server sends requests to clients of the handshake era: needs event streams
    replay_bytes: int = DEFAULT_BYTES  # memory of the response cache; 0 for no cache
    limits: Limits = DEFAULT_LIMITS


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
    """One server on one listening socket."""

    def __init__(
        self,
        server: Server[Any],
        listener: socket.socket,
        options: HttpOptions | None = None,
        *,
        catalog: Callable[[], Catalog] | None = None,
        page: MountedPage | None = None,
    ) -> None:
        """``catalog`` is everything that ``server`` serves. Without it responses are not cached.

        ``page`` is a web page for people beside the protocol.
        """
        self._server = server
        self._page = page
        self._catalog = catalog
        self._listener = listener
        self._options = options or HttpOptions()
        self._metrics = Metrics()
        self._draining = False
        server.middleware.insert(0, self._metrics)
        self.url = url_of(listener)
        self._host = str(listener.getsockname()[0])

    def app(self) -> ASGIApp:
        """The whole web application."""
        app = self._starlette()
        app.add_middleware(GZipMiddleware, minimum_size=COMPRESS_FROM)
        inner = _trimmed(DialectPaths(app, MCP_PATH))
        self._cache = self._response_cache(inner)
        return _AccessLog(self._cache or inner)

    def _response_cache(self, app: ASGIApp) -> ResponseCache | None:
        """The response cache, unless callers use JSON web tokens: they expire."""
        access, room = self._options.access, self._options.replay_bytes
        if self._catalog is None or not room or (access is not None and access.jwt is not None):
            return None
        view_of = _everything if access is None else _views(access)
        return ResponseCache(app, MCP_PATH, self._catalog, self._metrics, room, view_of)

    def config(self) -> uvicorn.Config:
        """The web server's settings, and the application."""
        app = self.app()
        return uvicorn.Config(
            app,
            http=self._protocol(),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # a client could claim any address
            ws="none",
            limit_concurrency=self._options.max_connections,
            timeout_graceful_shutdown=self._options.drain_seconds,
        )

    async def run(self, signals: StopSignals) -> None:
        """Serve until a stop signal; then finish the requests in progress, for a bounded time."""
        await StoppingServer(self.config(), signals, self.drain).serve([self._listener])

    def _protocol(self) -> Any:
        """The class for connections. With an access log every request goes through the application."""
        options = self._options
        connections = Connections(
            options.max_connections, max_body_bytes=options.max_body_bytes, limits=options.limits
        )
        if self._cache is None or access_log.isEnabledFor(logging.INFO):
            return partial(BoundedProtocol, connections)
        return partial(CachedProtocol, MCP_PATH, self._cache, connections)

    def drain(self) -> None:
        """Report "not ready", and close the event streams, which would stay open forever."""
        self._draining = True
        listening = self._server.get_request_handler("subscriptions/listen")
        close = getattr(listening.handler, "close", None) if listening else None
        if close is not None:
            close()

    def _starlette(self) -> Starlette:
        options = self._options
        security = _security(self._host, options.public_url)
        auth = _auth_settings(options, self.url) if options.access else None
        app = self._server.streamable_http_app(
            streamable_http_path=MCP_PATH,
            json_response=not options.asks,
            host=self._host,
            max_request_body_size=options.max_body_bytes,
            max_sessions=options.max_sessions,
            transport_security=security,
            auth=auth,
            token_verifier=Verifier(options.access) if options.access else None,
            custom_starlette_routes=self._routes(security),
        )
        wrap_session_manager(self._server, partial(SessionShares, most=options.max_sessions))
        return app

    def _routes(self, security: TransportSecuritySettings) -> list[Route]:
        routes = [
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/metrics", partial(self._measured, TransportSecurityMiddleware(security))),
        ]
        if self._page is not None:
            guard = Guard(self._page, security)
            routes += [Route(path, guard) for path in self._page.paths]
        return routes

    async def _health(self, request: Request) -> Response:  # noqa: ARG002 - the shape of a Starlette endpoint
        return PlainTextResponse("ok\n")

    async def _ready(self, request: Request) -> Response:  # noqa: ARG002
        if self._draining:
            return PlainTextResponse("draining\n", status_code=503)
        return PlainTextResponse("ready\n")

    async def _measured(self, security: TransportSecurityMiddleware, request: Request) -> Response:
        refusal = await security.validate_request(request)
        return refusal or Response(self._metrics.page(), media_type=Metrics.content_type)


def _trimmed(app: ASGIApp) -> ASGIApp:
    """Strip spaces around header values (RFC 9110, 5.5): the fast parser keeps those at the end."""

    async def trim(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        await app(scope, receive, send)

    return trim


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


class _AccessLog:
    """Logs one JSON line for each request, without headers and bodies, which may contain secrets."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not access_log.isEnabledFor(logging.INFO):
            await self._app(scope, receive, send)
            return
        begun, status, size = time.perf_counter(), 500, 0

        async def watched(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            elif message["type"] == "http.response.body":
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, watched)
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


def _security(host: str, public_url: str | None) -> TransportSecuritySettings:
    """The hosts and origins that a request may have; see the module's docstring."""
    names = [f"[{host}]" if ":" in host else host, "127.0.0.1", "localhost", "[::1]"]
    if public_url is not None:
        names.append(AnyHttpUrl(public_url).host or "")
    elif host in _ANY_ADDRESS:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[
            f"{scheme}://{name}{port}" for scheme in ("http", "https") for name in names for port in ("", ":*")
        ],
    )


def _auth_settings(options: HttpOptions, url: str) -> AuthSettings:
    """Settings of the SDK. It requires an issuer; for static tokens, which have none, nothing is published."""
    jwt = options.access.jwt if options.access else None
    resource = options.public_url or url
    return AuthSettings.model_validate(  # from text: an issuer is compared exactly, so it must not be normalised
        {
            "issuer_url": jwt.issuer if jwt else resource,
            "resource_server_url": resource if jwt else None,
            "validate_token_resource": False if jwt else None,  # the verifier checks the audience
        }
    )
