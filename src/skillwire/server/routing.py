"""Which bindings answer a request: the ones of the endpoint it came in by.

``skills/list`` means something different in three dialects, and strict clients reject extra fields, so one
endpoint gives it one meaning. Over HTTP each such dialect has a path of its own (``DialectPaths``); elsewhere it
is chosen once, when skills are attached.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND

from skillwire.errors import FormatError, SkillwireError
from skillwire.server.binding import OWN
from skillwire.server.notifications import check_subscriptions
from skillwire.wire.errors import to_rpc_error
from skillwire.wire.extension import EXTENSION_ID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp.server.context import CallNext, HandlerResult
    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.server.binding import Binding, Context
    from skillwire.server.notifications import Notices

Endpoint: TypeAlias = Literal["extension", "sep-2076", "native"]
ENDPOINTS: tuple[Endpoint, ...] = ("extension", "sep-2076", "native")
_DECLARING = ("initialize", "server/discover")
_SCOPE_KEY = "skillwire.endpoint"
_SUBSCRIPTIONS = "resourceSubscriptions"
_SKILLS = ("skills/", "resources/directory/")  # methods with a meaning of their own on each endpoint


class Router:
    """The middleware. It keeps no state between requests."""

    def __init__(
        self, bindings: Mapping[Endpoint, Sequence[Binding]], notices: Notices, default: Endpoint
    ) -> None:
        self._bindings = bindings
        self._notices = notices
        self._default: Endpoint = default

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer, share or pass on one message."""
        if ctx.request_id is None:
            return await call_next(ctx)
        if ctx.method.startswith(OWN):
            raise _unknown(ctx.method)
        endpoint = endpoint_of(ctx, self._default)
        if ctx.method == "subscriptions/listen":
            ctx = await self._without_refused(ctx, call_next, self._bindings[endpoint])
        call = call_next if endpoint == "extension" else _without_extension(call_next)
        for binding in reversed(self._bindings[endpoint]):
            call = partial(binding, call_next=call)
        result = await call(ctx)
        if ctx.method == "initialize":
            self._notices.add_session(ctx.session, endpoint)
        return result

    async def _without_refused(self, ctx: Context, call_next: CallNext, bindings: Sequence[Binding]) -> Context:
        """A ``subscriptions/listen`` without the files that ``resources/subscribe`` would refuse (M3).

        The answer to it says what is listened to. A server's own bus tells every listener, so a caller that may
        not hear of a file must not listen to it.
        """
        params = dict(ctx.params or {})
        wanted: object = params.get("notifications")
        uris: object = cast("dict[str, Any]", wanted).get(_SUBSCRIPTIONS) if isinstance(wanted, dict) else None
        if not isinstance(uris, list):
            return ctx
        uris = cast("list[object]", uris)
        try:
            check_subscriptions(len(uris))
            call_next = _remembering(call_next)
            kept = [uri for uri in uris if await _may_subscribe(ctx, call_next, bindings, uri)]
        except SkillwireError as error:  # too many, or a bad activation token
            raise to_rpc_error(error) from error
        params["notifications"] = {**cast("dict[str, Any]", wanted), _SUBSCRIPTIONS: kept}
        return replace(ctx, params=params)


def _remembering(call_next: CallNext) -> CallNext:
    """What stands behind, asked for each page of a list once, however many URIs are looked for in it."""
    answers: dict[tuple[str, object], HandlerResult] = {}

    async def asked(ctx: Context) -> HandlerResult:
        key = (ctx.method, (ctx.params or {}).get("cursor"))
        if key not in answers:
            answers[key] = await call_next(ctx)
        return answers[key]

    return asked


async def _may_subscribe(ctx: Context, call_next: CallNext, bindings: Sequence[Binding], uri: object) -> bool:
    """The answer of the first binding that knows the URI."""
    for binding in bindings if isinstance(uri, str) else ():
        may = await binding.may_subscribe(ctx, call_next, cast("str", uri))
        if may is not None:
            return may
    return not isinstance(uri, str)  # the SDK refuses what is no text


def endpoint_of(ctx: Context, default: Endpoint) -> Endpoint:
    """The endpoint that a request came in by."""
    scope: Mapping[str, Any] = getattr(ctx.request, "scope", None) or {}
    return scope.get(_SCOPE_KEY, default)


class DialectPaths:
    """Around a web application with MCP at ``path``: ``path/sep-2076`` and ``path/native`` beside it."""

    def __init__(self, app: ASGIApp, path: str = "/mcp") -> None:
        if not path.startswith("/") or path.endswith("/"):
            raise FormatError("path-invalid", f"{path!r:.80} is not where an endpoint is", "write it as /mcp")
        self._app = app
        self._path = path
        self._endpoints: dict[str, Endpoint] = {
            f"{path}/{name}": name for name in ENDPOINTS if name != "extension"
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to ``path``, with a note of where it came in."""
        if scope["type"] == "http":
            endpoint = self._endpoints.get(scope["path"].rstrip("/"))
            if endpoint is None:
                scope = {**scope, _SCOPE_KEY: "extension"} if scope["path"].rstrip("/") == self._path else scope
            else:
                scope = {**scope, "path": self._path, "raw_path": self._path.encode(), _SCOPE_KEY: endpoint}
        await self._app(scope, receive, send)


def _without_extension(call_next: CallNext) -> CallNext:
    """What stands behind, without the extension's methods: there they mean something else."""

    async def passed(ctx: Context) -> HandlerResult:
        if ctx.method.startswith(_SKILLS):
            raise _unknown(ctx.method)
        result = await call_next(ctx)
        return _undeclared(cast("dict[str, Any]", result)) if ctx.method in _DECLARING else result

    return passed


def _undeclared(result: dict[str, Any]) -> dict[str, Any]:
    """What a server says of itself, without the extension."""
    capabilities: dict[str, Any] = result.get("capabilities") or {}
    declared: dict[str, Any] = capabilities.get("extensions") or {}
    others = {key: value for key, value in declared.items() if key != EXTENSION_ID}
    rest = {key: value for key, value in capabilities.items() if key != "extensions"}
    return {**result, "capabilities": {**rest, "extensions": others} if others else rest}


def _unknown(method: str) -> MCPError:
    return MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=method)
