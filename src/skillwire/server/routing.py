"""Skills beside whatever else a server has: one middleware decides who answers.

Requests that only skills know (``skills/*``, directory reads) have handlers of their own. For those that a server
may answer too, this middleware looks first: a ``resources/read`` of a skill's file, a completion of the skills'
template, and a subscription to a skill's file are ours; listings are the server's own, followed by ours. It
passes our share on under another method name instead of answering, so that the SDK's own checks, result
envelope and telemetry apply to it like to everything else.

It also completes what a server declares: the extension (which the SDK drops in the handshake era), resources
with subscriptions, completions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from skillwire.catalog.snapshot import no_file
from skillwire.errors import SkillwireError
from skillwire.server import answers
from skillwire.wire import extension
from skillwire.wire.errors import to_rpc_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.lowlevel import Server

    from skillwire.server.answers import Answers
    from skillwire.server.notices import Notices

    Context = ServerRequestContext[Any, Any]
    Route = Callable[[Context, CallNext], Awaitable[HandlerResult]]

_OWN_CURSOR = "skillwire."


class Router:
    """The middleware. It keeps no state between requests."""

    def __init__(self, server: Server[Any], own: Answers, notices: Notices) -> None:
        self._server = server
        self._own = own
        self._notices = notices
        self._routes: dict[str, Route] = {
            "initialize": self._initialize,
            "server/discover": self._declare,
            "resources/list": self._list("resources", answers.OWN_RESOURCES_LIST),
            "resources/templates/list": self._list("resourceTemplates", answers.OWN_TEMPLATES_LIST),
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._subscribe,
            "completion/complete": self._complete,
        }

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer, share or pass on one message."""
        if ctx.request_id is None:
            return await call_next(ctx)
        if ctx.method.startswith("skillwire/"):  # our names for what is routed here; nobody's to call
            raise MCPError(code=METHOD_NOT_FOUND, message="Method not found", data=ctx.method)
        route = self._routes.get(ctx.method)
        return await (call_next(ctx) if route is None else route(ctx, call_next))

    async def _initialize(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await self._declare(ctx, call_next)
        self._notices.add_session(ctx.session)
        return result

    async def _declare(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """K1: in both eras."""
        result = cast("dict[str, Any]", await call_next(ctx))
        capabilities = dict(result.get("capabilities") or {})
        capabilities["extensions"] = {**(capabilities.get("extensions") or {}), **self._server.extensions}
        capabilities["resources"] = {
            **(capabilities.get("resources") or {}),
            "subscribe": True,
            "listChanged": True,
        }
        capabilities.setdefault("completions", {})
        return {**result, "capabilities": capabilities}

    def _list(self, field: str, own_method: str) -> Route:
        async def listed(ctx: Context, call_next: CallNext) -> HandlerResult:
            """The server's own pages first, ours after them; a cursor says whose it is."""
            cursor = (ctx.params or {}).get("cursor")
            if isinstance(cursor, str) and cursor.startswith(_OWN_CURSOR):
                inner = cursor.removeprefix(_OWN_CURSOR)
                return _marked(await self._ask(ctx, call_next, own_method, cursor=inner))
            if self._server.get_request_handler(ctx.method) is None:
                params = {} if cursor is None else {"cursor": cursor}  # nobody's cursor: ours to refuse
                return _marked(await self._ask(ctx, call_next, own_method, **params))
            theirs = cast("dict[str, Any]", await call_next(ctx))
            if theirs.get("nextCursor"):
                return theirs
            ours = _marked(await self._ask(ctx, call_next, own_method))
            return {**_strictest(theirs, ours), field: [*theirs.get(field, ()), *ours[field]]}

        return listed

    async def _read(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        uri = (ctx.params or {}).get("uri")
        if not isinstance(uri, str):
            return await call_next(ctx)
        ours = uri.lower().startswith(f"{self._own.scheme}:")
        if ours and await self._own.has_file(ctx, uri):
            return await self._ask(ctx, call_next, answers.OWN_RESOURCES_READ)
        theirs = (
            None
            if self._server.get_request_handler(ctx.method) is None
            else await self._or_none(ctx, call_next, ours=ours)
        )
        return theirs or await self._ask(ctx, call_next, answers.OWN_RESOURCES_READ)

    async def _or_none(self, ctx: Context, call_next: CallNext, *, ours: bool) -> HandlerResult:
        """The server's own answer; if it has none for a URI of our scheme, our refusal says more."""
        try:
            return await call_next(ctx)
        except MCPError:
            if ours:
                return None
            raise

    async def _subscribe(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """The handshake era's subscriptions; the stateless era has ``subscriptions/listen``."""
        uri = (ctx.params or {}).get("uri")
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        if modern or not isinstance(uri, str):
            return await call_next(ctx)
        if not await self._own.has_file(ctx, uri):
            if self._server.get_request_handler(ctx.method) is None:
                raise to_rpc_error(no_file(uri))
            return await call_next(ctx)
        try:
            if ctx.method == "resources/subscribe":
                self._notices.subscribe(ctx.session, uri)
            else:
                self._notices.unsubscribe(ctx.session, uri)
        except SkillwireError as error:
            raise to_rpc_error(error) from error
        return {}

    async def _complete(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        reference = (ctx.params or {}).get("ref")
        template = extension.SKILL_TEMPLATE.format(scheme=self._own.scheme)
        if isinstance(reference, dict) and cast("dict[str, Any]", reference).get("uri") == template:
            return await self._ask(ctx, call_next, answers.OWN_COMPLETE)
        return await call_next(ctx)

    async def _ask(self, ctx: Context, call_next: CallNext, method: str, **params: Any) -> dict[str, Any]:
        inner = {key: value for key, value in (ctx.params or {}).items() if key != "cursor"} | params
        return cast("dict[str, Any]", await call_next(replace(ctx, method=method, params=inner)))


def _strictest(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """Our result, kept no longer and shared no wider than either side allows."""
    if "ttlMs" not in ours:
        return ours
    private = "private" in (theirs.get("cacheScope"), ours["cacheScope"])
    ttl = min(int(theirs.get("ttlMs", 0)), int(ours["ttlMs"]))
    return {**ours, "ttlMs": ttl, "cacheScope": "private" if private else "public"}


def _marked(result: dict[str, Any]) -> dict[str, Any]:
    cursor = result.get("nextCursor")
    return {**result, "nextCursor": _OWN_CURSOR + cursor} if cursor else result
