"""The ``sep-2076`` dialect on a server: skills as a primitive, by name (P1–P6).

``skills/list`` and ``skills/get`` return the skills that the caller may see and that work here. A skill that
depends on something the server does not offer is not listed, a request for it returns what is missing, and the log
names it once (P3). Files are read by ``resources/read`` and are in no listing (P4). No request needs more than one
page of skills.

If a requested skill has dependencies, all pages of the server's own listings are read, within bounds, and each
kind at most once for a request. Files of visible skills count as resources, and so do URIs that match a template
of the server. A listing that fails offers nothing.

When the server starts, all listed skills are checked once, and the log names the missing dependencies. If the
server's listings need a client, that happens when a client first requests such a skill.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio import to_thread
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND, PaginatedRequestParams

from skillwire.catalog.contract import LargeCatalog
from skillwire.catalog.verification import read_current
from skillwire.errors import NotFoundError, ProtocolError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.dialect import (
    Dialect,
    MethodResult,
    SkillFiles,
    all_pages,
    declare_skills,
    declaring,
    lists_file,
    server_pages,
    validated,
)
from skillwire.server.sdk_compat import call_without_client
from skillwire.skill.declarations import fill_in, parse_arguments, read_declared
from skillwire.wire import sep2076 as wire
from skillwire.wire.errors import rpc_errors
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST, Freshness, paged
from skillwire.wire.templates import matches_template

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp.server.context import CallNext, HandlerResult

    from skillwire.server.dialect import Context, ServedSkills
    from skillwire.skill.declarations import Dependencies

    IsFile = Callable[[str], Awaitable[bool]]

_LONG = 16 * 1024  # characters of Markdown from which on it is parsed in a thread
_LISTINGS = {
    "tool": ("tools/list", "tools", "name"),
    "prompt": ("prompts/list", "prompts", "name"),
    "resource": ("resources/list", "resources", "uri"),
    "template": ("resources/templates/list", "resourceTemplates", "uriTemplate"),
}

log = logging.getLogger("skillwire.server")


class Sep2076:
    """The handlers: ``skills/list`` and ``skills/get`` by name."""

    def __init__(self, served: ServedSkills) -> None:
        self._served = served
        self._files = SkillFiles(served)

    def dialect(self) -> Dialect:
        """The table of handlers."""
        handlers = {
            **declaring(self._declare),
            **self._files.handlers,
            SKILLS_LIST: self._list,
            SKILLS_GET: self._get,
        }
        return Dialect(handlers, self._files.may_subscribe)

    def _declare(self, ctx: Context, capabilities: MethodResult) -> None:  # noqa: ARG002 - the same for every client
        """P1, P5: skills are resources too."""
        declare_skills(capabilities, {"listChanged": True})

    async def _list(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """P1, P3: a page, without the skills that do not work here."""
        params = validated(ctx, PaginatedRequestParams)
        offers = self._offers(ctx, call_next)
        with rpc_errors():
            page = await self._served.visible().list_skills(params.cursor, self._served.page_size)
            labels = await self._served.labels(page.items)
            skills = [wire.listed_skill(*each) for each in zip(page.items, labels, strict=True)]
            working = [
                skill for skill in skills if not await self._missing(offers, *wire.parse_dependencies(skill))
            ]
        result = paged("skills", working, page.next_cursor)
        return self._served.complete(ctx, result, offers.limit(self._served.freshness))

    async def _get(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """P2, P3: a skill, if it works here."""
        params = validated(ctx, wire.GetNamedParams)
        offers = self._offers(ctx, call_next)
        with rpc_errors():
            result = await self._get_skill(params)
            missing = await self._missing(offers, *wire.parse_dependencies(result))
            if missing:
                raise NotFoundError(
                    "dependency-missing",
                    f"the skill {str(params.name)!r:.100} has dependencies that this server does not offer: "
                    f"{', '.join(map(str, missing[:10]))}",
                    "ask the operator of the server to offer them",
                    rule="P3",
                )
        freshness = offers.limit(self._served.freshness)
        if params.arguments:  # the result contains the caller's own arguments
            freshness = Freshness(freshness.ttl_ms, "private")
        return self._served.complete(ctx, result, freshness)

    async def _get_skill(self, params: wire.GetNamedParams) -> MethodResult:
        if not isinstance(params.name, str):
            raise ProtocolError("name-invalid", "'name' is missing or not text", "see skills/list", rule="P2")
        found = await self._served.names().find(params.name)
        entry, document = await read_current(self._served.visible(), found)
        declared = read_declared(entry.frontmatter)
        instructions = fill_in(document.body, parse_arguments(declared.arguments, params.arguments))
        make = partial(wire.get_result, entry, declared, instructions, document.body)
        return await to_thread.run_sync(make) if len(document.body) > _LONG else make()

    async def check_at_start(self, state: object) -> None:
        """Check all listed skills once, and log the missing dependencies. An error does not stop the server.

        ``state`` is the result of the server's lifespan.
        """
        catalog, server, scheme = self._served.catalog, self._served.server, self._served.scheme
        if isinstance(catalog, LargeCatalog):
            return
        offers = Offers(
            lambda method: all_pages(partial(call_without_client, server, state, method)),
            lambda uri: lists_file(catalog, uri, scheme),
        )
        try:
            async for entry in catalog.entries():
                if "dependencies" in entry.frontmatter:
                    await self._missing(offers, entry.uri, read_declared(entry.frontmatter).dependencies)
        except Exception:
            log.debug("the dependencies of skills were not checked", exc_info=True)

    async def _missing(self, offers: Offers, uri: str, dependencies: Dependencies) -> list[Missing]:
        """The missing dependencies of the skill at ``uri``. Each is logged once, unless the listing failed."""
        missing = await offers.missing(dependencies)
        for item in missing:
            if item.kind not in offers.failed:
                self._served.warn(
                    f"{uri}: the skill depends on {item}, which this server does not offer [dependency-missing];"
                    " offer it on this server, or remove it from the skill's 'dependencies'; until then sep-2076"
                    " omits the skill"
                )
        return missing

    def _offers(self, ctx: Context, call_next: CallNext) -> Offers:
        return Offers(partial(server_pages, ctx, call_next), self._files.has)


class Missing(NamedTuple):
    """A missing dependency of a skill: a ``tool``, a ``prompt`` or a ``resource``."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name!r:.200}"


