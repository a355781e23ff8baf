"""What a server really offers, and what skills need beyond that (P3).

A server's own handlers are asked for all their pages, within bounds, when a skill that somebody looks at depends
on something; each kind once for each request. A file of a skill that the caller may see is a resource too, and so
is whatever a template of the server stands for. A listing that fails offers nothing.

When the server starts, every listed skill is looked at once and the log says what is missing. If a server cannot
be asked without a client, that happens when a client first asks for such a skill.
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
from skillwire.server.extension import lists_file
from skillwire.server.lowlevel import ask_own_handler
from skillwire.skill.declared import read_declared
from skillwire.skill.diagnostics import Diagnostic
from skillwire.wire.extension import Freshness
from skillwire.wire.templates import matches_template

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from skillwire.server.binding import Answer, Served
    from skillwire.skill import SkillEntry
    from skillwire.skill.declared import Dependencies

    Ask = Callable[[str, dict[str, Any]], Awaitable[Answer]]
    IsFile = Callable[[str], Awaitable[bool]]

_LISTINGS = {
    "tool": ("tools/list", "tools", "name"),
    "prompt": ("prompts/list", "prompts", "name"),
    "resource": ("resources/list", "resources", "uri"),
    "template": ("resources/templates/list", "resourceTemplates", "uriTemplate"),
}
_HINT = "offer it on this server, or take it out of the skill's 'dependencies'; until then sep-2076 leaves it out"

log = logging.getLogger("skillwire.server")


class Missing(NamedTuple):
    """Something that a skill depends on and that is not there: a ``tool``, a ``prompt`` or a ``resource``."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name!r:.200}"


class Offers:
    """What a server offers, for the length of one request; ``ask`` gives one page of a listing."""

    def __init__(self, ask: Ask, is_file: IsFile) -> None:
        self._ask = ask
        self._is_file = is_file
        self._known: dict[str, frozenset[str]] = {}
        self._kept: list[Freshness] = []
        self.failed: set[str] = set()

    async def missing(self, dependencies: Dependencies) -> list[Missing]:
        """What of ``dependencies`` is not there, in the order in which it is written."""
        wanted = [Missing("tool", name) for name in dependencies.tools]
        wanted += [Missing("prompt", name) for name in dependencies.prompts]
        lacking = [item for item in wanted if item.name not in await self._listed(item.kind)]
        resources = [uri for uri in dependencies.resources if not await self._has_resource(uri)]
        return lacking + [Missing("resource", uri) for uri in resources]

    def keep(self, ours: Freshness) -> Freshness:
        """How long an answer keeps that depends on what was asked: no longer, no wider than any of it."""
        kept = [ours, *self._kept]
        shared = all(freshness.scope == "public" for freshness in kept)
        return Freshness(min(freshness.ttl_ms for freshness in kept), "public" if shared else "private")

    async def _has_resource(self, uri: str) -> bool:
        if await self._is_file(uri) or uri in await self._listed("resource"):
            return True
        return any(matches_template(template, uri) for template in await self._listed("template"))

    async def _listed(self, kind: str) -> frozenset[str]:
        if kind not in self._known:
            self._known[kind] = frozenset(await self._gathered(kind))
        return self._known[kind]

    async def _gathered(self, kind: str) -> set[str]:
        found: set[str] = set()
        try:
            with anyio.fail_after(DEFAULT_LIMITS.max_call_seconds):
                await self._gather(kind, found)
        except MCPError as error:
            if error.error.code != METHOD_NOT_FOUND:  # that is a server without any
                self._fail(kind)
        except Exception:  # whatever somebody's handler raises
            self._fail(kind)
        return found

    async def _gather(self, kind: str, found: set[str]) -> None:
        method, field, key = _LISTINGS[kind]
        params: dict[str, Any] = {}
        for _ in range(DEFAULT_LIMITS.max_pages):
            page = await self._ask(method, params)
            found |= {str(item.get(key)) for item in page.get(field) or ()}
            scope = "public" if page.get("cacheScope") == "public" else "private"
            self._kept.append(Freshness(int(page.get("ttlMs") or 0), scope))
            cursor = page.get("nextCursor")
            if not cursor or cursor == params.get("cursor") or len(found) > DEFAULT_LIMITS.max_entries:
                return
            params = {"cursor": cursor}

    def _fail(self, kind: str) -> None:
        self.failed.add("resource" if kind == "template" else kind)
        log.info("what this server offers by %s is not known", _LISTINGS[kind][0], exc_info=True)


async def find_missing(served: Served, offers: Offers, uri: str, dependencies: Dependencies) -> list[Missing]:
    """What the skill at ``uri`` lacks. The log says it, once, unless the server could not be asked."""
    missing = await offers.missing(dependencies)
    for item in missing:
        if item.kind not in offers.failed:
            problem = missing_diagnostic(uri, item)
            served.warn(f"{problem.file}: {problem.message} [{problem.reference}]; {problem.hint}")
    return missing


def missing_diagnostic(uri: str, item: Missing) -> Diagnostic:
    """P3: what is wrong with the skill at ``uri``."""
    message = f"the skill depends on {item}, which this server does not offer"
    return Diagnostic("dependency-missing", message, _HINT, file=uri, skill=uri)


def refuse_missing(label: str, missing: list[Missing]) -> NotFoundError:
    """P3: the refusal of a skill that would not work."""
    needs = ", ".join(map(str, missing[:10]))
    message = f"the skill {label!r:.100} depends on what this server does not offer: {needs}"
    return NotFoundError("dependency-missing", message, "ask whoever runs the server to offer it", rule="P3")


async def check_at_start(served: Served, state: object) -> None:
    """Look at every listed skill once, and say what is missing. Whatever goes wrong, the server goes on."""
    catalog = served.whole()
    offers = Offers(
        partial(ask_own_handler, served.server, state), lambda uri: lists_file(catalog, uri, served.scheme)
    )
    try:
        async for entry in catalog.entries():
            await _check(served, offers, entry)
    except Exception:
        log.debug("dependencies of skills could not be looked at", exc_info=True)


async def _check(served: Served, offers: Offers, entry: SkillEntry) -> None:
    if "dependencies" in entry.frontmatter:
        await find_missing(served, offers, entry.uri, read_declared(entry.frontmatter).dependencies)
