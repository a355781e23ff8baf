"""The ``native`` dialect on a server: skills that are activated, and bind tools, prompts and resources (M1–M5).

Tools, prompts, resources and files that skills bind are refused until one of these skills is active. Lists are the
server's own pages without the hidden items. A call of a hidden item returns which skill to activate. If the caller
may not see any of these skills, the response is exactly the server's own response for an unknown name: the server
is called with one.

A refused request changes nothing: an activation is stored after everything that can fail.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams, RequestParams

from skillwire.catalog.contract import no_file
from skillwire.catalog.verification import read_current
from skillwire.errors import ProtocolError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.activation import Activations, ActiveSkills, already_active, is_hidden
from skillwire.server.dialect import (
    Dialect,
    MethodResult,
    SkillFiles,
    declare_skills,
    declaring,
    validated,
)
from skillwire.server.scopes import Bindings, canonical_key
from skillwire.skill.uri import parse_uri, root_of, skill_md_uri
from skillwire.wire import native
from skillwire.wire.errors import resource_unknown, rpc_errors, to_rpc_error
from skillwire.wire.extension import SKILLS_LIST, paged
from skillwire.wire.native import KINDS, SKILLS_ACTIVATE, SKILLS_DEACTIVATE, BoundKind, not_active, refused_call
from skillwire.wire.templates import is_template

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.context import CallNext, HandlerResult

    from skillwire.server.dialect import Context, Dialects, Handler, ServedSkills
    from skillwire.server.notifications import Notifier
    from skillwire.server.scopes import Scopes
    from skillwire.skill import SkillEntry

    Renamed = Callable[[str], Mapping[str, Any]]  # the parameters of the request with another name

log = logging.getLogger("skillwire.server")

# The listings that define the items of a kind: the kind, the method, the field of its result, the key of an item.
_LISTS: tuple[tuple[BoundKind, str, str, str], ...] = (
    ("tools", "tools/list", "tools", "name"),
    ("prompts", "prompts/list", "prompts", "name"),
    ("resources", "resources/list", "resources", "uri"),
    ("resources", "resources/templates/list", "resourceTemplates", "uriTemplate"),
)


class Native:
    """The handlers: listing, activating and deactivating skills, and access to the items that skills bind."""

    def __init__(self, served: ServedSkills, notifier: Notifier, scopes: Scopes, options: Dialects) -> None:
        self._served = served
        self._files = SkillFiles(served)
        self._activations = Activations(options.activation_key, options.activation_seconds)
        self._active = ActiveSkills(
            served, Bindings(served, scopes), self._activations, keep_listed=options.keep_listed
        )
        self._reported: set[tuple[str, str, str]] = set()
        if not options.keep_listed:
            notifier.scoped_kinds = lambda: self._active.bindings.kinds

    def dialect(self) -> Dialect:
        """The table of handlers."""
        handlers = {
            **declaring(self._declare),
            SKILLS_LIST: self._served.answering(PaginatedRequestParams, self._list_skills),
            SKILLS_ACTIVATE: self._activate,
            SKILLS_DEACTIVATE: self._deactivate,
            **{method: self._without_hidden(kind, field, key) for kind, method, field, key in _LISTS},
            "tools/call": self._call_tool,
            "prompts/get": self._get_prompt,
            "resources/read": self._read,
            "resources/subscribe": self._read,
            "completion/complete": self._complete,
        }
        return Dialect(handlers, self._may_subscribe, check=self._check_token)

    def _check_token(self, ctx: Context) -> None:
        with rpc_errors():
            self._activations.paths(ctx)

    def _declare(self, ctx: Context, capabilities: MethodResult) -> None:  # noqa: ARG002 - the same for every client
        """M4: the lists change with the skills that are active."""
        declare_skills(capabilities, {})
        if not self._active.keep_listed:
            for kind in KINDS:
                if capabilities.get(kind) is not None:
                    capabilities[kind] = {**capabilities[kind], "listChanged": True}

    async def _list_skills(self, params: PaginatedRequestParams) -> MethodResult:
        page = await self._served.visible().list_skills(params.cursor, self._served.page_size)
        listed = [entry for entry in page.items if await self._active.can_activate(entry.path)]
        labels = await self._served.labels(listed)
        skills = [native.listed_skill(*each) for each in zip(listed, labels, strict=True)]
        return paged("skills", skills, page.next_cursor)

    async def _activate(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        params = validated(ctx, native.SkillNameParams)
        with rpc_errors():
            catalog = self._served.visible()
            entry = await self._served.names().find(params.name)
            live = await self._active.live(ctx)
            if entry.path in live:
                raise already_active(params.name)
            if not await self._active.can_activate(entry.path, live):
                raise await self._enclosed(entry)
            entry, document = await read_current(catalog, entry)
            result = native.activate_result(entry, document.body, await self._nested(entry))
            defined = await self._definitions(ctx, call_next, entry)
            gone = frozenset(self._activations.paths(ctx)) - await self._active.live(ctx)
            meta = self._activations.activate(ctx, entry.path, gone)
        resources = [*defined.pop("resources", ()), *result["resources"]]
        result = {**result, **defined, "resources": resources, "_meta": {**result["_meta"], **meta}}
        return self._served.complete(ctx, result)

    async def _deactivate(self, ctx: Context, call_next: CallNext) -> HandlerResult:  # noqa: ARG002
        params = validated(ctx, native.SkillNameParams)
        with rpc_errors():
            entry = await self._served.names().find(params.name)
            if entry.path not in await self._active.live(ctx):
                raise ProtocolError(
                    "skill-not-active",
                    f"the skill {params.name!r:.200} is not active",
                    "there is nothing to deactivate",
                    rule="M3",
                )
            meta = self._activations.deactivate(ctx, entry.path)
        return self._served.complete(ctx, {"_meta": meta} if meta else {})

    async def _nested(self, entry: SkillEntry) -> list[MethodResult]:
        """The skills directly inside ``entry``, in the form of the listing."""
        catalog, found = self._served.visible(), list[MethodResult]()
        for path in await catalog.suggest(f"{entry.path}/", DEFAULT_LIMITS.max_page_size):
            outer = await self._active.enclosing(catalog, path)
            inner = await catalog.peek_skill(skill_md_uri(path, self._served.scheme))
            if inner is not None and outer is not None and outer.path == entry.path:
                found.append(native.listed_skill(inner, await self._served.label(inner)))
        return found

    async def _definitions(
        self, ctx: Context, call_next: CallNext, entry: SkillEntry
    ) -> dict[str, list[MethodResult]]:
        """M2: the server's definitions of everything that the skill binds."""
        defined: dict[str, list[MethodResult]] = {}
        for kind, method, field, key in _LISTS:
            keys = await self._active.bindings.keys_of(entry, kind)
            wanted = {name for name in keys if is_template(name) == (key == "uriTemplate")}
            if wanted:
                listed = await self._served.server_items(ctx, call_next, method, field)
                items = {canonical_key(kind, str(item.get(key))): item for item in listed}
                defined[field] = [item for name, item in items.items() if name in wanted]
                self._report(entry, field, wanted - items.keys())
        return defined

    def _report(self, entry: SkillEntry, field: str, missing: set[str]) -> None:
        """Log each missing item once."""
        for key in sorted(missing):
            if (entry.path, field, key) not in self._reported:
                self._reported.add((entry.path, field, key))
                log.warning("the skill %r binds %r, which is not in the server's %s", entry.path, key, field)

    async def _enclosed(self, entry: SkillEntry) -> ProtocolError:
        outer = await self._active.enclosing(self._served.visible(), entry.path)
        around = "" if outer is None else await self._served.label(outer)
        return ProtocolError(
            "skill-enclosed",
            f"the skill {entry.name!r} is inside the skill {around!r:.200}, which is not active. "
            f"{native.how_to_activate(around)}",
            f"activate {around!r:.200}",
            rule="M3",
        )

    async def _may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool:
        """Whether ``resources/subscribe`` would succeed."""
        try:
            await self._check_file(ctx, uri)
        except MCPError:
            return False
        is_free = await self._is_listed_by_server(ctx, call_next, uri)
        if not is_free and await self._refusal(ctx, "resources", uri) is not None:
            return False
        return await self._files.may_subscribe(ctx, call_next, uri)

    def _without_hidden(self, kind: BoundKind, field: str, key: str) -> Handler:
        async def handle(ctx: Context, call_next: CallNext) -> HandlerResult:
            if kind == "resources":
                page = cast("MethodResult", await self._files.list_resources(ctx, call_next))
            else:
                page = cast("MethodResult", await call_next(ctx))
            hidden = await self._active.hidden(kind)
            if hidden is None:
                return page
            items = [item for item in page.get(field, ()) if not is_hidden(kind, item.get(key), hidden)]
            return _uncached({**page, field: items})  # skills may bind other items at any time

        return handle

    async def _call_tool(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        name = params.get("name")
        skills = await self._refusal(ctx, "tools", name)
        if skills is None:
            return await call_next(ctx)
        if not skills:
            return await _as_unknown(ctx, call_next, str(name), lambda other: {**params, "name": other})
        validated(ctx, RequestParams)  # nothing else checks that the handshake is complete
        return self._served.complete(ctx, refused_call(not_active("tools", str(name), skills)))

    async def _get_prompt(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        return await self._guarded(
            ctx, call_next, "prompts", params.get("name"), lambda other: {**params, "name": other}
        )

    async def _complete(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        given: object = params.get("ref")
        ref = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        kind: BoundKind = "prompts" if ref.get("type") == "ref/prompt" else "resources"
        field = "name" if kind == "prompts" else "uri"
        return await self._guarded(
            ctx, call_next, kind, ref.get(field), lambda other: {**params, "ref": {**ref, field: other}}
        )

    async def _read(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """``resources/read`` and ``resources/subscribe``."""
        params = ctx.params or {}
        uri = params.get("uri")
        if isinstance(uri, str) and self._files.has_scheme(uri):
            await self._check_file(ctx, uri)

        async def read(ctx: Context) -> HandlerResult:
            if ctx.method == "resources/read":
                return await self._files.read(ctx, call_next)
            return await call_next(ctx)

        if isinstance(uri, str) and await self._is_listed_by_server(ctx, call_next, uri):
            return await read(ctx)
        result = await self._guarded(ctx, read, "resources", uri, lambda other: {**params, "uri": other})
        return result if self._active.keep_listed else _uncached(cast("MethodResult", result))

    async def _guarded(
        self, ctx: Context, call_next: CallNext, kind: BoundKind, key: object, renamed: Renamed
    ) -> HandlerResult:
        """Pass the request on if the caller may use ``key``."""
        skills = await self._refusal(ctx, kind, key)
        if skills is None:
            return await call_next(ctx)
        if skills:
            raise to_rpc_error(_not_active_error(kind, str(key), skills))
        if kind == "resources" and self._files.has_scheme(key):
            raise resource_unknown(no_file(str(key)), str(key))
        return await _as_unknown(ctx, call_next, str(key), renamed)

    async def _refusal(self, ctx: Context, kind: BoundKind, key: object) -> list[str] | None:
        """``None`` if the caller may use ``key``; otherwise the skills to activate, as far as it may see them."""
        if not isinstance(key, str):
            return None
        bound, paths = await self._active.binders(kind, key)
        if not paths and kind == "resources":
            paths = bound.by_template(key)
        entries = await self._active.refusal(ctx, paths)
        return None if entries is None else [await self._served.label(entry) for entry in entries]

    async def _is_listed_by_server(self, ctx: Context, call_next: CallNext, uri: str) -> bool:
        """Whether skills bind ``uri`` only by a template, and the server lists it as a separate resource."""
        bound, paths = await self._active.binders("resources", uri)
        if paths or not bound.by_template(uri):
            return False
        listed = await self._served.server_items(ctx, call_next, "resources/list", "resources")
        return any(item.get("uri") == uri for item in listed)

    async def _check_file(self, ctx: Context, uri: str) -> None:
        """Refuse a file of a skill unless that skill, or one around it, is active."""
        if self._active.keep_listed or not await self._files.has(uri):
            return
        catalog = self._served.visible()
        live = await self._active.live(ctx)
        owner = inner = await catalog.skill_around(parse_uri(uri).parent)
        while inner is not None:
            if inner.path in live:
                return
            inner = await catalog.skill_around(root_of(inner.uri).parent)
        if owner is not None:
            raise to_rpc_error(_not_active_error("resources", uri, [await self._served.label(owner)]))


async def _as_unknown(ctx: Context, call_next: CallNext, key: str, renamed: Renamed) -> HandlerResult:
    """The server's response for an unknown name, with ``key`` in place of that name."""
    unknown = f"unknown-{secrets.token_hex(16)}"
    if ctx.method.startswith("resources/"):  # a scheme that no template has
        unknown = f"{unknown}://{secrets.token_hex(16)}"
    try:
        return _renamed(await call_next(replace(ctx, params=renamed(unknown))), unknown, key)
    except MCPError as error:
        data = error.error
        raise MCPError(
            code=data.code, message=data.message.replace(unknown, key), data=_renamed(data.data, unknown, key)
        ) from None
    except Exception as error:  # a server may raise anything, and the text is sent to the client
        error.args = tuple(_renamed(list(error.args), unknown, key))
        raise


def _renamed(value: Any, unknown: str, key: str) -> Any:
    """``value`` with ``key`` in place of ``unknown``."""
    match value:
        case str():
            return value.replace(unknown, key)
        case list():
            return [_renamed(item, unknown, key) for item in cast("list[Any]", value)]
        case dict():
            return {name: _renamed(item, unknown, key) for name, item in cast("dict[str, Any]", value).items()}
        case _:
            return value


def _uncached(result: MethodResult) -> MethodResult:
    """A result that depends on the active skills: not shared, and not cached."""
    return {**result, "ttlMs": 0, "cacheScope": "private"} if "ttlMs" in result else result


def _not_active_error(kind: BoundKind, key: str, skills: list[str]) -> ProtocolError:
    return ProtocolError(
        "skill-not-active", not_active(kind, key, skills), f"activate {skills[0]!r:.200}", rule="M3"
    )
