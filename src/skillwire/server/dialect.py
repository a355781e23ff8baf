"""What all dialects share: how a request gets to its dialect, the served skills, and their files (R1, P4).

A dialect is a table of handlers by method. The handlers stand in front of the server's own ones, as a middleware
(``Endpoints``). A handler gets the request and ``call_next``, which passes a request on to the server. It answers
by itself, adds to the server's response, or passes the request on.

``skills/list`` has a different meaning in three dialects, and strict clients reject additional fields. So each
endpoint has one meaning. Over HTTP each of these dialects has its own path (``DialectPaths``). On other transports
the dialect is chosen when skills are attached (``Dialects``).

The SDK checks requests and completes responses only for handlers that are registered on the server. For ours
``ServedSkills`` does the same: it refuses requests before the handshake, validates the parameters, turns our
errors into JSON-RPC errors, and adds the fields that every result of the stateless era has.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, cast, get_args

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, SERVER_INFO_META_KEY, PaginatedRequestParams, ReadResourceRequestParams
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog, LargeCatalog
from skillwire.catalog.cursor import bad_cursor
from skillwire.catalog.names import SkillNames
from skillwire.errors import FormatError, NotFoundError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.callers import ViewCache, current_request, everything
from skillwire.server.notifications import check_subscriptions
from skillwire.server.sdk_compat import connection_of
from skillwire.skill.uri import DEFAULT_SCHEME, format_uri, parse_uri
from skillwire.wire.errors import resource_unknown, rpc_errors, to_rpc_error
from skillwire.wire.extension import Freshness, read_result
from skillwire.wire.templates import matches_template

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from skillwire.catalog.contract import ChangeStream
    from skillwire.search.fts5 import Hit
    from skillwire.search.index import SearchIndex
    from skillwire.server.callers import Views
    from skillwire.server.index import SkillIndex
    from skillwire.server.notifications import Notifier
    from skillwire.skill import SkillEntry

Context: TypeAlias = ServerRequestContext[Any, Any]
Handler: TypeAlias = Callable[[Context, CallNext], Awaitable[HandlerResult]]
MethodResult: TypeAlias = dict[str, Any]
P = TypeVar("P", bound=BaseModel)

Endpoint: TypeAlias = Literal["extension", "sep-2076", "native"]
ENDPOINTS: tuple[Endpoint, ...] = get_args(Endpoint)
Fallback: TypeAlias = Literal["auto", "always", "never"]
MCP_PATH = "/mcp"
MIN_KEY_BYTES = 32
ENDPOINT_KEY = "skillwire.endpoint"  # in the scope of a request: its endpoint
_SUBSCRIPTIONS = "resourceSubscriptions"
_OWN_CURSOR = "skillwire."
# URIs of the index and of archives, in any spelling, and few others: most reads need no further check.
_MAY_BE_PACKED = re.compile(r"(json|gz|zip)\Z|%", re.IGNORECASE)
_MAX_NAMES, _MAX_INDEXES = 64, 16  # views of callers for which names and search indexes are kept
_RESOURCE_LISTS = {"resources/list": "resources", "resources/templates/list": "resourceTemplates"}

log = logging.getLogger("skillwire.server")


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
    activation_seconds: int = 3600

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


@dataclass(frozen=True, slots=True)
class Dialect:
    """The meaning of requests on one endpoint of a server. Methods without a handler are the server's own."""

    handlers: Mapping[str, Handler]
    # Whether the caller may be notified of changes of a URI.
    may_subscribe: Callable[[Context, CallNext, str], Awaitable[bool]]
    # Whether the client sees skills as prompts.
    has_prompts: Callable[[Context], bool] = lambda _: False
    # Refuses a request, whatever its method is, by raising an error.
    check: Callable[[Context], None] = lambda _: None


class Endpoints:
    """The middleware that gives each request to the dialect of its endpoint."""

    def __init__(
        self, dialects: Mapping[Endpoint, Dialect], served: ServedSkills, notifier: Notifier, default: Endpoint
    ) -> None:
        self._dialects = dialects
        self._served = served
        self._notifier = notifier
        self._default = default

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Handle one message."""
        if ctx.request_id is None:
            return await call_next(ctx)
        current_request.set(ctx)  # each request has its own task
        await self._served.identify_caller()
        scope: Mapping[str, Any] = getattr(ctx.request, "scope", None) or {}
        endpoint: Endpoint = scope.get(ENDPOINT_KEY, self._default)
        dialect = self._dialects[endpoint]
        dialect.check(ctx)
        if ctx.method == "subscriptions/listen":
            ctx = await _allowed_subscriptions(ctx, call_next, dialect)
            return await self._notifier.listen(ctx, call_next, endpoint, prompts=dialect.has_prompts(ctx))
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


def is_modern(ctx: Context) -> bool:
    """Whether the request is of the stateless era."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def validated(ctx: Context, params_type: type[P]) -> P:
    """The parameters of a request that this server answers itself. Refused before the handshake, as by the SDK."""
    if not is_modern(ctx) and not connection_of(ctx.session).initialize_accepted:
        raise MCPError(code=INVALID_PARAMS, message="Invalid request parameters", data="")
    return params_type.model_validate(ctx.params or {}, by_name=False)


