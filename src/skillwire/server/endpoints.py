"""The endpoints of a server: which dialect answers on which endpoint, and how a request gets to its endpoint.

``skills/list`` has a different meaning in three dialects, and strict clients reject additional fields. So each
endpoint has one meaning. Over HTTP each of these dialects has its own path (``DialectPaths``). On other transports
the dialect is chosen when skills are attached.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast, get_args

from skillwire.errors import FormatError
from skillwire.server.activation import DEFAULT_SECONDS, MIN_KEY_BYTES
from skillwire.server.callers import current_request
from skillwire.server.notifications import check_subscriptions
from skillwire.wire.errors import rpc_errors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.context import CallNext, HandlerResult
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.server.dialect import Context, Dialect
    from skillwire.server.notifications import Notifier

Endpoint: TypeAlias = Literal["extension", "sep-2076", "native"]
ENDPOINTS: tuple[Endpoint, ...] = get_args(Endpoint)
Fallback: TypeAlias = Literal["auto", "always", "never"]
MCP_PATH = "/mcp"
_SCOPE_KEY = "skillwire.endpoint"
_SUBSCRIPTIONS = "resourceSubscriptions"


@dataclass(frozen=True, slots=True)
class Dialects:
    """Settings of the dialects. The defaults work with every client.

    ``default`` is the dialect of a connection without a path (stdio, memory). ``fallback`` selects the clients
    that see the plain tools and prompts: those that do not declare the extension, all, or none.

    The other settings are about the native endpoint. With ``keep_listed`` the items that skills bind stay in the
    lists, active or not (M5). ``activation_key`` signs the tokens with the active skills, which are valid for
    ``activation_seconds``. Replicas share the key. Without a key each process creates one.
    """

    default: Endpoint = "extension"
    fallback: Fallback = "auto"
    keep_listed: bool = False
    activation_key: bytes | None = field(default=None, repr=False)
    activation_seconds: int = DEFAULT_SECONDS

    def __post_init__(self) -> None:
        if self.default not in ENDPOINTS or self.fallback not in get_args(Fallback):
            raise FormatError(
                "dialect-unknown",
                f"the dialect {self.default!r:.40} with the fallback {self.fallback!r:.40} is unknown",
                f"choose from {', '.join(ENDPOINTS)}, and from {', '.join(get_args(Fallback))}",
            )
        if self.activation_seconds < 1:
            raise FormatError(
                "activation-time-invalid", "an activation must last at least one second", "give 1 or more"
            )
        key = cast("object", self.activation_key)  # a text would be accepted as a key too, but sign differently
        if key is not None and not (isinstance(key, bytes) and len(key) >= MIN_KEY_BYTES):
            raise FormatError(
                "activation-key-short",
                f"the activation key has fewer than {MIN_KEY_BYTES} bytes",
                "make one with: openssl rand -out activation.key 32",
                rule="M3",
            )


class Endpoints:
    """The middleware that gives each request to the dialect of its endpoint."""

    def __init__(self, dialects: Mapping[Endpoint, Dialect], notifier: Notifier, default: Endpoint) -> None:
        self._dialects = dialects
        self._notifier = notifier
        self._default = default

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Handle one message."""
        if ctx.request_id is None:
            return await call_next(ctx)
        current_request.set(ctx)  # each request has its own task
        scope: Mapping[str, Any] = getattr(ctx.request, "scope", None) or {}
        endpoint: Endpoint = scope.get(_SCOPE_KEY, self._default)
        dialect = self._dialects[endpoint]
        dialect.check(ctx)
        if ctx.method == "subscriptions/listen":
            ctx = await _allowed_subscriptions(ctx, call_next, dialect)
            call_next = partial(self._notifier.listen, call_next=call_next, prompts=dialect.has_prompts(ctx))
        handler = dialect.handlers.get(ctx.method)
        result = await (call_next(ctx) if handler is None else handler(ctx, call_next))
        if ctx.method == "initialize":
            self._notifier.add_session(ctx.session, endpoint, prompts=dialect.has_prompts(ctx))
        return result


async def _allowed_subscriptions(ctx: Context, call_next: CallNext, dialect: Dialect) -> Context:
    """A ``subscriptions/listen`` without the files that the caller may not subscribe to (M3).

    The response to it contains the remaining files. The bus of a server sends its events to every listener, so a
    caller must not subscribe to a file that it may not see.
    """
    params = dict(ctx.params or {})
    wanted: object = params.get("notifications")
    uris: object = cast("dict[str, Any]", wanted).get(_SUBSCRIPTIONS) if isinstance(wanted, dict) else None
    if not isinstance(uris, list):
        return ctx
    pages: dict[tuple[str, object], HandlerResult] = {}

    async def call_once(ctx: Context) -> HandlerResult:
        """``call_next``, but each page of a list is read once, however many URIs are compared with it."""
        key = (ctx.method, (ctx.params or {}).get("cursor"))
        if key not in pages:
            pages[key] = await call_next(ctx)
        return pages[key]

    uris = cast("list[object]", uris)
    with rpc_errors():
        check_subscriptions(len(uris))
        allowed = [  # what is not text stays: the SDK refuses such a request
            uri for uri in uris if not isinstance(uri, str) or await dialect.may_subscribe(ctx, call_once, uri)
        ]
    params["notifications"] = {**cast("dict[str, Any]", wanted), _SUBSCRIPTIONS: allowed}
    return replace(ctx, params=params)


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
                scope = {**scope, _SCOPE_KEY: endpoint}
            if endpoint not in (None, "extension"):
                path = scope["path"].removesuffix(inside) + self._path
                scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, send)
