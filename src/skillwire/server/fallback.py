"""The ``fallback``: skills as plain tools and prompts, for clients that do not support skills (X1, X2).

For a client that declares the extension they do not exist, unless they are offered to all clients: they are
neither listed nor declared, and a call fails as for an unknown tool. The server's own tools and prompts come first
and take precedence over ours of the same name. An invalid call of a tool returns an error result that the model
can read; an invalid use of a prompt is ``-32602``.

A path never leaves its skill, in any spelling (U6, U7). The bytes are the catalog's, so they are the same as those
of the extension.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from mcp_types import CallToolRequestParams, CompleteRequestParams, GetPromptRequestParams, PaginatedRequestParams

from skillwire.catalog.cursor import bad_cursor
from skillwire.errors import FormatError, LimitError, NotFoundError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS, MIB
from skillwire.server.dialect import server_pages
from skillwire.skill.hidden import encode_hidden, text_for_model
from skillwire.skill.uri import (
    SKILL_MD,
    SkillUri,
    is_within,
    parse_uri,
    path_in_skill,
    resolve_reference,
    segment_problem,
)
from skillwire.wire import fallback as wire
from skillwire.wire.errors import to_rpc_error
from skillwire.wire.extension import EXTENSION_ID, Freshness, completion_result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.context import CallNext, HandlerResult

    from skillwire.catalog.contract import SkillFile
    from skillwire.server.dialect import Context, Handler, MethodResult, ServedSkills
    from skillwire.skill import SkillEntry

    Block: TypeAlias = dict[str, Any]

_MAX_LISTED = 100  # a model reads every line
_MAX_FILE = MIB
_SIMILAR_FILES = 3
_MAX_COMPARED = 512  # files of a skill that are compared with an unknown path

log = logging.getLogger("skillwire.server")


class FallbackItems:
    """Tools and prompts beside the server's own; for all clients if ``always``."""

    def __init__(self, served: ServedSkills, *, always: bool) -> None:
        self._served = served
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
        self.complete_nothing = served.answering(CompleteRequestParams, _no_completions, cacheable=False)
        self.handlers: dict[str, Handler] = {
            "tools/list": self.unshared(self._listing(served.appended("tools", tools), self._server_tools)),
            "tools/call": self._call,
            "prompts/list": self.unshared(
                self._listing(served.appended("prompts", prompts), self._server_prompts)
            ),
            "prompts/get": self._get,
        }

    def is_offered(self, ctx: Context) -> bool:
        """Whether the client sees the tools and prompts."""
        return self._always or not declares_extension(ctx)

    def declare(self, ctx: Context, capabilities: MethodResult) -> None:
        """Declare tools and prompts for the clients that see them."""
        if self.is_offered(ctx):
            capabilities["tools"] = {**(capabilities.get("tools") or {})}
            capabilities["prompts"] = {**(capabilities.get("prompts") or {}), "listChanged": True}

    def unshared(self, handler: Handler) -> Handler:
        """``handler`` for results that differ from client to client, so that no cache shares them."""

        async def handle(ctx: Context, call_next: CallNext) -> HandlerResult:
            result = cast("MethodResult", await handler(ctx, call_next))
            if not self._always and "cacheScope" in result:
                return {**result, "cacheScope": "private"}
            return result

        return handle

    async def has_prompt(self, ctx: Context, call_next: CallNext, name: object) -> bool:
        """Whether ``name`` is one of our prompts. Its argument is free text, but hosts ask for completions."""
        if not isinstance(name, str) or not self.is_offered(ctx) or not await self._is_skill(name):
            return False
        await self._server_prompts.read(ctx, call_next)
        return name not in self._server_prompts

    def _listing(self, appended: Handler, names: _ServerNames) -> Handler:
        """A handler for a listing: the server's own, whose names are added to ``names``, then ours."""

        async def handle(ctx: Context, call_next: CallNext) -> HandlerResult:
            async def noted(inner: Context) -> HandlerResult:
                result = await call_next(inner)
                names.add(cast("MethodResult", result))
                return result

            if not self.is_offered(ctx):
                return await call_next(ctx)
            await names.read(ctx, call_next)
            return await appended(ctx, noted)

        return handle

    async def _call(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        name = (ctx.params or {}).get("name")
        if not isinstance(name, str) or not self.is_offered(ctx):
            return await call_next(ctx)
        if name in wire.TOOLS:
            await self._server_tools.read(ctx, call_next)
            if not self._server_tools.omits(name):
                return await self._call_own(ctx, call_next)
        elif not self._served.has(ctx.method):
            raise to_rpc_error(NotFoundError("tool-unknown", f"no tool is named {name!r:.100}", "list the tools"))
        return await call_next(ctx)

    async def _get(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        name = (ctx.params or {}).get("name")
        if not isinstance(name, str) or not self.is_offered(ctx):
            return await call_next(ctx)
        await self._server_prompts.read(ctx, call_next)
        theirs = self._served.has(ctx.method) and (name in self._server_prompts or not await self._is_skill(name))
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

    async def _list_tools(self, params: PaginatedRequestParams) -> MethodResult:
        if params.cursor is not None:  # there is only one page, so every cursor is invalid
            raise bad_cursor()
        names = [name for name in wire.TOOLS if not self._server_tools.omits(name)]
        return {"tools": [wire.tool_definition(name) for name in names]}

    async def _call_tool(self, params: CallToolRequestParams) -> MethodResult:
        try:
            return await self._tools.call(params.name, params.arguments or {})
        except SkillwireError as error:
            return wire.error_result(wire.refusal_text(error))

    async def _list_prompts(self, params: PaginatedRequestParams) -> MethodResult:
        page = await self._served.visible().list_skills(params.cursor, self._served.page_size)
        labelled = list(zip(await self._served.labels(page.items), page.items, strict=True))
        prompts = [wire.prompt_definition(*item) for item in labelled if not self._server_prompts.omits(item[0])]
        more: MethodResult = {} if page.next_cursor is None else {"nextCursor": page.next_cursor}
        return {"prompts": prompts, **more}

    async def _get_prompt(self, params: GetPromptRequestParams) -> MethodResult:
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


async def _no_completions(params: CompleteRequestParams) -> MethodResult:  # noqa: ARG001 - the form of an answer
    return completion_result([])


class _ServerNames:
    """The names of a server's own tools or prompts. Ours of the same name is omitted.

    The server's listing is read once, when a name first matters, and every listing that passes through is added.
    So a call needs no listing.
    """

    def __init__(self, served: ServedSkills, method: str, field: str) -> None:
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
            async for page in server_pages(ctx, call_next, self._method):
                self.add(page)
        except Exception:  # a client that requests the listing gets this error
            log.debug("the server's own %s are unknown", self._field, exc_info=True)
        else:
            self._is_complete = True

    def add(self, page: MethodResult) -> None:
        """Add the names of a page of the server."""
        self._names |= {item["name"] for item in page.get(self._field) or ()}


def declares_extension(ctx: Context) -> bool:
    """Whether the client declares that it supports skills: in the handshake, or in every request."""
    if ctx.method == "initialize":
        return EXTENSION_ID in _mapping(_mapping((ctx.params or {}).get("capabilities")).get("extensions"))
    declared = ctx.session.client_capabilities
    return declared is not None and EXTENSION_ID in (declared.extensions or {})


def _mapping(value: object) -> Mapping[str, Any]:
    """``value`` if it is a mapping. Parameters of the handshake are not validated yet."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


class SkillTools:
    """The four tools over the served skills."""

    def __init__(self, served: ServedSkills) -> None:
        self._served = served
        self._server = served.server.name

    async def call(self, tool: str, given: Mapping[str, Any]) -> MethodResult:
        """The result of one tool. Raises our errors."""
        arguments = wire.read_arguments(tool, given)
        match tool:
            case wire.LIST:
                return await self._list(arguments.get("cursor") or None)
            case wire.SEARCH:
                return await self._search(arguments["query"], int(arguments.get("limit", wire.DEFAULT_HITS)))
            case wire.LOAD:
                return wire.tool_result(await self.load(await self.find(arguments["skill"])))
            case _:
                entry = await self.find(arguments["skill"])
                return wire.tool_result(await self._read(entry, arguments["path"]))

    async def find(self, skill: str) -> SkillEntry:
        """The skill with this name, path or URI. A URI may omit ``SKILL.md``."""
        named = skill.strip()
        if "://" in named and not named.endswith(f"/{SKILL_MD}"):
            named = f"{named.rstrip('/')}/{SKILL_MD}"
        try:
            return await self._served.names().find(named)
        except (NotFoundError, FormatError) as error:
            raise NotFoundError(error.reference, error.message, wire.find_hint(error.hint)) from error

    async def load(self, entry: SkillEntry) -> list[Block]:
        """X2: the source of the skill and its other files, then its ``SKILL.md``."""
        file = await self._file(entry, entry.uri)
        label = await self._served.label(entry)
        return [wire.text_block(wire.loaded_text(self._server, label, entry)), wire.file_block(file)]

    async def _list(self, cursor: str | None) -> MethodResult:
        limit = min(self._served.page_size, _MAX_LISTED)
        page = await self._served.visible().list_skills(cursor, limit)
        labels = await self._served.labels(page.items)
        lines = [wire.skill_line(label, entry) for label, entry in zip(labels, page.items, strict=True)]
        text = wire.listed_text(self._server, lines, page.next_cursor)
        return wire.skills_result(text, _as_data(labels, page.items), wire.LOAD_NEXT, page.next_cursor)

    async def _search(self, query: str, limit: int) -> MethodResult:
        found = await self._served.search(query, limit)
        entries = [entry for _, entry in found]
        labels = await self._served.labels(entries)
        lines = [wire.skill_line(label, entry) for label, entry in zip(labels, entries, strict=True)]
        text = wire.found_text(self._server, query, lines)
        next_step = wire.LOAD_NEXT if lines else wire.SEARCH_AGAIN
        return wire.skills_result(text, _as_data(labels, entries), next_step, None)

    async def _read(self, entry: SkillEntry, path: str) -> list[Block]:
        label = await self._served.label(entry)
        for place in _meanings(entry, path, label):
            inside = path_in_skill(entry.uri, str(place))
            with suppress(NotFoundError):
                file = await self._file(entry, str(place))
                return [wire.text_block(wire.file_text(self._server, label, inside, file)), wire.file_block(file)]
            with suppress(NotFoundError):
                page = await self._served.visible().read_directory(str(place), None, DEFAULT_LIMITS.max_page_size)
                is_more = page.next_cursor is not None
                text = wire.folder_text(self._server, label, inside, page.items, more=is_more)
                return [wire.text_block(text)]
        known = [file.path for file in entry.files[:_MAX_COMPARED]]
        similar = get_close_matches(path[:200], known, _SIMILAR_FILES)
        raise NotFoundError(
            "file-unknown", f"the skill {label!r:.100} has no file {path!r:.100}", wire.file_hint(label, similar)
        )

    async def _file(self, entry: SkillEntry, uri: str) -> SkillFile:
        known = entry.resource(uri)
        if known is not None and known.size is not None:
            _check_size(known.size, uri)
        file = await self._served.visible().read_file(uri)
        _check_size(len(file.data), uri)
        return file


def _as_data(labels: Sequence[str], entries: Sequence[SkillEntry]) -> list[dict[str, Any]]:
    return [
        {"name": label, "description": text_for_model(entry.description), "uri": encode_hidden(entry.uri)}
        for label, entry in zip(labels, entries, strict=True)
    ]


def _meanings(entry: SkillEntry, path: str, label: str) -> list[SkillUri]:
    """The URIs that ``path`` may mean in the skill: as a path, or as a link in its ``SKILL.md``."""
    skill_md = parse_uri(entry.uri)
    root = skill_md.parent
    places: list[SkillUri | None] = []
    if "://" in path:
        places.append(parse_uri(path))
    else:
        segments = tuple(segment for segment in path.split("/") if segment not in ("", "."))
        if not path.startswith("/") and not any(map(segment_problem, segments)):
            places.append(SkillUri(root.scheme, root.segments + segments))
        with suppress(FormatError):
            places.append(resolve_reference(root, skill_md, path))
    inside = [place for place in places if place is not None and (place == root or is_within(root, place))]
    if not inside:
        raise FormatError(
            "path-outside", f"the path {path!r:.100} leaves the skill {label!r:.100}", wire.file_hint(label, ())
        )
    return list(dict.fromkeys(inside))


def _check_size(size: int, uri: str) -> None:
    if size > _MAX_FILE:
        raise LimitError(
            "file-too-large",
            f"{uri} has {size:,} bytes, more than a tool can return",
            "read it as a resource, with resources/read; if that is not possible, continue without it",
        )
