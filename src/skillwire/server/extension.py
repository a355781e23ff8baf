"""The ``extension`` dialect on a server (K, L, G, R, D, T). The index and the fallback answer on its endpoint too.

For methods that the server may answer as well, the skills come first: a ``resources/read`` of a skill's file, a
completion of the skills' template, and a subscription to a skill's file are answered here. Listings are the
server's own, followed by the skills. No response waits for a scan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, CompleteRequestParams, PaginatedRequestParams

from skillwire.catalog.contract import DirectoryChild, no_file
from skillwire.catalog.cursor import bad_cursor, page_of
from skillwire.errors import NotFoundError, ProtocolError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.dialect import Dialect, MethodResult, SkillFiles, declaring, is_modern
from skillwire.server.index import SkillIndex
from skillwire.skill.entry import DEFAULT_META
from skillwire.skill.uri import SkillUri, format_uri, parse_uri
from skillwire.wire import extension
from skillwire.wire.errors import rpc_errors, to_rpc_error
from skillwire.wire.index import index_resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import CallNext, HandlerResult

    from skillwire.catalog.contract import Catalog, Page, SkillTemplate
    from skillwire.server.dialect import Context, Handler, ServedSkills
    from skillwire.server.fallback import FallbackItems
    from skillwire.server.notifications import Notifier
    from skillwire.skill import SkillEntry


class Extension:
    """The handlers of SEP-2640, with the index, and with ``fallback`` if clients may see it."""

    def __init__(self, served: ServedSkills, notifier: Notifier, fallback: FallbackItems | None) -> None:
        self._served = served
        self._notifier = notifier
        self._fallback = fallback
        self._index = SkillIndex(served)
        self._files = SkillFiles(served, self._index)
        notifier.index_uris = self._index.uris
        self._complete_own = served.answering(CompleteRequestParams, self._complete, cacheable=False)
        self._append_skills = served.appended("resources", self._listing(extension.resources_result))

    def dialect(self) -> Dialect:
        """The table of handlers."""
        answering = self._served.answering
        templates = answering(PaginatedRequestParams, self._list_templates)
        handlers = {
            **declaring(self._declare),
            extension.SKILLS_LIST: self._listing(extension.list_result),
            extension.SKILLS_GET: answering(extension.GetSkillParams, self._get_skill),
            extension.DIRECTORY_READ: answering(extension.ReadDirectoryParams, self._read_directory),
            "resources/read": self._files.read,
            "resources/list": self._list_resources_and_index,
            "resources/templates/list": self._served.appended("resourceTemplates", templates),
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._subscribe,
            "completion/complete": self._complete_any,
        }
        if self._fallback is None:
            return Dialect(handlers, self._may_subscribe)
        discover = self._fallback.unshared(handlers["server/discover"])
        return Dialect(
            {**handlers, "server/discover": discover, **self._fallback.handlers},
            self._may_subscribe,
            self._fallback.is_offered,
        )

    def _listing(self, result: Callable[[Page[SkillEntry]], MethodResult]) -> Handler:
        """A handler for a page of the skills that the caller may see."""

        async def answer(params: PaginatedRequestParams) -> MethodResult:
            return result(await self._served.visible().list_skills(params.cursor, self._served.page_size))

        return self._served.answering(PaginatedRequestParams, answer)

    def _declare(self, ctx: Context, capabilities: MethodResult) -> None:
        """K1, in both eras. The SDK omits all extensions in the handshake era, so they are added here."""
        extensions = {**self._served.server.extensions, extension.EXTENSION_ID: {"directoryRead": True}}
        capabilities["extensions"] = {**(capabilities.get("extensions") or {}), **extensions}
        resources: MethodResult = capabilities.get("resources") or {}
        capabilities["resources"] = {**resources, "subscribe": True, "listChanged": True}
        capabilities.setdefault("completions", {})
        if self._fallback is not None:
            self._fallback.declare(ctx, capabilities)

    async def _may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool:
        """Every caller may subscribe to the index, and is notified when something changes that it may see."""
        return self._index.is_index(uri) or await self._files.may_subscribe(ctx, call_next, uri)

    async def _get_skill(self, params: extension.GetSkillParams) -> MethodResult:
        if not params.uri:
            raise ProtocolError(
                "uri-missing",
                "'uri' is missing: in this dialect the URI of its SKILL.md identifies a skill",
                "clients that use names connect to /mcp/sep-2076, or with --dialect sep-2076",
                rule="G1",
            )
        return extension.get_result(await self._served.visible().get_skill(params.uri))

    async def _read_directory(self, params: extension.ReadDirectoryParams) -> MethodResult:
        catalog = self._served.visible()
        try:
            page = await catalog.read_directory(params.uri, params.cursor, self._served.page_size)
        except NotFoundError:
            page = await self._folder_above_skills(catalog, params)
            if page is None:
                raise
        entry = await catalog.skill_around(parse_uri(params.uri))
        return extension.directory_result(page, entry.meta if entry else DEFAULT_META)

    async def _folder_above_skills(
        self, catalog: Catalog, params: extension.ReadDirectoryParams
    ) -> Page[DirectoryChild] | None:
        """D1: a folder above listed skills contains the folders that lead to them. ``None`` if there are none."""
        uri, scheme = parse_uri(params.uri), self._served.scheme
        inside = f"{uri.path}/"
        below = await catalog.suggest(inside, DEFAULT_LIMITS.max_entries) if uri.scheme == scheme else ()
        names = sorted({path[len(inside) :].partition("/")[0] for path in below})
        if not names:
            return None

        def child(name: str) -> DirectoryChild:
            return DirectoryChild(format_uri(f"{inside}{name}", scheme), name, is_directory=True)

        return page_of(f"directory {uri.path}", names, child, params.cursor, self._served.page_size)

    async def _list_resources_and_index(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        page = cast("MethodResult", await self._append_skills(ctx, call_next))
        if page.get("nextCursor"):
            return page
        return {**page, "resources": [*page.get("resources", ()), index_resource(self._index.uri)]}

    async def _list_templates(self, params: PaginatedRequestParams) -> MethodResult:
        if params.cursor is not None:  # there is only one page, so every cursor is invalid
            raise bad_cursor()
        return extension.templates_result(self._served.scheme, self._served.visible().templates())

    async def _complete_any(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        reference = (ctx.params or {}).get("ref")
        named = cast("dict[str, Any]", reference) if isinstance(reference, dict) else {}
        if self._fallback is not None and await self._fallback.has_prompt(ctx, call_next, named.get("name")):
            return await self._fallback.complete_nothing(ctx, call_next)
        uri = named.get("uri")
        any_file = extension.SKILL_TEMPLATE.format(scheme=self._served.scheme)
        if uri == any_file or self._template(uri) is not None:
            return await self._complete_own(ctx, call_next)
        try:
            return await call_next(ctx)
        except MCPError as error:
            if error.error.code != METHOD_NOT_FOUND:
                raise
            refusal = ProtocolError(  # the method is not unknown: this dialect declares completions
                "reference-unknown",
                "nothing can be completed at this reference",
                "resources/templates/list and prompts/list return the valid references",
                rule="T1",
            )
            raise to_rpc_error(refusal) from error

    async def _complete(self, params: CompleteRequestParams) -> MethodResult:
        """T1: values of a template; or skills until the path names one, then the files of that skill."""
        typed, catalog = params.argument.value, self._served.visible()
        if len(typed) > DEFAULT_LIMITS.max_uri_length or typed.count("/") > DEFAULT_LIMITS.max_uri_segments:
            return extension.completion_result([])
        template = self._template(getattr(params.ref, "uri", None))
        if template is not None:
            return extension.completion_result(await template.complete(params.argument.name, typed))
        entry = await catalog.skill_around(SkillUri(self._served.scheme, tuple(typed.split("/")[:-1])))
        if entry is not None:
            files = sorted(parse_uri(file.uri).path for file in entry.files)
            return extension.completion_result([file for file in files if file.startswith(typed)])
        found = await catalog.suggest(typed, 101)
        return extension.completion_result([f"{skill}/SKILL.md" for skill in found])

    def _template(self, uri: object) -> SkillTemplate | None:
        """The template at ``uri``, if the caller may see it."""
        templates = self._served.visible().templates()
        return next((template for template in templates if template.uri(self._served.scheme) == uri), None)

    async def _subscribe(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Subscriptions of the handshake era. The stateless era has ``subscriptions/listen``."""
        uri = (ctx.params or {}).get("uri")
        if is_modern(ctx) or not isinstance(uri, str):
            return await call_next(ctx)
        if self._index.is_index(uri):
            uri = str(parse_uri(uri))  # notifications have this spelling
        elif not await self._files.has(uri):
            if not self._served.has(ctx.method):
                raise to_rpc_error(no_file(uri))
            return await call_next(ctx)
        with rpc_errors():
            if ctx.method == "resources/subscribe":
                self._notifier.subscribe(ctx.session, uri)
            else:
                self._notifier.unsubscribe(ctx.session, uri)
        return {}
