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
import re
import socket
import time
from bisect import bisect_left
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import uvicorn
from mcp.server.auth.routes import create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from pydantic import AnyHttpUrl
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router

from skillwire.errors import FormatError, UpstreamError
from skillwire.limits import DEFAULT_LIMITS, MIB, Limits
from skillwire.server.access import Access, Verifier, read_access
from skillwire.server.dialect import ENDPOINT_KEY, ENDPOINTS, MCP_PATH
from skillwire.server.http_protocol import BoundedProtocol, Connections, SessionShares
from skillwire.server.page import Guard
from skillwire.server.response_cache import COMPRESS_FROM, DEFAULT_BYTES, ResponseCache
from skillwire.server.sdk_compat import wrap_session_manager
from skillwire.server.signals import StoppingServer

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.lowlevel import Server
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from skillwire.server.dialect import Endpoint
    from skillwire.server.page import MountedPage
    from skillwire.server.response_cache import HasCatalog
    from skillwire.server.signals import StopSignals

_HEALTH = ("/healthz", "/readyz")  # orchestrators send any host name
_OPERATED = (*_HEALTH, "/metrics")
_ANY_ADDRESS = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
# Methods are a label. Unknown ones are counted together, because a caller could invent any number of labels.
_KNOWN_METHODS = frozenset(
    {
        "initialize", "server/discover", "ping", "skills/list", "skills/get", "resources/directory/read",
        "resources/list", "resources/read", "resources/templates/list", "resources/subscribe",
        "resources/unsubscribe", "completion/complete", "subscriptions/listen", "tools/list", "tools/call",
        "prompts/list", "prompts/get",
    }
)  # fmt: skip
_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
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


async def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """Settings of an operator."""

    access: Access | None = None
    public_url: str | None = None  # the URL that clients use; OAuth metadata contains it
    path: str = MCP_PATH
    metrics: bool = True
    max_body_bytes: int = MIB
    max_upload_bytes: int = 0  # of a body for another route than the protocol's, if that is more
    max_connections: int = 1024
    max_sessions: int = 4096  # of the handshake era
    drain_seconds: int = 5
    asks: bool = False  # whether the server sends requests to clients of the handshake era: needs event streams
    replay_bytes: int = DEFAULT_BYTES  # memory of the response cache; 0 for no cache
    limits: Limits = DEFAULT_LIMITS

    def __post_init__(self) -> None:
        url = self.public_url
        if url is not None and not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+(/\S*)?", url):
            raise FormatError("url-invalid", f"{url!r:.200} is not a URL", "write it as https://example.com/mcp")


def embedding_options(
    path: str, access: Access | str | os.PathLike[str] | None, public_url: str | None, *, metrics: bool
) -> HttpOptions:
    """Settings of an application whose address is unknown. ``access`` may be the path of an access file."""
    opened = access if access is None or isinstance(access, Access) else read_access(Path(access))
    options = HttpOptions(opened, public_url, path, metrics)
    _auth_settings(options, None)  # raises an error if the address is needed
    return options