def server_pages(ctx: Context, call_next: CallNext, method: str) -> AsyncIterator[MethodResult]:
    """All pages of one of the server's own listings, requested on behalf of ``ctx``, with its ``_meta``."""
    meta = (ctx.params or {}).get("_meta")
    common = {} if meta is None else {"_meta": meta}

    async def read(params: MethodResult) -> MethodResult:
        return cast("MethodResult", await call_next(replace(ctx, method=method, params={**common, **params})))

    return all_pages(read)


async def all_pages(read: Callable[[MethodResult], Awaitable[MethodResult]]) -> AsyncIterator[MethodResult]:
    """All pages that ``read`` returns for ``{}`` and then for ``{"cursor": …}``, within bounds."""
    params: MethodResult = {}
    for _ in range(DEFAULT_LIMITS.max_pages):
        page = await read(params)
        yield page
        cursor = page.get("nextCursor")
        if not cursor or cursor == params.get("cursor"):
            return
        params = {"cursor": cursor}


def declaring(declare: Callable[[Context, MethodResult], None]) -> dict[str, Handler]:
    """Handlers that let ``declare`` change the capabilities of the server, in place."""

    async def handle(ctx: Context, call_next: CallNext) -> HandlerResult:
        result = cast("MethodResult", await call_next(ctx))
        capabilities = dict(result.get("capabilities") or {})
        declare(ctx, capabilities)
        return {**result, "capabilities": capabilities}

    return {"initialize": handle, "server/discover": handle}


def declare_skills(capabilities: MethodResult, resources: MethodResult) -> None:
    """Declare skills by name, and ``resources``, in place (P1, M4).

    Skills are also among the experimental capabilities: clients of some SDKs drop an unknown capability.
    """
    skills = {"listChanged": True}
    capabilities["resources"] = {**(capabilities.get("resources") or {}), **resources}
    capabilities["skills"] = skills
    capabilities["experimental"] = {**(capabilities.get("experimental") or {}), "skills": skills}


