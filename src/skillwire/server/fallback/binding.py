"""The ``fallback``: skills as plain tools and prompts, for clients that know nothing of skills (X1, X2).

Whoever declares the extension is spared them, unless they are for everybody: not listed, not declared, and a call
is answered as if they did not exist. A server's own tools and prompts come first and win where names are the same.
What a model gets wrong is a tool's error, which it can read and mend; a prompt's is ``-32602``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from mcp_types import CallToolRequestParams, CompleteRequestParams, GetPromptRequestParams, PaginatedRequestParams

from skillwire.catalog.cursor import bad_cursor
from skillwire.errors import FormatError, LimitError, NotFoundError, SkillwireError
from skillwire.server.binding import OWN, Answer, Binding, ask
from skillwire.server.fallback.ownnames import OwnNames
from skillwire.server.fallback.tools import SkillTools
from skillwire.server.notifications import hears_of_prompts
from skillwire.wire import fallback as wire
from skillwire.wire.errors import to_rpc_error
from skillwire.wire.extension import EXTENSION_ID, Freshness, completion_result
from skillwire.wire.fallback import refusal_text

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult

    from skillwire.server.binding import Context, Route, Served
    from skillwire.server.notifications import Notices

_TOOLS = f"{OWN}tools/list"
_CALL = f"{OWN}tools/call"
_PROMPTS = f"{OWN}prompts/list"
_GET = f"{OWN}prompts/get"
_COMPLETE = f"{OWN}completion/prompt"


class FallbackBinding(Binding):
    """Tools and prompts beside the server's own; for everybody if ``always``."""

    def __init__(self, served: Served, notices: Notices, *, always: bool) -> None:
        super().__init__(served)
        self._notices = notices
        self._always = always
        self._tools = SkillTools(served)
        self._own_tools = OwnNames(served, "tools/list", "tools")
        self._own_prompts = OwnNames(served, "prompts/list", "prompts")
        notices.tell_of_prompts()
        self._register()
        self.routes = {
            "initialize": self._greet,
            "server/discover": self._greet,
            "tools/list": self._listing("tools", _TOOLS, self._own_tools),
            "tools/call": self._call,
            "prompts/list": self._listing("prompts", _PROMPTS, self._own_prompts),
            "prompts/get": self._get,
            "completion/complete": self._completed,
            "subscriptions/listen": self._listen,
        }

    def declare(self, ctx: Context, capabilities: Answer) -> None:
        """There are tools and prompts, for those who see them."""
        if self._is_seen(ctx):
            capabilities["tools"] = {**(capabilities.get("tools") or {})}
            capabilities["prompts"] = {**(capabilities.get("prompts") or {}), "listChanged": True}

    def _register(self) -> None:
        self.handle(_TOOLS, PaginatedRequestParams, self._list_tools, cacheable=False)
        self.handle(_CALL, CallToolRequestParams, self._call_tool, cacheable=False)
        self.handle(_PROMPTS, PaginatedRequestParams, self._list_prompts, cacheable=False)
        self.handle(_GET, GetPromptRequestParams, self._get_prompt, cacheable=False)
        self.handle(_COMPLETE, CompleteRequestParams, self._complete, cacheable=False)

    def _is_seen(self, ctx: Context) -> bool:
        return self._always or not declares_extension(ctx)

    def _fresh(self, ctx: Context, result: Answer) -> Answer:
        """``result`` with how long it keeps. What differs from client to client is nobody else's to keep."""
        freshness = self.served.freshness
        kept = freshness if self._always else Freshness(freshness.ttl_ms, "private")
        return {**result, **kept.fields(ctx.protocol_version)}

    def _not_shared(self, result: HandlerResult) -> HandlerResult:
        answer = cast("Answer", result)
        return {**answer, "cacheScope": "private"} if not self._always and "cacheScope" in answer else answer

    async def _greet(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await self._declare(ctx, call_next)
        if ctx.method == "initialize" and self._is_seen(ctx):
            self._notices.add_prompts(ctx.session)
        return self._not_shared(result)

    def _listing(self, field: str, own_method: str, theirs: OwnNames) -> Route:
        """A route for a listing: the server's own, whose names are noted on the way, then ours."""
        append = self.appended(field, own_method)

        async def listed(ctx: Context, call_next: CallNext) -> HandlerResult:
            async def noted(inner: Context) -> HandlerResult:
                result = await call_next(inner)
                if inner.method == ctx.method:
                    theirs.note(result)
                return result

            if not self._is_seen(ctx):
                return self._not_shared(await call_next(ctx))
            await theirs.gather(ctx, call_next)
            return self._not_shared(await append(ctx, noted))

        return listed

    async def _call(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        name = (ctx.params or {}).get("name")
        if not isinstance(name, str) or not self._is_seen(ctx):
            return await call_next(ctx)
        if name in wire.TOOLS:
            await self._own_tools.gather(ctx, call_next)
            if not self._own_tools.leaves_out(name):
                return await ask(ctx, call_next, _CALL)
        elif not self.served.has(ctx.method):
            raise to_rpc_error(NotFoundError("tool-unknown", f"no tool is named {name!r:.100}", "list the tools"))
        return await call_next(ctx)

    async def _get(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        name = (ctx.params or {}).get("name")
        if not isinstance(name, str) or not self._is_seen(ctx):
            return await call_next(ctx)
        await self._own_prompts.gather(ctx, call_next)
        theirs = self.served.has(ctx.method) and (name in self._own_prompts or not await self._is_skill(ctx, name))
        return await (call_next(ctx) if theirs else ask(ctx, call_next, _GET))

    async def _is_skill(self, ctx: Context, name: str) -> bool:
        """Whether the name is ours to answer for: also with the refusal of one that several skills have."""
        try:
            await self._tools.find(ctx, name)
        except NotFoundError as error:
            return error.reference == "skill-ambiguous"
        except SkillwireError:
            return True
        return True

    async def _completed(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Nothing can be guessed of what a person wants done; but hosts ask, and it is no error."""
        name = _mapping((ctx.params or {}).get("ref")).get("name")
        if isinstance(name, str) and self._is_seen(ctx) and await self._is_skill(ctx, name):
            await self._own_prompts.gather(ctx, call_next)
            if name not in self._own_prompts:
                return await ask(ctx, call_next, _COMPLETE)
        return await call_next(ctx)

    async def _listen(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        with hears_of_prompts(self._is_seen(ctx)):
            return await call_next(ctx)

    async def _list_tools(self, ctx: Context, params: PaginatedRequestParams) -> Answer:
        if params.cursor is not None:  # there is one page, so no cursor can be good
            raise bad_cursor()
        names = [name for name in wire.TOOLS if not self._own_tools.leaves_out(name)]
        return self._fresh(ctx, {"tools": [wire.tool_definition(name) for name in names]})

    async def _call_tool(self, ctx: Context, params: CallToolRequestParams) -> Answer:
        try:
            return await self._tools.call(ctx, params.name, params.arguments or {})
        except SkillwireError as error:
            return wire.error_result(refusal_text(error))

    async def _list_prompts(self, ctx: Context, params: PaginatedRequestParams) -> Answer:
        names = self.served.names_for(ctx)
        page = await self.served.catalog_for(ctx).list_skills(params.cursor, self.served.page_size)
        labelled = [(await names.label(entry), entry) for entry in page.items]
        prompts = [wire.prompt_definition(*item) for item in labelled if not self._own_prompts.leaves_out(item[0])]
        more: Answer = {} if page.next_cursor is None else {"nextCursor": page.next_cursor}
        return self._fresh(ctx, {"prompts": prompts, **more})

    async def _get_prompt(self, ctx: Context, params: GetPromptRequestParams) -> Answer:
        given = params.arguments or {}
        if given.keys() - {wire.REQUEST}:
            raise FormatError("arguments-invalid", f"the prompt takes {wire.REQUEST!r} only", "leave out the rest")
        entry = await self._tools.find(ctx, params.name)
        try:
            blocks = await self._tools.loaded(ctx, entry)
        except LimitError as error:  # asking again does not help, so it is no failure of ours
            raise FormatError(error.reference, error.message, error.hint) from error
        return wire.prompt_result(entry, blocks, given.get(wire.REQUEST, ""))

    async def _complete(self, ctx: Context, params: CompleteRequestParams) -> Answer:  # noqa: ARG002
        return completion_result([])


def declares_extension(ctx: Context) -> bool:
    """Whether the client says that it knows skills: in its first words, or in every request."""
    if ctx.method == "initialize":
        return EXTENSION_ID in _mapping(_mapping((ctx.params or {}).get("capabilities")).get("extensions"))
    declared = ctx.session.client_capabilities
    return declared is not None and EXTENSION_ID in (declared.extensions or {})


def _mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is one; before the handshake nothing has been checked."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
