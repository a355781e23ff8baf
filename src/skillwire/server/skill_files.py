"""Files of skills among the resources of a server: the same on every endpoint (R1, P4).

A ``resources/read`` of a file of a skill is answered here, and every other one by the server. Whether a caller may
subscribe to a resource is decided by the same lookup.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from mcp.shared.exceptions import MCPError
from mcp_types import PaginatedRequestParams, ReadResourceRequestParams

from skillwire.catalog.cursor import bad_cursor
from skillwire.errors import FormatError, NotFoundError
from skillwire.skill.uri import format_uri, parse_uri, skill_md_uri
from skillwire.wire import extension
from skillwire.wire.errors import resource_unknown
from skillwire.wire.templates import matches_template

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import CallNext, HandlerResult

    from skillwire.catalog.contract import Catalog
    from skillwire.server.dialect import Answer, Context, Handler, Served
    from skillwire.skill import SkillEntry

_LISTS = {"resources/list": "resources", "resources/templates/list": "resourceTemplates"}


class SkillFiles:
    """The files of the served skills. ``handlers`` are for a dialect that does not list files."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._read_own = served.answering(ReadResourceRequestParams, self._read_file)
        self._empty = {
            method: served.answering(PaginatedRequestParams, _empty_list(field))
            for method, field in _LISTS.items()
        }
        self.handlers: dict[str, Handler] = {
            "resources/read": self.read,
            **dict.fromkeys(_LISTS, self.list_resources),
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
        ours = self.has_scheme(uri)
        if not self._served.has(ctx.method) or (ours and await self.has(uri)):
            return await self._read_own(ctx, call_next)
        try:
            return await call_next(ctx)
        except MCPError:
            if not ours:
                raise
        return await self._read_own(ctx, call_next)  # our error explains more than the server's

    async def list_resources(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """P4: files are in no listing. A server without resources has an empty listing."""
        if self._served.has(ctx.method):
            return await call_next(ctx)
        return await self._empty[ctx.method](ctx, call_next)

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
        for method, field in _LISTS.items():
            for item in await self._served.server_items(ctx, call_next, method, field):
                if item.get("uri") == uri or matches_template(str(item.get("uriTemplate") or ""), uri):
                    return True
        return False

    async def _read_file(self, params: ReadResourceRequestParams) -> Answer:
        uri = str(params.uri)
        try:
            return extension.read_result(await self._served.visible().read_file(uri))
        except NotFoundError as error:
            raise resource_unknown(error, uri) from error


def _empty_list(field: str) -> Callable[[PaginatedRequestParams], Awaitable[Answer]]:
    async def answer(params: PaginatedRequestParams) -> Answer:
        if params.cursor is not None:  # there is only one page, so every cursor is invalid
            raise bad_cursor()
        return {field: []}

    return answer


async def lists_file(catalog: Catalog, uri: str, scheme: str) -> bool:
    """Whether a skill of ``catalog`` lists the file at ``uri``."""
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
    """The innermost skill at or around ``path`` that the catalog knows already."""
    while path:
        with suppress(FormatError):  # a completion may contain an incomplete path
            entry = await catalog.peek_skill(skill_md_uri(path, scheme))
            if entry is not None:
                return entry
        path = path.rpartition("/")[0]
    return None