class ServedSkills:
    """The skills on one server, and how responses about them are made.

    ``catalog`` has everything. It is replaced when a skill is declared for the first time (``replace_catalog``).
    ``views`` decides which part of it the caller of a request may see.
    """

    def __init__(
        self,
        server: Server[Any],
        catalog: Catalog,
        views: Views | None = None,
        *,
        scheme: str = DEFAULT_SCHEME,
        page_size: int = DEFAULT_PAGE_SIZE,
        freshness: Freshness | None = None,
    ) -> None:
        self.server = server
        self.catalog = catalog
        self.scheme = scheme
        self.page_size = page_size
        self.freshness = freshness or Freshness()
        self._views = views
        if views is not None:  # results that differ between callers must not be shared
            self.freshness = Freshness(self.freshness.ttl_ms, "private")
        self._names = ViewCache(lambda view: SkillNames(view, scheme), _MAX_NAMES)
        self._indexes: ViewCache[SearchIndex] = ViewCache(_search_index, _MAX_INDEXES)
        self._warned: set[str] = set()
        self._version = 0
        self._changes: ChangeStream | None = None

    def replace_catalog(self, catalog: Catalog) -> None:
        """Serve another catalog from now on."""
        self.catalog = catalog
        self._version += 1
        if self._changes is not None:
            self._changes.close()
            self._changes = None

    def version(self) -> int:
        """A number that grows with every change of the skills, so that a copy is recognised as outdated."""
        if self._changes is None:
            self._changes = self.catalog.changes()
            self._changes.forward(self._count_change)
        return self._version

    def _count_change(self, change: object) -> None:  # noqa: ARG002 - every change outdates all copies
        self._version += 1

    async def identify_caller(self) -> None:
        """Find out what the caller of the current request may see. Call this before a request is handled."""
        if self._views is not None:
            await self._views.decide()

    def visible(self) -> Catalog:
        """The part of the catalog that the caller of the current request may see."""
        return self.catalog if self._views is None else self._views.catalog(self.catalog)

    def sees(self) -> Callable[[str], bool]:
        """A function that tells whether this caller may see a URI."""
        return everything if self._views is None else self._views.sees()

    def names(self) -> SkillNames:
        """The skills by name, as far as the caller may see them."""
        return self._names.of(self.visible())

    async def search(self, query: str, limit: int) -> list[tuple[Hit, SkillEntry]]:
        """The best matches for ``query`` among the skills that the caller may see, best first.

        An index contains only what its callers may see, so that not even the order of results depends on the rest.
        """
        view = self.visible()
        if isinstance(view, LargeCatalog):
            from skillwire.search.fts5 import Hit

            matches = await view.search(query, limit)
            return [(Hit(each.uri, each.name, each.description, score, ""), each) for each, score in matches]
        hits = await self._indexes.of(view).search(query, limit)
        found = [(hit, await view.peek_skill(hit.uri)) for hit in hits]
        return [(hit, entry) for hit, entry in found if entry is not None]

    def close(self) -> None:
        """Close what requests have opened, when the server ends."""
        self._names.close()
        self._indexes.close()

    async def label(self, entry: SkillEntry) -> str:
        """The name of a skill for the caller."""
        return await self.names().label(entry)

    async def labels(self, entries: Sequence[SkillEntry]) -> list[str]:
        """The names of skills for the caller."""
        return await self.names().labels(entries)

    def warn(self, message: str) -> None:
        """Log a warning about the skills. Each message is logged once."""
        if message not in self._warned and len(self._warned) < DEFAULT_LIMITS.max_page_size:
            self._warned.add(message)
            log.warning("%s", message)

    def has(self, method: str) -> bool:
        """Whether the server has its own handler for ``method``."""
        return self.server.get_request_handler(method) is not None

    def answering(
        self,
        params_type: type[P],
        answer: Callable[[P], Awaitable[MethodResult]],
        *,
        freshness: Freshness | None = None,
        cacheable: bool = True,
    ) -> Handler:
        """A handler that validates the parameters and returns the completed result of ``answer``."""
        kept = (freshness or self.freshness) if cacheable else None

        async def handle(ctx: Context, call_next: CallNext) -> MethodResult:  # noqa: ARG001 - the form of a handler
            params = validated(ctx, params_type)
            try:  # not ``rpc_errors``: this is on the path of every request
                result = await answer(params)
            except SkillwireError as error:
                raise to_rpc_error(error) from error
            return self.complete(ctx, result, kept)

        return handle

    def complete(self, ctx: Context, result: MethodResult, freshness: Freshness | None = None) -> MethodResult:
        """``result`` with the fields of the stateless era, and with ``freshness`` if it is cacheable."""
        if not is_modern(ctx):
            return result
        cached = {} if freshness is None else {"ttlMs": freshness.ttl_ms, "cacheScope": freshness.scope}
        meta: MethodResult = {SERVER_INFO_META_KEY: self.server.server_info_stamp, **(result.get("_meta") or {})}
        return {**result, **cached, "resultType": "complete", "_meta": meta}

    def appended(self, field: str, ours: Handler) -> Handler:
        """A handler for a listing: the server's pages, then ours. Our cursors have a prefix."""

        async def handle(ctx: Context, call_next: CallNext) -> HandlerResult:
            cursor = (ctx.params or {}).get("cursor")
            if isinstance(cursor, str) and cursor.startswith(_OWN_CURSOR):
                own = _with_cursor(ctx, cursor.removeprefix(_OWN_CURSOR))
                return _with_own_cursor(cast("MethodResult", await ours(own, call_next)))
            if not self.has(ctx.method):  # then a foreign cursor is unknown, and ours to refuse
                return _with_own_cursor(cast("MethodResult", await ours(ctx, call_next)))
            theirs = cast("MethodResult", await call_next(ctx))
            if theirs.get("nextCursor"):
                return theirs
            page = _with_own_cursor(cast("MethodResult", await ours(_with_cursor(ctx, None), call_next)))
            result = {**theirs, **page, field: [*theirs.get(field, ()), *page[field]]}
            if "ttlMs" in page:  # the shorter lifetime and the narrower scope of both
                result["ttlMs"] = min(int(theirs.get("ttlMs", 0)), int(page["ttlMs"]))
                if theirs.get("cacheScope") == "private":
                    result["cacheScope"] = "private"
            meta: MethodResult = {**(theirs.get("_meta") or {}), **(page.get("_meta") or {})}
            return {**result, "_meta": meta} if meta else result

        return handle

    async def server_items(self, ctx: Context, call_next: CallNext, method: str, field: str) -> list[MethodResult]:
        """Everything that the server itself lists, from all pages."""
        if not self.has(method):
            return []
        return [item async for page in server_pages(ctx, call_next, method) for item in page.get(field) or ()]