@dataclass(frozen=True, slots=True)
class Door:
    """What an application adds around the protocol: who calls, other routes, and whether it is ready.

    ``identify`` wraps everything except health and metrics. It sets the user of a request, as the SDK's own
    authentication does, so that the protocol, pages and routes see the same caller.
    """

    identify: Callable[[ASGIApp], ASGIApp] = lambda app: app
    routes: Sequence[Route] = ()
    is_ready: Callable[[], Awaitable[bool]] = _always


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
        skills: HasCatalog | None = None,
        page: MountedPage | None = None,
        door: Door | None = None,
    ) -> None:
        """``skills`` has everything that ``server`` serves. Without it responses are not cached."""
        self._door = door or Door()
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
        self._app: ASGIApp = self._door.identify(DialectPaths(self._pass_on, self.options.path))
        access, room = self.options.access, self.options.replay_bytes
        if skills is not None and room and (access is None or access.jwt is None):  # web tokens expire
            self.cache = ResponseCache(self._app, skills, self._metrics.counter, room, access)

    def bind(self, url: str, host: str) -> None:
        """Serve at a known address. Only requests with its host names are accepted."""
        self._url = url
        self._names = _allowed_names(host, self.options.public_url)

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:  # noqa: ARG002 - given by Starlette
        """Run the server. Use it as the lifespan of the application around this one, or inside that lifespan."""
        self._started, self._draining = self._starlette(), False  # new each time: the SDK runs a manager once
        try:
            async with self._server.session_manager.run(), anyio.create_task_group() as group:
                if self._page is not None:
                    group.start_soon(self._page.run)
                yield
                group.cancel_scope.cancel()
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
        # RFC 9110, 5.5: spaces around a value do not belong to it. httptools keeps those at the end.
        scope = {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}
        answer = partial(_logged, self._answer) if access_log.isEnabledFor(logging.INFO) else self._answer
        with suppress(ClientDisconnect):  # it left before its body was complete, so no response can reach it
            await answer(scope, receive, send)

    def drain(self) -> None:
        """Report "not ready", and close the event streams, which would stay open forever."""
        self._draining = True
        if self._page is not None:
            self._page.drain()
        listening = self._server.get_request_handler("subscriptions/listen")
        close = getattr(listening.handler, "close", None) if listening else None
        if close is not None:
            close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        names, inside = self._names, route_path(scope)
        if names is None and _is_loopback(scope):
            names = _LOOPBACK_NAMES
        if names is not None and inside not in _HEALTH:
            refusal = await names.validate_request(Request(scope))
            if refusal is not None:
                await PlainTextResponse(_WRONG_HOST, refusal.status_code, headers=_NO_CONTENT)(
                    scope, receive, send
                )
                return
        if inside in _OPERATED:  # without a caller
            await self._pass_on(scope, receive, send)
            return
        is_cacheable = inside == self.options.path and scope["method"] == "POST"
        await (self.cache or self._app if is_cacheable else self._app)(scope, receive, send)

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
        app.add_middleware(_Compression, minimum_size=COMPRESS_FROM)
        return app

    def _routes(self) -> list[Route]:
        routes = [Route("/healthz", self._health), Route("/readyz", self._ready)]
        if self.options.metrics:
            routes.append(Route("/metrics", self._measured))
        if self._page is not None:
            guard = Guard(self._page)
            routes += [Route(path, guard) for path in self._page.paths]
        return [*routes, *self._door.routes]

    async def _health(self, request: Request) -> Response:  # noqa: ARG002 - the shape of a Starlette endpoint
        return PlainTextResponse("ok\n")

    async def _ready(self, request: Request) -> Response:  # noqa: ARG002
        if self._draining:
            return PlainTextResponse("draining\n", status_code=503)
        if not await self._door.is_ready():
            return PlainTextResponse("not ready\n", status_code=503)
        return PlainTextResponse("ready\n")

    async def _measured(self, request: Request) -> Response:  # noqa: ARG002
        return Response(self._metrics.page(), media_type=Metrics.content_type)


class _Compression(GZipMiddleware):
    """Compresses responses for clients that accept gzip. Starlette's own one also delays those of the others."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_plain = scope["type"] == "http" and not any(
            name == b"accept-encoding" and b"gzip" in value for name, value in scope["headers"]
        )
        await (self.app if is_plain else super().__call__)(scope, receive, send)


def route_path(scope: Scope) -> str:
    """The path of a request inside the application, without the prefix that the application is mounted at."""
    path, root = str(scope["path"]), str(scope.get("root_path", "")).rstrip("/")
    return path[len(root) :] if path.startswith(f"{root}/") else path


class DialectPaths:
    """A web application with MCP at ``path``, and with ``path/sep-2076`` and ``path/native`` beside it."""

    def __init__(self, app: ASGIApp, path: str = MCP_PATH) -> None:
        if not path.startswith("/") or path.endswith("/"):
            raise FormatError("path-invalid", f"{path!r:.80} is not the path of an endpoint", "write it as /mcp")
        self._app = app
        self._path = path
        self._endpoints: dict[str, Endpoint] = {path: "extension"}
        self._endpoints |= {f"{path}/{name}": name for name in ENDPOINTS if name != "extension"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request to the application at ``path``, with its endpoint in the scope."""
        if scope["type"] == "http":
            inside = route_path(scope)
            endpoint = self._endpoints.get(inside.rstrip("/"))
            if endpoint is not None:
                scope = {**scope, ENDPOINT_KEY: endpoint}
            if endpoint not in (None, "extension"):
                path = scope["path"].removesuffix(inside) + self._path
                scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, send)


