"""The base of all dialects: the skills that are served, and a table of handlers by method.

A ``DialectHandlers`` handles the requests of one dialect. It stands in front of the server's own handlers, as a
middleware. A handler gets the request and ``call_next``, which passes a request on to the next dialect and finally
to the server. It answers by itself, adds to the server's response, or passes the request on. Several dialects in a
row make one endpoint (``endpoints.py``); they do not know each other.

The SDK checks requests and completes responses only for handlers that are registered on the server. For ours
``Served`` does the same: it refuses requests before the handshake, validates the parameters, turns our errors into
JSON-RPC errors, and adds the fields that every result of the stateless era has.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, SERVER_INFO_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog
from skillwire.catalog.names import SkillNames
from skillwire.errors import SkillwireError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.scopes import Scopes
from skillwire.server.sdk_compat import connection_of
from skillwire.skill.uri import DEFAULT_SCHEME
from skillwire.wire.errors import to_rpc_error
from skillwire.wire.extension import Freshness

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.lowlevel import Server

    from skillwire.server.skill_tools import SkillSearch
    from skillwire.skill import SkillEntry

    Context: TypeAlias = ServerRequestContext[Any, Any]
    Handler: TypeAlias = Callable[[Context, CallNext], Awaitable[HandlerResult]]

Answer: TypeAlias = dict[str, Any]
P = TypeVar("P", bound=BaseModel)
_OWN_CURSOR = "skillwire."

log = logging.getLogger("skillwire.server")


def is_modern(ctx: Context) -> bool:
    """Whether the request is of the stateless era."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def check_initialized(ctx: Context) -> None:
    """Refuse a request before the handshake, exactly as the SDK does."""
    if not connection_of(ctx.session).initialize_accepted:
        raise MCPError(code=INVALID_PARAMS, message="Invalid request parameters", data="")


def validated(ctx: Context, params_type: type[P]) -> P:
    """The parameters of a request that this server answers itself."""
    check_initialized(ctx)
    return params_type.model_validate(ctx.params or {}, by_name=False)


def meta_only(ctx: Context) -> dict[str, Any]:
    """The parameters for a further request to the server on behalf of this one: its ``_meta``."""
    meta = (ctx.params or {}).get("_meta")
    return {} if meta is None else {"_meta": meta}


