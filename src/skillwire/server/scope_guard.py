"""Access to scoped tools, prompts, resources and files of skills: refused until their skill is active (M3).

Lists are the server's own pages without the hidden items. A call of a hidden item returns which skill to activate.
If the caller may not see any of these skills, the response is exactly the server's own response for an unknown
name: the server is called with one.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError

from skillwire.catalog.snapshot import no_file
from skillwire.errors import ProtocolError
from skillwire.server.activation import ActiveSkills, is_hidden
from skillwire.server.dialect import Answer, check_initialized
from skillwire.server.skill_files import skill_around
from skillwire.skill.uri import parse_uri
from skillwire.wire.errors import resource_unknown, to_rpc_error
from skillwire.wire.native import Kind, not_active, refused_call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.context import CallNext, HandlerResult

    from skillwire.server.dialect import Context, Handler, Served
    from skillwire.server.skill_files import SkillFiles

    Renamed = Callable[[str], Mapping[str, Any]]  # the parameters of the request with another name


class ScopeGuard:
    """Handlers for everything of the server that a skill may bind."""

    def __init__(self, served: Served, files: SkillFiles, active: ActiveSkills) -> None:
        self._served = served
        self._files = files
        self._active = active
        self.handlers: dict[str, Handler] = {
            "tools/list": self._without_hidden("tools", "tools", "name"),
            "prompts/list": self._without_hidden("prompts", "prompts", "name"),
            "resources/list": self._without_hidden("resources", "resources", "uri"),
            "resources/templates/list": self._without_hidden("resources", "resourceTemplates", "uriTemplate"),
            "tools/call": self._call_tool,
            "prompts/get": self._get_prompt,
            "resources/read": self._read,
            "resources/subscribe": self._read,
            "completion/complete": self._complete,
        }

    async def may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool:
        """Whether ``resources/subscribe`` would succeed."""
        try:
            await self._check_file(ctx, uri)
        except MCPError:
            return False
        is_free = await self._is_listed_by_server(ctx, call_next, uri)
        if not is_free and await self._refusal(ctx, "resources", uri) is not None:
            return False
        return await self._files.may_subscribe(ctx, call_next, uri)

    def _without_hidden(self, kind: Kind, field: str, key: str) -> Handler:
        async def handle(ctx: Context, call_next: CallNext) -> HandlerResult:
            if kind == "resources":
                page = cast("Answer", await self._files.list_resources(ctx, call_next))
            else:
                page = cast("Answer", await call_next(ctx))
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
        check_initialized(ctx)
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
        kind: Kind = "prompts" if ref.get("type") == "ref/prompt" else "resources"
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
        return result if self._active.keep_listed else _uncached(cast("Answer", result))

    async def _guarded(
        self, ctx: Context, call_next: CallNext, kind: Kind, key: object, renamed: Renamed
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

    async def _refusal(self, ctx: Context, kind: Kind, key: object) -> list[str] | None:
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
        catalog, scheme = self._served.visible(), self._served.scheme
        live = await self._active.live(ctx)
        owner = inner = await skill_around(catalog, parse_uri(uri).parent.path, scheme)
        while inner is not None:
            if inner.path in live:
                return
            inner = await skill_around(catalog, inner.path.rpartition("/")[0], scheme)
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


def _uncached(result: Answer) -> Answer:
    """A result that depends on the active skills: not shared, and not cached."""
    return {**result, "ttlMs": 0, "cacheScope": "private"} if "ttlMs" in result else result


def _not_active_error(kind: Kind, key: str, skills: list[str]) -> ProtocolError:
    return ProtocolError(
        "skill-not-active", not_active(kind, key, skills), f"activate {skills[0]!r:.200}", rule="M3"
    )
