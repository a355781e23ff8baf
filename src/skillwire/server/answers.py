"""The answers of the ``extension`` dialect, from any catalog: parameters in, wire results out (L, G, R, D, T).

No answer waits for a scan. An error of ours becomes JSON-RPC's in one place.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mcp_types import CompleteRequestParams, PaginatedRequestParams, ReadResourceRequestParams

from skillwire.catalog.contract import DEFAULT_PAGE_SIZE, Catalog
from skillwire.catalog.cursor import bad_cursor
from skillwire.errors import FormatError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.skill.entry import DEFAULT_META
from skillwire.skill.uri import DEFAULT_SCHEME, format_uri, parse_uri, skill_md_uri
from skillwire.wire import extension
from skillwire.wire.errors import to_rpc_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import ServerRequestContext
    from pydantic import BaseModel

    from skillwire.skill import SkillEntry

Answer = dict[str, Any]

# Requests that the server itself may also answer reach ours under these names (see routing.py).
OWN_RESOURCES_LIST = "skillwire/resources/list"
OWN_RESOURCES_READ = "skillwire/resources/read"
OWN_TEMPLATES_LIST = "skillwire/resources/templates/list"
OWN_COMPLETE = "skillwire/completion/complete"


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers requests from ``catalog_for(context)``, which may differ from caller to caller."""

    catalog_for: Callable[[Any], Catalog]
    scheme: str = DEFAULT_SCHEME
    page_size: int = DEFAULT_PAGE_SIZE
    freshness: extension.Freshness = field(default_factory=extension.Freshness)

    def handlers(self) -> dict[str, tuple[type[BaseModel], Callable[[Any, Any], Awaitable[Answer]]]]:
        """Every method with its parameters' model and its handler."""
        methods: dict[str, tuple[type[BaseModel], Callable[[Catalog, Any], Awaitable[Answer]]]] = {
            extension.SKILLS_LIST: (extension.ListSkillsParams, self._list_skills),
            extension.SKILLS_GET: (extension.GetSkillParams, self._get_skill),
            extension.DIRECTORY_READ: (extension.ReadDirectoryParams, self._read_directory),
            OWN_RESOURCES_LIST: (PaginatedRequestParams, self._list_resources),
            OWN_RESOURCES_READ: (ReadResourceRequestParams, self._read_resource),
            OWN_TEMPLATES_LIST: (PaginatedRequestParams, self._list_templates),
            OWN_COMPLETE: (CompleteRequestParams, self._complete),
        }
        return {method: (params, self._bound(method, answer)) for method, (params, answer) in methods.items()}

    def _bound(
        self, method: str, answer: Callable[[Catalog, Any], Awaitable[Answer]]
    ) -> Callable[[Any, Any], Awaitable[Answer]]:
        cacheable = method != OWN_COMPLETE

        async def handle(ctx: ServerRequestContext[Any, Any], params: Any) -> Answer:
            try:
                result = await answer(self.catalog_for(ctx), params)
            except SkillwireError as error:
                raise to_rpc_error(error) from error
            return {**result, **self.freshness.fields(ctx.protocol_version)} if cacheable else result

        return handle

    async def _list_skills(self, catalog: Catalog, params: extension.ListSkillsParams) -> Answer:
        return extension.list_result(await catalog.list_skills(params.cursor, self.page_size))

    async def _get_skill(self, catalog: Catalog, params: extension.GetSkillParams) -> Answer:
        return extension.get_result(await catalog.get_skill(params.uri))

    async def _read_directory(self, catalog: Catalog, params: extension.ReadDirectoryParams) -> Answer:
        page = await catalog.read_directory(params.uri, params.cursor, self.page_size)
        entry = await self._skill_around(catalog, parse_uri(params.uri).path)
        return extension.directory_result(page, entry.meta if entry else DEFAULT_META)

    async def _list_resources(self, catalog: Catalog, params: PaginatedRequestParams) -> Answer:
        return extension.resources_result(await catalog.list_skills(params.cursor, self.page_size))

    async def _read_resource(self, catalog: Catalog, params: ReadResourceRequestParams) -> Answer:
        return extension.read_result(await catalog.read_file(str(params.uri)))

    async def _list_templates(self, catalog: Catalog, params: PaginatedRequestParams) -> Answer:  # noqa: ARG002
        if params.cursor is not None:  # there is one page, so no cursor can be good
            raise bad_cursor()
        return extension.templates_result(self.scheme)

    async def _complete(self, catalog: Catalog, params: CompleteRequestParams) -> Answer:
        """T1: skills while the path names none, then the files of the one it names."""
        typed = params.argument.value
        if len(typed) > DEFAULT_LIMITS.max_uri_length or typed.count("/") > DEFAULT_LIMITS.max_uri_segments:
            return extension.completion_result([])
        entry = await self._skill_around(catalog, typed.rpartition("/")[0])
        if entry is not None:
            files = sorted(parse_uri(file.uri).path for file in entry.files)
            return extension.completion_result([file for file in files if file.startswith(typed)])
        found = await catalog.suggest(typed, 101)
        return extension.completion_result([f"{skill}/SKILL.md" for skill in found])

    async def _skill_around(self, catalog: Catalog, path: str) -> SkillEntry | None:
        """The innermost skill at or around ``path``, as it is known."""
        while path:
            with suppress(FormatError):  # typed by a person who is not done yet
                entry = await catalog.peek_skill(skill_md_uri(path, self.scheme))
                if entry is not None:
                    return entry
            path = path.rpartition("/")[0]
        return None

    async def has_file(self, ctx: Any, uri: str) -> bool:
        """Whether a ``resources/read`` of ``uri`` is ours to answer: some skill lists the file."""
        try:
            parsed = parse_uri(uri)
        except FormatError:
            return False
        if parsed.scheme != self.scheme:
            return False
        entry = await self._skill_around(self.catalog_for(ctx), parsed.parent.path)
        if entry is None:
            return False
        wanted = format_uri(parsed.path, self.scheme)
        return entry.is_dynamic or any(file.uri == wanted for file in entry.files)
