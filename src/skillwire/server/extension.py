"""The ``extension`` dialect: ``skills/*``, directories, and skills among a server's resources (K, L, G, R, D, T).

Of what a server may answer too, this looks first: a ``resources/read`` of a skill's file, a completion of the
skills' template, and a subscription to a skill's file are ours; listings are the server's own, followed by ours.
No answer waits for a scan.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, CompleteRequestParams, PaginatedRequestParams, ReadResourceRequestParams

from skillwire.catalog.cursor import bad_cursor, page_of
from skillwire.catalog.snapshot import child_of, no_file
from skillwire.errors import FormatError, NotFoundError, ProtocolError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.binding import OWN, Answer, Binding, ask, is_modern
from skillwire.skill.entry import DEFAULT_META
from skillwire.skill.uri import format_uri, parse_uri, skill_md_uri
from skillwire.wire import extension
from skillwire.wire.errors import resource_unknown, to_rpc_error
from skillwire.wire.templates import matches_template

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult

    from skillwire.catalog.contract import Catalog, DirectoryChild, Page, SkillTemplate
    from skillwire.server.binding import Context, Handler, Served
    from skillwire.server.notifications import Notices
    from skillwire.skill import SkillEntry

_LIST = f"{OWN}resources/list"
_READ = f"{OWN}resources/read"
_TEMPLATES = f"{OWN}resources/templates/list"
_COMPLETE = f"{OWN}completion/complete"
_NONE = {"resources/list": "resources", "resources/templates/list": "resourceTemplates"}


class ReadingFiles(Binding):
    """Files of skills by ``resources/read``: on every endpoint, whatever ``skills/*`` means there (R1, P4)."""

    def __init__(self, served: Served) -> None:
        super().__init__(served)
        self.routes |= {"resources/read": self._read, **dict.fromkeys(_NONE, self._list_none)}
        if not served.has(_READ):
            self.handle(_READ, ReadResourceRequestParams, self._read_resource)
            for method, field in _NONE.items():
                self.handle(f"{OWN}none/{method}", PaginatedRequestParams, _nothing(field))

    def declare(self, ctx: Context, capabilities: Answer) -> None:  # noqa: ARG002 - the same for everybody
        """There are resources, whatever else there is."""
        capabilities["resources"] = {**(capabilities.get("resources") or {})}

    async def has_file(self, ctx: Context, uri: str) -> bool:
        """Whether a ``resources/read`` of ``uri`` is ours to answer: some skill lists the file."""
        return await lists_file(self.served.catalog_for(ctx), uri, self.served.scheme)

    async def may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool | None:
        """To files of skills that the caller may see, and to what the server itself has."""
        if await self.has_file(ctx, uri):
            return True
        return not self._is_hidden(uri) and await self._is_theirs(ctx, call_next, uri)

    def _is_hidden(self, uri: str) -> bool:
        try:
            return uri.lower().startswith(f"{self.served.scheme}:") and not self.served.sees()(uri)
        except FormatError:  # no URI of a skill
            return False

    async def _is_theirs(self, ctx: Context, call_next: CallNext, uri: str) -> bool:
        """Whether the server has subscriptions of its own, and so knows best, or lists ``uri`` or its template."""
        if self.served.has("resources/subscribe"):
            return True
        for method, field in _NONE.items():
            for item in await self.their_list(ctx, call_next, method, field):
                if item.get("uri") == uri or matches_template(str(item.get("uriTemplate") or ""), uri):
                    return True
        return False

    async def skill_around(self, catalog: Catalog, path: str) -> SkillEntry | None:
        """The innermost skill at or around ``path``, as it is known."""
        return await skill_around(catalog, path, self.served.scheme)

    async def _read(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        uri = (ctx.params or {}).get("uri")
        if not isinstance(uri, str):
            return await call_next(ctx)
        ours = uri.lower().startswith(f"{self.served.scheme}:")
        if not self.served.has(ctx.method) or (ours and await self.has_file(ctx, uri)):
            return await ask(ctx, call_next, _READ)
        return await self._or_none(ctx, call_next, ours=ours) or await ask(ctx, call_next, _READ)

    async def _list_none(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """P4: files are in no listing. A server with no resources of its own has an empty one, not none."""
        if self.served.has(ctx.method):
            return await call_next(ctx)
        cursor = {key: value for key, value in (ctx.params or {}).items() if key == "cursor"}
        return await ask(ctx, call_next, f"{OWN}none/{ctx.method}", **cursor)

    async def _or_none(self, ctx: Context, call_next: CallNext, *, ours: bool) -> HandlerResult:
        """The server's own answer; if it has none for a URI of our scheme, our refusal says more."""
        try:
            return await call_next(ctx)
        except MCPError:
            if ours:
                return None
            raise

    async def _read_resource(self, ctx: Context, params: ReadResourceRequestParams) -> Answer:
        uri = str(params.uri)
        try:
            return extension.read_result(await self.served.catalog_for(ctx).read_file(uri))
        except NotFoundError as error:
            raise resource_unknown(error, uri) from error


class ExtensionBinding(ReadingFiles):
    """SEP-2640 as it is now."""

    def __init__(self, served: Served, notices: Notices) -> None:
        super().__init__(served)
        self._notices = notices
        self.handle(extension.SKILLS_LIST, extension.ListSkillsParams, self._list_skills)
        self.handle(extension.SKILLS_GET, extension.GetSkillParams, self._get_skill)
        self.handle(extension.DIRECTORY_READ, extension.ReadDirectoryParams, self._read_directory)
        self.handle(_LIST, PaginatedRequestParams, self._list_resources)
        self.handle(_TEMPLATES, PaginatedRequestParams, self._list_templates)
        self.handle(_COMPLETE, CompleteRequestParams, self._complete, cacheable=False)
        self.routes |= {
            "resources/list": self.appended("resources", _LIST),
            "resources/templates/list": self.appended("resourceTemplates", _TEMPLATES),
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._subscribe,
            "completion/complete": self._completed,
        }

    def declare(self, ctx: Context, capabilities: Answer) -> None:  # noqa: ARG002
        """K1, in both eras: the SDK drops extensions from what it says in the handshake era."""
        extensions = self.served.server.extensions
        capabilities["extensions"] = {**(capabilities.get("extensions") or {}), **extensions}
        resources: Answer = capabilities.get("resources") or {}
        capabilities["resources"] = {**resources, "subscribe": True, "listChanged": True}
        capabilities.setdefault("completions", {})

    async def _list_skills(self, ctx: Context, params: extension.ListSkillsParams) -> Answer:
        catalog = self.served.catalog_for(ctx)
        return extension.list_result(await catalog.list_skills(params.cursor, self.served.page_size))

    async def _get_skill(self, ctx: Context, params: extension.GetSkillParams) -> Answer:
        if not params.uri:
            raise ProtocolError(
                "uri-missing",
                "'uri' is missing: here a skill is known by the URI of its SKILL.md",
                "clients that ask by name connect to /mcp/sep-2076, or with --dialect sep-2076",
                rule="G1",
            )
        return extension.get_result(await self.served.catalog_for(ctx).get_skill(params.uri))

    async def _read_directory(self, ctx: Context, params: extension.ReadDirectoryParams) -> Answer:
        catalog = self.served.catalog_for(ctx)
        try:
            page = await catalog.read_directory(params.uri, params.cursor, self.served.page_size)
        except NotFoundError:
            page = await self._prefix_folder(catalog, params)
            if page is None:
                raise
        entry = await self.skill_around(catalog, parse_uri(params.uri).path)
        return extension.directory_result(page, entry.meta if entry else DEFAULT_META)

    async def _prefix_folder(
        self, catalog: Catalog, params: extension.ReadDirectoryParams
    ) -> Page[DirectoryChild] | None:
        """D1: a folder above listed skills has the folders that lead to them. ``None`` if there are none."""
        uri, scheme = parse_uri(params.uri), self.served.scheme
        inside = f"{uri.path}/"
        below = await catalog.suggest(inside, DEFAULT_LIMITS.max_entries) if uri.scheme == scheme else ()
        names = sorted({path[len(inside) :].partition("/")[0] for path in below})
        if not names:
            return None

        def child(name: str) -> DirectoryChild:
            return child_of(f"{inside}{name}", None, scheme)

        return page_of(f"directory {uri.path}", names, child, params.cursor, self.served.page_size)

    async def _list_resources(self, ctx: Context, params: PaginatedRequestParams) -> Answer:
        catalog = self.served.catalog_for(ctx)
        return extension.resources_result(await catalog.list_skills(params.cursor, self.served.page_size))

    async def _list_templates(self, ctx: Context, params: PaginatedRequestParams) -> Answer:
        if params.cursor is not None:  # there is one page, so no cursor can be good
            raise bad_cursor()
        return extension.templates_result(self.served.scheme, self.served.catalog_for(ctx).templates())

    async def _complete(self, ctx: Context, params: CompleteRequestParams) -> Answer:
        """T1: values of a template; or skills while the path names none, then the files of the one it names."""
        typed, catalog = params.argument.value, self.served.catalog_for(ctx)
        if len(typed) > DEFAULT_LIMITS.max_uri_length or typed.count("/") > DEFAULT_LIMITS.max_uri_segments:
            return extension.completion_result([])
        template = self._template(ctx, getattr(params.ref, "uri", None))
        if template is not None:
            return extension.completion_result(await template.complete(params.argument.name, typed))
        entry = await self.skill_around(catalog, typed.rpartition("/")[0])
        if entry is not None:
            files = sorted(parse_uri(file.uri).path for file in entry.files)
            return extension.completion_result([file for file in files if file.startswith(typed)])
        found = await catalog.suggest(typed, 101)
        return extension.completion_result([f"{skill}/SKILL.md" for skill in found])

    async def _completed(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        reference = (ctx.params or {}).get("ref")
        uri = cast("dict[str, Any]", reference).get("uri") if isinstance(reference, dict) else None
        whole = extension.SKILL_TEMPLATE.format(scheme=self.served.scheme)
        if uri == whole or self._template(ctx, uri) is not None:
            return await ask(ctx, call_next, _COMPLETE)
        try:
            return await call_next(ctx)
        except MCPError as error:
            if error.error.code != METHOD_NOT_FOUND:
                raise
            raise to_rpc_error(_nothing_to_complete()) from error  # the method is there: we declared it

    def _template(self, ctx: Context, uri: object) -> SkillTemplate | None:
        """The template at ``uri``, if the caller may see it."""
        templates = self.served.catalog_for(ctx).templates()
        return next((template for template in templates if template.uri(self.served.scheme) == uri), None)

    async def _subscribe(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """The handshake era's subscriptions; the stateless era has ``subscriptions/listen``."""
        uri = (ctx.params or {}).get("uri")
        if is_modern(ctx) or not isinstance(uri, str):
            return await call_next(ctx)
        if not await self.has_file(ctx, uri):
            if not self.served.has(ctx.method):
                raise to_rpc_error(no_file(uri))
            return await call_next(ctx)
        try:
            if ctx.method == "resources/subscribe":
                self._notices.subscribe(ctx.session, uri)
            else:
                self._notices.unsubscribe(ctx.session, uri)
        except SkillwireError as error:
            raise to_rpc_error(error) from error
        return {}


def _nothing_to_complete() -> ProtocolError:
    hint = "resources/templates/list and prompts/list say what there is"
    return ProtocolError("reference-unknown", "nothing can be completed at this reference", hint, rule="T1")


def _nothing(field: str) -> Handler:
    async def nothing(ctx: Context, params: PaginatedRequestParams) -> Answer:  # noqa: ARG001 - nobody has any
        if params.cursor is not None:  # there is one page, so no cursor can be good
            raise bad_cursor()
        return {field: []}

    return nothing


async def lists_file(catalog: Catalog, uri: str, scheme: str) -> bool:
    """Whether some skill of ``catalog`` lists the file at ``uri``."""
    try:
        parsed = parse_uri(uri)
    except FormatError:
        return False
    if parsed.scheme != scheme:
        return False
    entry = await skill_around(catalog, parsed.parent.path, scheme)
    if entry is None:
        return False
    wanted = format_uri(parsed.path, scheme)
    return entry.is_dynamic or any(file.uri == wanted for file in entry.files)


async def skill_around(catalog: Catalog, path: str, scheme: str) -> SkillEntry | None:
    """The innermost skill at or around ``path``, as it is known."""
    while path:
        with suppress(FormatError):  # typed by a person who is not done yet
            entry = await catalog.peek_skill(skill_md_uri(path, scheme))
            if entry is not None:
                return entry
        path = path.rpartition("/")[0]
    return None