class _Tally:
    """Requests of one method with one outcome.

    Plain numbers: the counters of prometheus_client add several microseconds to each cached response.
    """

    def __init__(self) -> None:
        self.buckets = [0] * (len(_BUCKETS) + 1)
        self.seconds = 0.0

    def count(self, seconds: float) -> None:
        self.buckets[bisect_left(_BUCKETS, seconds)] += 1
        self.seconds += seconds


class Metrics(Collector):
    """A middleware that counts requests, and the page with the metrics."""

    content_type = "text/plain; version=0.0.4; charset=utf-8"

    def __init__(self) -> None:
        self._tallies: dict[tuple[str, str], _Tally] = {}
        self._running = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Count one request."""
        if ctx.request_id is None:
            return await call_next(ctx)
        outcome, begun = "error", time.perf_counter()
        self._running += 1
        try:
            result = await call_next(ctx)
            outcome = "ok"
            return result
        except MCPError as error:
            outcome = str(error.error.code)
            raise
        finally:
            self._running -= 1
            self.counter(ctx.method, outcome)(time.perf_counter() - begun)

    def counter(self, method: str, outcome: str) -> Callable[[float], None]:
        """A function that counts one request with this outcome, given its duration."""
        known = method if method in _KNOWN_METHODS else "other"
        return self._tallies.setdefault((known, outcome), _Tally()).count

    def collect(self) -> Iterator[Metric]:
        """The metrics for the registry."""
        requests = CounterMetricFamily("skillwire_requests", "Finished requests", labels=["method", "outcome"])
        durations = HistogramMetricFamily("skillwire_request_seconds", "Duration of requests", labels=["method"])
        together: dict[str, list[_Tally]] = {}
        for (method, outcome), tally in self._tallies.items():
            requests.add_metric([method, outcome], sum(tally.buckets))
            together.setdefault(method, []).append(tally)
        for method, tallies in together.items():
            columns = zip(*(tally.buckets for tally in tallies), strict=True)
            counts = accumulate(sum(column) for column in columns)
            bounds = [*(str(float(bound)) for bound in _BUCKETS), "+Inf"]
            durations.add_metric(
                [method], list(zip(bounds, counts, strict=True)), sum(tally.seconds for tally in tallies)
            )
        yield requests
        yield durations
        yield GaugeMetricFamily("skillwire_requests_running", "Requests in progress", self._running)

    def page(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


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
            "choose another port, or 0 for any free one",
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
            options.max_connections,
            max_body_bytes=max(options.max_body_bytes, options.max_upload_bytes),
            limits=options.limits,
        )
        # With an access log every request goes through the application.
        cache = None if access_log.isEnabledFor(logging.INFO) else self.app.cache
        protocol: Any = partial(BoundedProtocol, connections, cache, options.path)
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
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "client": (scope.get("client") or ["?"])[0],
            "http": scope["method"],
            "path": scope["path"][:200],
            "method": dict(scope["headers"]).get(b"mcp-method", b"").decode(errors="replace")[:100],
            "status": status,
            "bytes": size,
            "ms": round((time.perf_counter() - begun) * 1000, 2),
        }
        access_log.info(json.dumps(line))


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
            "JSON web tokens need the URL of this server, which is unknown",
            'give it: asgi(…, public_url="https://example.com/mcp")',
        )
    return AuthSettings.model_validate(  # from text: an issuer is compared exactly, so it must not be normalised
        {
            "issuer_url": jwt.issuer if jwt else resource or "http://localhost",
            "resource_server_url": resource if jwt else None,
            "validate_token_resource": False if jwt else None,  # the verifier checks the audience
        }
    )
