"""The ``fallback``: skills as plain tools and prompts, for clients that do not support skills (X1, X2).

For a client that declares the extension they do not exist, unless they are enabled for all clients: they are
neither listed nor declared, and a call fails as for an unknown tool. The server's own tools and prompts come first
and take precedence over ours of the same name. An invalid call of a tool returns an error result that the model
can read; an invalid use of a prompt is ``-32602``.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from mcp_types import CallToolRequestParams, CompleteRequestParams, GetPromptRequestParams, PaginatedRequestParams

from skillwire.catalog.cursor import bad_cursor
from skillwire.errors import FormatError, LimitError, NotFoundError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.dialect import Answer, DialectHandlers, meta_only
from skillwire.server.notifications import with_prompt_events
from skillwire.server.skill_tools import SkillTools
from skillwire.wire import fallback as wire
from skillwire.wire.errors import to_rpc_error
from skillwire.wire.extension import EXTENSION_ID, Freshness, completion_result

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult

    from skillwire.server.dialect import Context, Handler, Served
    from skillwire.server.notifications import Notifier

log = logging.getLogger("skillwire.server")


class FallbackDialect(DialectHandlers):
    """Tools and prompts beside the server's own; for all clients if ``always``."""

    def __init__(self, served: Served, notifier: Notifier, *, always: bool) -> None:
        super().__init__(served)
        self._notifier = notifier
        self._always = always
        self._tools = SkillTools(served)
        self._server_tools = _ServerNames(served, "tools/list", "tools")
        self._server_prompts = _ServerNames(served, "prompts/list", "prompts")
        # A listing that differs from client to client must not be shared.
        freshness = served.freshness if always else Freshness(served.freshness.ttl_ms, "private")
        tools = served.answering(PaginatedRequestParams, self._list_tools, freshness=freshness)
        prompts = served.answering(PaginatedRequestParams, self._list_prompts, freshness=freshness)
        self._call_own = served.answering(CallToolRequestParams, self._call_tool, cacheable=False)
        self._get_own = served.answering(GetPromptRequestParams, self._get_prompt, cacheable=False)
        self._complete_own = served.answering(CompleteRequestParams, _complete_nothing, cacheable=False)
        self.handlers = {
            "initialize": self._declare_and_note,
            "server/discover": self._declare_and_note,
            "tools/list": self._listing(served.appended("tools", tools), self._server_tools),
            "tools/call": self._call,
            "prompts/list": self._listing(served.appended("prompts", prompts), self._server_prompts),
            "prompts/get": self._get,
            "completion/complete": self._complete,
            "subscriptions/listen": self._listen,
        }

    def declare(self, ctx: Context, capabilities: Answer) -> None:
        """Declare tools and prompts for the clients that see them."""
        if self._is_seen(ctx):
            capabilities["tools"] = {**(capabilities.get("tools") or {})}
            capabilities["prompts"] = {**(capabilities.get("prompts") or {}), "listChanged": True}

    def _is_seen(self, ctx: Context) -> bool:
        return self._always or not declares_extension(ctx)

    def _not_shared(self, result: HandlerResult) -> HandlerResult:
        answer = cast("Answer", result)
        return {**answer, "cacheScope": "private"} if not self._always and "cacheScope" in answer else answer

    async def _declare_and_note(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        result = await self._declare(ctx, call_next)
        if ctx.method == "initialize" and self._is_seen(ctx):
            self._notifier.add_prompts(ctx.session)
        return self._not_shared(result)

    def _listing(self, appended: Handler, names: _ServerNames) -> Handler:
        """A handler for a listing: the server's own, whose names are added to ``names``, then ours."""

        async def handle(ctx: Context, call_next: CallNext) -> HandlerResult:
            async def noted(inner: Context) -> HandlerResult:
                result = await call_next(inner)
                names.add(result)
                return result

            if not self._is_seen(ctx):
                return self._not_shared(await call_next(ctx))
            await names.read(ctx, call_next)
            return self._not_shared(await appended(ctx, noted))

        return handle

    async def _call(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        name = (ctx.params or {}).get("name")
        if not isinstance(name, str) or not self._is_seen(ctx):
            return await call_next(ctx)
        if name in wire.TOOLS:
            await self._server_tools.read(ctx, call_next)
            if not self._server_tools.omits(name):
                return await self._call_own(ctx, call_next)
        elif not self.served.has(ctx.method):
            raise to_rpc_error(NotFoundError("tool-unknown", f"no tool is named {name!r:.100}", "list the tools"))
        return await call_next(ctx)

    async def _get(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        name = (ctx.params or {}).get("name")
        if not isinstance(name, str) or not self._is_seen(ctx):
            return await call_next(ctx)
        await self._server_prompts.read(ctx, call_next)
        theirs = self.served.has(ctx.method) and (name in self._server_prompts or not await self._is_skill(name))
        return await (call_next(ctx) if theirs else self._get_own(ctx, call_next))

    async def _is_skill(self, name: str) -> bool:
        """Whether the name belongs to a skill, or to several, which is an error of ours."""
        try:
            await self._tools.find(name)
        except NotFoundError as error:
            return error.reference == "skill-ambiguous"
        except SkillwireError:
            return True
        return True

    async def _complete(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """The request in a prompt cannot be completed; but hosts try to, so it is not an error."""
        name = _mapping((ctx.params or {}).get("ref")).get("name")
        if isinstance(name, str) and self._is_seen(ctx) and await self._is_skill(name):
            await self._server_prompts.read(ctx, call_next)
            if name not in self._server_prompts:
                return await self._complete_own(ctx, call_next)
        return await call_next(ctx)

    async def _listen(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        with with_prompt_events(self._is_seen(ctx)):
            return await call_next(ctx)

    async def _list_tools(self, params: PaginatedRequestParams) -> Answer:
        if params.cursor is not None:  # there is only one page, so every cursor is invalid
            raise bad_cursor()
        names = [name for name in wire.TOOLS if not self._server_tools.omits(name)]
        return {"tools": [wire.tool_definition(name) for name in names]}

    async def _call_tool(self, params: CallToolRequestParams) -> Answer:
        try:
            return await self._tools.call(params.name, params.arguments or {})
        except SkillwireError as error:
            return wire.error_result(wire.refusal_text(error))

    async def _list_prompts(self, params: PaginatedRequestParams) -> Answer:
        page = await self.served.visible().list_skills(params.cursor, self.served.page_size)
        labelled = [(await self.served.label(entry), entry) for entry in page.items]
        prompts = [wire.prompt_definition(*item) for item in labelled if not self._server_prompts.omits(item[0])]
        more: Answer = {} if page.next_cursor is None else {"nextCursor": page.next_cursor}
        return {"prompts": prompts, **more}

    async def _get_prompt(self, params: GetPromptRequestParams) -> Answer:
        given = params.arguments or {}
        if given.keys() - {wire.REQUEST}:
            raise FormatError(
                "arguments-invalid", f"the prompt takes only {wire.REQUEST!r}", "omit the other arguments"
            )
        entry = await self._tools.find(params.name)
        try:
            blocks = await self._tools.load(entry)
        except LimitError as error:  # a retry does not help, so it is an error of the caller
            raise FormatError(error.reference, error.message, error.hint) from error
        return wire.prompt_result(entry, blocks, given.get(wire.REQUEST, ""))


async def _complete_nothing(params: CompleteRequestParams) -> Answer:  # noqa: ARG001 - the shape of an answer
    return completion_result([])


class _ServerNames:
    """The names of a server's own tools or prompts. Ours of the same name is omitted.

    The server's listing is read once, when a name first matters, and every listing that passes through is added.
    So a call needs no listing.
    """

    def __init__(self, served: Served, method: str, field: str) -> None:
        self._served = served
        self._method = method
        self._field = field
        self._names: set[str] = set()
        self._omitted: set[str] = set()
        self._is_complete = False

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def omits(self, name: str) -> bool:
        """Whether ours of this name is omitted. It is logged the first time."""
        if name not in self._names:
            return False
        if name not in self._omitted:
            self._omitted.add(name)
            log.warning(
                "one of the server's own %s is named %r, so the one for skills is omitted; rename one of them,"
                ' or omit all of ours with Skills(…, dialects=Dialects(fallback="never"))',
                self._field,
                name,
            )
        return True

    async def read(self, ctx: Context, call_next: CallNext) -> None:
        """Read the server's listing, unless that was done before."""
        if self._is_complete or not self._served.has(self._method):
            return
        try:
            params = meta_only(ctx)
            for _ in range(DEFAULT_LIMITS.max_pages):
                cursor = self.add(await call_next(replace(ctx, method=self._method, params=params)))
                if not cursor or cursor == params.get("cursor"):
                    break
                params = {**params, "cursor": cursor}
        except Exception:  # a client that requests the listing gets this error
            log.debug("the server's own %s are unknown", self._field, exc_info=True)
        else:
            self._is_complete = True

    def add(self, listing: HandlerResult) -> str | None:
        """Add the names of a page of the server. Returns the cursor of the next page."""
        page = cast("Answer", listing)
        self._names |= {item["name"] for item in page.get(self._field) or ()}
        return page.get("nextCursor")


def declares_extension(ctx: Context) -> bool:
    """Whether the client declares that it supports skills: in the handshake, or in every request."""
    if ctx.method == "initialize":
        return EXTENSION_ID in _mapping(_mapping((ctx.params or {}).get("capabilities")).get("extensions"))
    declared = ctx.session.client_capabilities
    return declared is not None and EXTENSION_ID in (declared.extensions or {})


def _mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is a mapping. Parameters of the handshake are not validated yet."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