class Offers:
    """The tools, prompts and resources of a server, for one request. ``pages`` reads one of its listings."""

    def __init__(self, pages: Callable[[str], AsyncIterator[MethodResult]], is_file: IsFile) -> None:
        self._pages = pages
        self._is_file = is_file
        self._known: dict[str, frozenset[str]] = {}
        self._freshness: list[Freshness] = []
        self.failed: set[str] = set()

    async def missing(self, dependencies: Dependencies) -> list[Missing]:
        """The missing ones of ``dependencies``, in their order."""
        wanted = [Missing("tool", name) for name in dependencies.tools]
        wanted += [Missing("prompt", name) for name in dependencies.prompts]
        lacking = [item for item in wanted if item.name not in await self._listed(item.kind)]
        resources = [uri for uri in dependencies.resources if not await self._has_resource(uri)]
        return lacking + [Missing("resource", uri) for uri in resources]

    def limit(self, ours: Freshness) -> Freshness:
        """``ours``, with no longer lifetime and no wider scope than any listing that was read."""
        all_of_them = [ours, *self._freshness]
        is_public = all(freshness.scope == "public" for freshness in all_of_them)
        return Freshness(min(each.ttl_ms for each in all_of_them), "public" if is_public else "private")

    async def _has_resource(self, uri: str) -> bool:
        if await self._is_file(uri) or uri in await self._listed("resource"):
            return True
        return any(matches_template(template, uri) for template in await self._listed("template"))

    async def _listed(self, kind: str) -> frozenset[str]:
        if kind not in self._known:
            found: set[str] = set()
            try:
                with anyio.fail_after(DEFAULT_LIMITS.max_call_seconds):
                    await self._read_all(kind, found)
            except Exception as error:  # a handler of the server may raise anything
                if not isinstance(error, MCPError) or error.error.code != METHOD_NOT_FOUND:  # else it has none
                    self.failed.add("resource" if kind == "template" else kind)
                    log.info("%s failed, so its items are unknown", _LISTINGS[kind][0], exc_info=True)
            self._known[kind] = frozenset(found)
        return self._known[kind]

    async def _read_all(self, kind: str, found: set[str]) -> None:
        method, field, key = _LISTINGS[kind]
        async for page in self._pages(method):
            found |= {str(item.get(key)) for item in page.get(field) or ()}
            scope = "public" if page.get("cacheScope") == "public" else "private"
            self._freshness.append(Freshness(int(page.get("ttlMs") or 0), scope))
            if len(found) > DEFAULT_LIMITS.max_entries:
                return
