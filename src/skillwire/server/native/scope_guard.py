"""Scoped tools, prompts, resources and files of skills: in no list, and refused until their skill is active (M3).

Lists are the server's own, page by page, without what is hidden. A call of something hidden says which skill to
activate; what belongs only to skills that the caller may not see gets the very answer that the server gives to a
name it does not know, which is had by asking it for one.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError

from skillwire.catalog.snapshot import no_file
from skillwire.errors import ProtocolError
from skillwire.server.binding import OWN, Answer
from skillwire.server.extension import ReadingFiles
from skillwire.server.native.active import ActiveSkills, is_hidden
from skillwire.skill.uri import parse_uri
from skillwire.wire.errors import resource_unknown, to_rpc_error
from skillwire.wire.native import Kind, RefusedCallParams, not_active, refused_call

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.context import CallNext, HandlerResult

    from skillwire.server.binding import Context, Route, Served
    from skillwire.skill import SkillEntry

    Renamed = Callable[[str], Mapping[str, Any]]  # the request's parameters with another name in them

_REFUSE = f"{OWN}native/refuse"


class Guarding(ReadingFiles):
    """Everything of the server that a skill may bind, as far as the caller may use it now."""

    def __init__(self, served: Served, active: ActiveSkills) -> None:
        super().__init__(served)
        self.active = active
        self.handle(_REFUSE, RefusedCallParams, _refuse, cacheable=False)
        self.routes |= {
            "tools/list": self._without("tools", "tools", "name"),
            "prompts/list": self._without("prompts", "prompts", "name"),
            "resources/list": self._without("resources", "resources", "uri"),
            "resources/templates/list": self._without("resources", "resourceTemplates", "uriTemplate"),
            "tools/call": self._call,
            "prompts/get": self._get,
            "resources/read": self._read_guarded,
            "resources/subscribe": self._read_guarded,
            "completion/complete": self._complete,
        }

    async def label(self, ctx: Context, entry: SkillEntry) -> str:
        """What the caller calls a skill."""
        return await self.served.names_for(ctx).label(entry)

    def _without(self, kind: Kind, field: str, key: str) -> Route:
        async def listed(ctx: Context, call_next: CallNext) -> HandlerResult:
            behind = self._list_none if kind == "resources" else _pass_on
            theirs = cast("Answer", await behind(ctx, call_next))
            hidden = await self.active.hidden(kind)
            if hidden is None:
                return theirs
            items = [item for item in theirs.get(field, ()) if not is_hidden(kind, item.get(key), hidden)]
            return one_callers({**theirs, field: items})  # skills bind things at any time

        return listed

    async def _call(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        name = params.get("name")
        refusal = await self._refusal(ctx, "tools", name)
        if refusal is None:
            return await call_next(ctx)
        if not refusal:
            return await as_unknown(ctx, call_next, str(name), lambda other: {**params, "name": other})
        text = {"text": not_active("tools", str(name), refusal)}
        meta = {key: value for key, value in params.items() if key == "_meta"}
        return await call_next(replace(ctx, method=_REFUSE, params={**meta, **text}))

    async def _get(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        return await self._passed(
            ctx, call_next, "prompts", params.get("name"), lambda other: {**params, "name": other}
        )

    async def _complete(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        given: object = params.get("ref")
        ref = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        kind: Kind = "prompts" if ref.get("type") == "ref/prompt" else "resources"
        field = "name" if kind == "prompts" else "uri"
        return await self._passed(
            ctx, call_next, kind, ref.get(field), lambda other: {**params, "ref": {**ref, field: other}}
        )

    async def _read_guarded(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        params = ctx.params or {}
        uri = params.get("uri")
        if isinstance(uri, str) and uri.lower().startswith(f"{self.served.scheme}:"):
            await self._check_file(ctx, uri)
        behind = self._read if ctx.method == "resources/read" else _pass_on

        async def onwards(ctx: Context) -> HandlerResult:
            return await behind(ctx, call_next)

        if isinstance(uri, str) and await self._is_listed_apart(ctx, call_next, uri):
            return await onwards(ctx)
        result = await self._passed(ctx, onwards, "resources", uri, lambda other: {**params, "uri": other})
        return result if self.active.keep_listed else one_callers(cast("Answer", result))

    async def may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool | None:
        """As ``resources/subscribe`` answers."""
        try:
            await self._check_file(ctx, uri)
        except MCPError:
            return False
        is_free = await self._is_listed_apart(ctx, call_next, uri)
        if not is_free and await self._refusal(ctx, "resources", uri) is not None:
            return False
        return await super().may_subscribe(ctx, call_next, uri)

    async def _passed(
        self, ctx: Context, call_next: CallNext, kind: Kind, key: object, renamed: Renamed
    ) -> HandlerResult:
        refusal = await self._refusal(ctx, kind, key)
        if refusal is None:
            return await call_next(ctx)
        if refusal:
            raise to_rpc_error(refused(kind, str(key), refusal))
        if kind == "resources" and str(key).lower().startswith(f"{self.served.scheme}:"):
            raise resource_unknown(no_file(str(key)), str(key))
        return await as_unknown(ctx, call_next, str(key), renamed)

    async def _refusal(self, ctx: Context, kind: Kind, key: object) -> list[str] | None:
        """``None`` for what may be used; else the skills to activate, none if the caller may see none of them."""
        if not isinstance(key, str):
            return None
        bound, paths = await self.active.binders(kind, key)
        if not paths and kind == "resources":
            paths = bound.by_template(key)
        entries = await self.active.refusal(ctx, paths)
        return None if entries is None else [await self.label(ctx, entry) for entry in entries]

    async def _is_listed_apart(self, ctx: Context, call_next: CallNext, uri: str) -> bool:
        """Whether only a template of a skill speaks for ``uri``, but the server lists it as a thing of its own."""
        bound, paths = await self.active.binders("resources", uri)
        if paths or not bound.by_template(uri):
            return False
        listed = await self.their_list(ctx, call_next, "resources/list", "resources")
        return any(item.get("uri") == uri for item in listed)

    async def _check_file(self, ctx: Context, uri: str) -> None:
        """A file of a skill is read while that skill, or one around it, is active."""
        if self.active.keep_listed or not await self.has_file(ctx, uri):
            return
        catalog, path = self.served.catalog_for(ctx), parse_uri(uri).parent.path
        live, inner = await self.active.live(ctx), await self.skill_around(catalog, path)
        while inner is not None:
            if inner.path in live:
                return
            inner = await self.skill_around(catalog, inner.path.rpartition("/")[0])
        owner = await self.skill_around(catalog, path)
        if owner is not None:
            raise to_rpc_error(refused("resources", uri, [await self.label(ctx, owner)]))


async def as_unknown(ctx: Context, call_next: CallNext, key: str, renamed: Renamed) -> HandlerResult:
    """What the server says to a name that nothing has, with ``key`` in its place."""
    nobody = f"unknown-{secrets.token_hex(16)}"
    if ctx.method.startswith("resources/"):  # of no scheme that anybody has a template for
        nobody = f"{nobody}://{secrets.token_hex(16)}"
    try:
        return _with(await call_next(replace(ctx, params=renamed(nobody))), nobody, key)
    except MCPError as error:
        said = error.error
        raise MCPError(
            code=said.code, message=said.message.replace(nobody, key), data=_with(said.data, nobody, key)
        ) from None
    except Exception as error:  # servers raise whatever they like, and its words go out
        error.args = tuple(_with(list(error.args), nobody, key))
        raise


def one_callers(result: Answer) -> Answer:
    """What depends on what is active, so that it is kept by nobody else and for no time."""
    return {**result, "ttlMs": 0, "cacheScope": "private"} if "ttlMs" in result else result


def refused(kind: Kind, key: str, skills: list[str]) -> ProtocolError:
    """The refusal of something hidden."""
    return ProtocolError(
        "skill-not-active", not_active(kind, key, skills), f"activate {skills[0]!r:.200}", rule="M3"
    )


async def _refuse(ctx: Context, params: RefusedCallParams) -> Answer:  # noqa: ARG001 - the shape of a handler
    return refused_call(params.text)


async def _pass_on(ctx: Context, call_next: CallNext) -> HandlerResult:
    return await call_next(ctx)


def _with(value: Any, nobody: str, key: str) -> Any:
    """``value`` with ``key`` wherever it says ``nobody``."""
    match value:
        case str():
            return value.replace(nobody, key)
        case list():
            return [_with(item, nobody, key) for item in cast("list[Any]", value)]
        case dict():
            return {name: _with(item, nobody, key) for name, item in cast("dict[str, Any]", value).items()}
        case _:
            return value
