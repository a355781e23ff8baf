"""Dependencies of skills on the tools, prompts and resources of their server (P3).

If a requested skill has dependencies, all pages of the server's own listings are read, within bounds, and each
kind at most once for a request. Files of visible skills count as resources, and so do URIs that match a template
of the server. A listing that fails offers nothing.

When the server starts, all listed skills are checked once, and the log names the missing dependencies. If the
server's listings need a client, that happens when a client first requests such a skill.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND

from skillwire.errors import NotFoundError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.sdk_compat import call_without_client
from skillwire.server.skill_files import lists_file
from skillwire.skill.declarations import read_declared
from skillwire.skill.diagnostics import Diagnostic
from skillwire.wire.extension import Freshness
from skillwire.wire.templates import matches_template

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillwire.server.dialect import Answer, Served
    from skillwire.skill.declarations import Dependencies

    ReadPage = Callable[[str, dict[str, Any]], Awaitable[Answer]]
    IsFile = Callable[[str], Awaitable[bool]]

_LISTINGS = {
    "tool": ("tools/list", "tools", "name"),
    "prompt": ("prompts/list", "prompts", "name"),
    "resource": ("resources/list", "resources", "uri"),
    "template": ("resources/templates/list", "resourceTemplates", "uriTemplate"),
}
_HINT = (
    "offer it on this server, or remove it from the skill's 'dependencies'; until then sep-2076 omits the skill"
)

log = logging.getLogger("skillwire.server")


class Missing(NamedTuple):
    """A missing dependency of a skill: a ``tool``, a ``prompt`` or a ``resource``."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name!r:.200}"


class Offers:
    """The tools, prompts and resources of a server, for one request. ``read_page`` reads a page of a listing."""

    def __init__(self, read_page: ReadPage, is_file: IsFile) -> None:
        self._read_page = read_page
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
            except MCPError as error:
                if error.error.code != METHOD_NOT_FOUND:  # otherwise the server has none
                    self._fail(kind)
            except Exception:  # a handler of the server may raise anything
                self._fail(kind)
            self._known[kind] = frozenset(found)
        return self._known[kind]

    async def _read_all(self, kind: str, found: set[str]) -> None:
        method, field, key = _LISTINGS[kind]
        params: dict[str, Any] = {}
        for _ in range(DEFAULT_LIMITS.max_pages):
            page = await self._read_page(method, params)
            found |= {str(item.get(key)) for item in page.get(field) or ()}
            scope = "public" if page.get("cacheScope") == "public" else "private"
            self._freshness.append(Freshness(int(page.get("ttlMs") or 0), scope))
            cursor = page.get("nextCursor")
            if not cursor or cursor == params.get("cursor") or len(found) > DEFAULT_LIMITS.max_entries:
                return
            params = {"cursor": cursor}

    def _fail(self, kind: str) -> None:
        self.failed.add("resource" if kind == "template" else kind)
        log.info("%s failed, so its items are unknown", _LISTINGS[kind][0], exc_info=True)


async def find_missing(served: Served, offers: Offers, uri: str, dependencies: Dependencies) -> list[Missing]:
    """The missing dependencies of the skill at ``uri``. Each is logged once, unless the listing failed."""
    missing = await offers.missing(dependencies)
    for item in missing:
        if item.kind not in offers.failed:
            problem = missing_diagnostic(uri, item)
            served.warn(f"{problem.file}: {problem.message} [{problem.reference}]; {problem.hint}")
    return missing


def missing_diagnostic(uri: str, item: Missing) -> Diagnostic:
    """P3: the problem of the skill at ``uri``."""
    message = f"the skill depends on {item}, which this server does not offer"
    return Diagnostic("dependency-missing", message, _HINT, file=uri, skill=uri)


def missing_error(label: str, missing: list[Missing]) -> NotFoundError:
    """P3: the error for a skill with missing dependencies."""
    needs = ", ".join(map(str, missing[:10]))
    message = f"the skill {label!r:.100} has dependencies that this server does not offer: {needs}"
    return NotFoundError("dependency-missing", message, "ask the operator of the server to offer them", rule="P3")


async def check_at_start(served: Served, state: object) -> None:
    """Check all listed skills once, and log the missing dependencies. An error does not stop the server."""
    catalog = served.whole()
    offers = Offers(
        partial(call_without_client, served.server, state), lambda uri: lists_file(catalog, uri, served.scheme)
    )
    try:
        async for entry in catalog.entries():
            if "dependencies" in entry.frontmatter:
                await find_missing(served, offers, entry.uri, read_declared(entry.frontmatter).dependencies)
    except Exception:
        log.debug("the dependencies of skills were not checked", exc_info=True)