def _search_index(view: Catalog) -> SearchIndex:
    from skillwire.search.index import SearchIndex  # late: only the first search needs it

    return SearchIndex(view)


def _with_cursor(ctx: Context, cursor: str | None) -> Context:
    params = {key: value for key, value in (ctx.params or {}).items() if key != "cursor"}
    return replace(ctx, params=params if cursor is None else {**params, "cursor": cursor})


def _with_own_cursor(result: MethodResult) -> MethodResult:
    cursor = result.get("nextCursor")
    return {**result, "nextCursor": _OWN_CURSOR + cursor} if cursor else result


class SkillFiles:
    """Files of skills among the resources of a server. ``handlers`` are for a dialect that does not list files.

    A ``resources/read`` of a file of a skill is answered here, and every other one by the server. The same lookup
    decides whether a caller may subscribe to a resource. ``index`` answers for the index and the archives.
    """

    def __init__(self, served: ServedSkills, index: SkillIndex | None = None) -> None:
        self._served = served
        self._index = index
        self._read_own = served.answering(ReadResourceRequestParams, self._read_file)
        self.handlers: dict[str, Handler] = {
            "resources/read": self.read,
            **dict.fromkeys(_RESOURCE_LISTS, self.list_resources),
        }

    async def has(self, uri: str) -> bool:
        """Whether a ``resources/read`` of ``uri`` is answered here: a visible skill lists the file."""
        return await lists_file(self._served.visible(), uri, self._served.scheme)

    def has_scheme(self, uri: object) -> bool:
        """Whether ``uri`` has the scheme of the skills."""
        return isinstance(uri, str) and uri.lower().startswith(f"{self._served.scheme}:")

    async def read(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer ``resources/read``."""
        uri = (ctx.params or {}).get("uri")
        if not isinstance(uri, str):
            return await call_next(ctx)
        if self._index is not None and _MAY_BE_PACKED.search(uri) and await self._index.has(uri):
            return await self._served.answering(ReadResourceRequestParams, self._index.read)(ctx, call_next)
        is_ours = self.has_scheme(uri)
        if not self._served.has(ctx.method) or (is_ours and await self.has(uri)):
            return await self._read_own(ctx, call_next)
        try:
            return await call_next(ctx)
        except MCPError:
            if not is_ours:
                raise
        return await self._read_own(ctx, call_next)  # our error explains more than the server's

    async def _read_file(self, params: ReadResourceRequestParams) -> MethodResult:
        uri = str(params.uri)
        try:
            return read_result(await self._served.visible().read_file(uri))
        except NotFoundError as error:
            raise resource_unknown(error, uri) from error

    async def list_resources(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """P4: files are in no listing. A server without resources has an empty listing."""
        if self._served.has(ctx.method):
            return await call_next(ctx)
        if validated(ctx, PaginatedRequestParams).cursor is not None:  # there is only one page
            raise to_rpc_error(bad_cursor())
        return self._served.complete(ctx, {_RESOURCE_LISTS[ctx.method]: []}, self._served.freshness)

    async def may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool:
        """Whether the caller may subscribe to ``uri``: a visible file of a skill, or a resource of the server."""
        if await self.has(uri):
            return True
        if self.has_scheme(uri):
            with suppress(FormatError):  # not a URI of a skill
                if not self._served.sees()(uri):
                    return False
        if self._served.has("resources/subscribe"):  # then the server decides
            return True
        for method, items in _RESOURCE_LISTS.items():
            for item in await self._served.server_items(ctx, call_next, method, items):
                if item.get("uri") == uri or matches_template(str(item.get("uriTemplate") or ""), uri):
                    return True
        return False


async def lists_file(catalog: Catalog, uri: str, scheme: str) -> bool:
    """Whether a skill of ``catalog`` lists the file at ``uri``."""
    try:
        parsed = parse_uri(uri)
    except FormatError:
        return False
    if parsed.scheme != scheme:
        return False
    entry = await catalog.skill_around(parsed.parent)
    if entry is None:
        return False
    wanted = format_uri(parsed.path, scheme)
    return entry.is_dynamic or any(file.uri == wanted for file in entry.files)