@dataclass(frozen=True, slots=True)
class Served:
    """The skills that the dialects serve on a server. The catalog may differ from caller to caller."""

    server: Server[Any]
    whole: Callable[[], Catalog]  # everything, for all callers
    visible: Callable[[], Catalog]  # the part that the caller of the current request may see
    sees: Callable[[], Callable[[str], bool]]  # whether the caller of the current request may see a URI
    search: SkillSearch
    scheme: str = DEFAULT_SCHEME
    page_size: int = DEFAULT_PAGE_SIZE
    freshness: Freshness = field(default_factory=Freshness)
    scopes: Scopes = field(default_factory=Scopes)  # what skills bind in code
    _names: WeakKeyDictionary[Catalog, SkillNames] = field(
        default_factory=WeakKeyDictionary["Catalog", "SkillNames"]
    )
    _warned: set[str] = field(default_factory=set[str])

    def has(self, method: str) -> bool:
        """Whether the server has a handler for ``method``."""
        return self.server.get_request_handler(method) is not None

    def warn(self, message: str) -> None:
        """Log a warning about the skills. Each message is logged once."""
        if message not in self._warned and len(self._warned) < DEFAULT_LIMITS.max_page_size:
            self._warned.add(message)
            log.warning("%s", message)

    def names(self) -> SkillNames:
        """The skills by name, as far as the caller may see them."""
        catalog = self.visible()
        names = self._names.get(catalog)
        if names is None:
            names = self._names[catalog] = SkillNames(catalog, self.scheme)
        return names

    async def label(self, entry: SkillEntry) -> str:
        """The name of a skill for the caller."""
        return await self.names().label(entry)

    def answering(
        self,
        params_type: type[P],
        answer: Callable[[P], Awaitable[Answer]],
        *,
        freshness: Freshness | None = None,
        cacheable: bool = True,
    ) -> Handler:
        """A handler that validates the parameters and returns the completed result of ``answer``."""
        kept = (freshness or self.freshness) if cacheable else None

        async def handle(ctx: Context, call_next: CallNext) -> Answer:  # noqa: ARG001 - the shape of a handler
            params = validated(ctx, params_type)
            try:  # not ``rpc_errors``: this is on the path of every request
                result = await answer(params)
            except SkillwireError as error:
                raise to_rpc_error(error) from error
            return self.complete(ctx, result, kept)

        return handle

    def complete(self, ctx: Context, result: Answer, freshness: Freshness | None = None) -> Answer:
        """``result`` with the fields of the era, and with ``freshness`` if it is cacheable."""
        if not is_modern(ctx):
            return result
        completed = result if freshness is None else {**result, **freshness.fields(ctx.protocol_version)}
        meta: Answer = {**(result.get("_meta") or {})}
        meta.setdefault(SERVER_INFO_META_KEY, self.server.server_info_stamp)
        return {**completed, "resultType": "complete", "_meta": meta}

    def appended(self, field: str, ours: Handler) -> Handler:
        """A handler for a listing: the server's pages, then ours. Our cursors have a prefix."""

        async def handle(ctx: Context, call_next: CallNext) -> HandlerResult:
            cursor = (ctx.params or {}).get("cursor")
            if isinstance(cursor, str) and cursor.startswith(_OWN_CURSOR):
                own = _with_cursor(ctx, cursor.removeprefix(_OWN_CURSOR))
                return _marked(cast("Answer", await ours(own, call_next)))
            if not self.has(ctx.method):  # then a foreign cursor is unknown, and ours to refuse
                return _marked(cast("Answer", await ours(ctx, call_next)))
            theirs = cast("Answer", await call_next(ctx))
            if theirs.get("nextCursor"):
                return theirs
            page = _marked(cast("Answer", await ours(_with_cursor(ctx, None), call_next)))
            meta: Answer = {**(theirs.get("_meta") or {}), **(page.get("_meta") or {})}
            result = {**theirs, **_strictest(theirs, page), field: [*theirs.get(field, ()), *page[field]]}
            return {**result, "_meta": meta} if meta else result

        return handle

    async def server_items(self, ctx: Context, call_next: CallNext, method: str, field: str) -> list[Answer]:
        """Everything that the server itself lists, from all pages."""
        if not self.has(method):
            return []
        params = meta_only(ctx)
        items: list[Answer] = []
        for _ in range(DEFAULT_LIMITS.max_pages):
            page = cast("Answer", await call_next(replace(ctx, method=method, params=params)))
            items.extend(page.get(field, ()))
            if not page.get("nextCursor"):
                break
            params["cursor"] = page["nextCursor"]
        return items


class DialectHandlers:
    """One dialect on a server. A subclass fills ``handlers``."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.handlers: dict[str, Handler] = {"initialize": self._declare, "server/discover": self._declare}

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Handle one request."""
        handler = self.handlers.get(ctx.method)
        return await (call_next(ctx) if handler is None else handler(ctx, call_next))

    def declare(self, ctx: Context, capabilities: Answer) -> None:
        """Add to the capabilities of the server, in place."""

    async def may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool | None:  # noqa: ARG002
        """Whether the caller may be notified of changes of ``uri``; ``None`` if the dialect does not know it."""
        return None

    async def _declare(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        result = cast("Answer", await call_next(ctx))
        capabilities = dict(result.get("capabilities") or {})
        self.declare(ctx, capabilities)
        return {**result, "capabilities": capabilities}


def _with_cursor(ctx: Context, cursor: str | None) -> Context:
    params = {key: value for key, value in (ctx.params or {}).items() if key != "cursor"}
    return replace(ctx, params=params if cursor is None else {**params, "cursor": cursor})


def _strictest(theirs: Answer, ours: Answer) -> Answer:
    """Our result with the shorter lifetime and the narrower scope of both sides."""
    if "ttlMs" not in ours:
        return ours
    private = "private" in (theirs.get("cacheScope"), ours["cacheScope"])
    ttl = min(int(theirs.get("ttlMs", 0)), int(ours["ttlMs"]))
    return {**ours, "ttlMs": ttl, "cacheScope": "private" if private else "public"}


def _marked(result: Answer) -> Answer:
    cursor = result.get("nextCursor")
    return {**result, "nextCursor": _OWN_CURSOR + cursor} if cursor else result
