"""What every dialect's share of a server has in common.

A ``Binding`` is one dialect over one catalog. It stands in front of the server's own handlers: it answers what
only skills know, adds to what the server lists, and passes everything else on. Several of them in a row make one
endpoint (``routing.py``); none knows of another.

What a binding answers itself it registers as a handler under a name of its own (``skillwire/…``) and asks for by
that name, so that the SDK's own checks, result envelope and telemetry apply to it like to everything else.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from weakref import WeakKeyDictionary

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog
from skillwire.catalog.names import Names
from skillwire.errors import SkillwireError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.native.scopes import Scopes
from skillwire.skill.uri import DEFAULT_SCHEME
from skillwire.wire.errors import to_rpc_error
from skillwire.wire.extension import Freshness

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.lowlevel import Server
    from pydantic import BaseModel

    from skillwire.server.fallback.searching import Searching

    Context: TypeAlias = ServerRequestContext[Any, Any]
    Route: TypeAlias = Callable[[Context, CallNext], Awaitable[HandlerResult]]
    Handler: TypeAlias = Callable[[Context, Any], Awaitable[dict[str, Any]]]

Answer: TypeAlias = dict[str, Any]
OWN = "skillwire/"  # our names for what a binding asks its own handlers; nobody's to call from outside
_OWN_CURSOR = "skillwire."

log = logging.getLogger("skillwire.server")


@dataclass(frozen=True, slots=True)
class Served:
    """What bindings serve: a catalog, which may differ from caller to caller, on a server."""

    server: Server[Any]
    whole: Callable[[], Catalog]  # everything, whoever asks
    catalog_for: Callable[[Any], Catalog]  # what the caller of this context may see of it
    sees: Callable[[], Callable[[str], bool]]  # whether the caller of the current request may see a URI
    searching: Searching
    scheme: str = DEFAULT_SCHEME
    page_size: int = DEFAULT_PAGE_SIZE
    freshness: Freshness = field(default_factory=Freshness)
    scopes: Scopes = field(default_factory=Scopes)  # what skills bind of the server, in code
    _names: WeakKeyDictionary[Catalog, Names] = field(default_factory=WeakKeyDictionary["Catalog", "Names"])
    _said: set[str] = field(default_factory=set[str])

    def has(self, method: str) -> bool:
        """Whether the server itself answers ``method``."""
        return self.server.get_request_handler(method) is not None

    def warn(self, message: str) -> None:
        """Say in the log what is wrong with what is served: each thing once."""
        if message not in self._said and len(self._said) < DEFAULT_LIMITS.max_page_size:
            self._said.add(message)
            log.warning("%s", message)

    def names_for(self, ctx: Any) -> Names:
        """Skills by name, as far as the caller may see them."""
        catalog = self.catalog_for(ctx)
        names = self._names.get(catalog)
        if names is None:
            names = self._names[catalog] = Names(catalog, self.scheme)
        return names


class Binding:
    """One dialect's share of a server. A subclass fills ``routes`` and registers its handlers."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.routes: dict[str, Route] = {"initialize": self._declare, "server/discover": self._declare}

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer, share or pass on one request."""
        route = self.routes.get(ctx.method)
        return await (call_next(ctx) if route is None else route(ctx, call_next))

    def declare(self, ctx: Context, capabilities: Answer) -> None:
        """Add to what the server says it can, in place."""

    async def may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool | None:  # noqa: ARG002
        """Whether the caller may be told when ``uri`` changes; ``None`` of what is no URI of this dialect."""
        return None

    def handle(self, method: str, params: type[BaseModel], answer: Handler, *, cacheable: bool = True) -> None:
        """Register ``answer``. An error of ours becomes JSON-RPC's here, and a cacheable result says so."""
        freshness = self.served.freshness

        async def handled(ctx: Context, given: Any) -> Answer:
            try:
                result = await answer(ctx, given)
            except SkillwireError as error:
                raise to_rpc_error(error) from error
            return {**result, **freshness.fields(ctx.protocol_version)} if cacheable else result

        self.served.server.add_request_handler(method, params, handled)

    def appended(self, field: str, own_method: str) -> Route:
        """A route for a listing: the server's own pages first, ours after them; a cursor says whose it is."""

        async def listed(ctx: Context, call_next: CallNext) -> HandlerResult:
            cursor = (ctx.params or {}).get("cursor")
            if isinstance(cursor, str) and cursor.startswith(_OWN_CURSOR):
                inner = cursor.removeprefix(_OWN_CURSOR)
                return _marked(await ask(ctx, call_next, own_method, cursor=inner))
            if not self.served.has(ctx.method):
                params = {} if cursor is None else {"cursor": cursor}  # nobody's cursor: ours to refuse
                return _marked(await ask(ctx, call_next, own_method, **params))
            theirs = cast("Answer", await call_next(ctx))
            if theirs.get("nextCursor"):
                return theirs
            ours = _marked(await ask(ctx, call_next, own_method))
            meta: Answer = {**(theirs.get("_meta") or {}), **(ours.get("_meta") or {})}
            result = {**theirs, **_strictest(theirs, ours), field: [*theirs.get(field, ()), *ours[field]]}
            return {**result, "_meta": meta} if meta else result

        return listed

    async def their_list(self, ctx: Context, call_next: CallNext, method: str, field: str) -> list[Answer]:
        """Everything that the server itself lists, all pages."""
        if not self.served.has(method):
            return []
        params = {key: value for key, value in (ctx.params or {}).items() if key == "_meta"}
        items: list[Answer] = []
        for _ in range(DEFAULT_LIMITS.max_pages):
            page = cast("Answer", await call_next(replace(ctx, method=method, params=params)))
            items.extend(page.get(field, ()))
            if not page.get("nextCursor"):
                break
            params["cursor"] = page["nextCursor"]
        return items

    async def _declare(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        result = cast("Answer", await call_next(ctx))
        capabilities = dict(result.get("capabilities") or {})
        self.declare(ctx, capabilities)
        return {**result, "capabilities": capabilities}


async def ask(ctx: Context, call_next: CallNext, method: str, **params: Any) -> Answer:
    """Ask what stands behind for ``method``: the request's own parameters, its cursor left out, and ``params``."""
    inner = {key: value for key, value in (ctx.params or {}).items() if key != "cursor"} | params
    return cast("Answer", await call_next(replace(ctx, method=method, params=inner)))


def is_modern(ctx: Context) -> bool:
    """Whether the request is of the stateless era."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def connection_of(ctx: Context) -> object:
    """What stays the same from request to request of one session of the handshake era."""
    return getattr(ctx.session, "_connection", ctx.session)


def _strictest(theirs: Answer, ours: Answer) -> Answer:
    """Our result, kept no longer and shared no wider than either side allows."""
    if "ttlMs" not in ours:
        return ours
    private = "private" in (theirs.get("cacheScope"), ours["cacheScope"])
    ttl = min(int(theirs.get("ttlMs", 0)), int(ours["ttlMs"]))
    return {**ours, "ttlMs": ttl, "cacheScope": "private" if private else "public"}


def _marked(result: Answer) -> Answer:
    cursor = result.get("nextCursor")
    return {**result, "nextCursor": _OWN_CURSOR + cursor} if cursor else result
