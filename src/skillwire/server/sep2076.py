"""The ``sep-2076`` dialect on a server: skills as a primitive, by name (P1–P6).

``skills/list`` and ``skills/get`` return the skills that the caller may see and that work here. A skill that
depends on something the server does not offer is not listed, and a request for it returns what is missing (P3).
Files are read by ``resources/read`` and are in no listing (P4). No request needs more than one page of skills.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread

from skillwire.catalog.skill_content import read_current
from skillwire.errors import ProtocolError
from skillwire.server.dependencies import Offers, find_missing, missing_error
from skillwire.server.dialect import Answer, DialectHandlers, meta_only, validated
from skillwire.server.notifications import listen_for_skills
from skillwire.server.skill_files import SkillFiles
from skillwire.skill.declarations import fill_in, parse_arguments, read_declared
from skillwire.wire import sep2076 as wire
from skillwire.wire.errors import rpc_errors
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST, Freshness

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult

    from skillwire.server.dependencies import Missing
    from skillwire.server.dialect import Context, Served

_LONG = 16 * 1024  # characters of Markdown from which on it is parsed in a thread


class Sep2076Handlers(DialectHandlers):
    """``skills/list`` and ``skills/get`` by name."""

    def __init__(self, served: Served) -> None:
        super().__init__(served)
        self._files = SkillFiles(served)
        self.handlers |= self._files.handlers
        self.handlers |= {
            SKILLS_LIST: self._list,
            SKILLS_GET: self._get,
            "subscriptions/listen": listen_for_skills,
        }

    def declare(self, ctx: Context, capabilities: Answer) -> None:  # noqa: ARG002 - the same for every client
        """P1, P5. Some SDKs drop an unknown capability, so it is also among the experimental ones."""
        skills = {"listChanged": True}
        capabilities["resources"] = {**(capabilities.get("resources") or {}), "listChanged": True}
        capabilities[wire.CAPABILITY] = skills
        capabilities["experimental"] = {**(capabilities.get("experimental") or {}), wire.CAPABILITY: skills}

    async def may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool | None:
        """Whether the caller may subscribe to ``uri``."""
        return await self._files.may_subscribe(ctx, call_next, uri)

    async def _list(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """P1, P3: a page, without the skills that do not work here."""
        params = validated(ctx, wire.ListNamedParams)
        offers = self._offers(ctx, call_next)
        with rpc_errors():
            page = await self.served.visible().list_skills(params.cursor, self.served.page_size)
            skills = [wire.listed_skill(entry, await self.served.label(entry)) for entry in page.items]
            working = [skill for skill in skills if not await self._missing(offers, skill)]
        return self.served.complete(
            ctx, wire.list_result(working, page.next_cursor), offers.limit(self.served.freshness)
        )

    async def _get(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """P2, P3: a skill, if it works here."""
        params = validated(ctx, wire.GetNamedParams)
        offers = self._offers(ctx, call_next)
        with rpc_errors():
            result = await self._get_skill(params)
            missing = await self._missing(offers, result)
            if missing:
                raise missing_error(str(params.name), missing)
        freshness = offers.limit(self.served.freshness)
        if params.arguments:  # the result contains the caller's own arguments
            freshness = Freshness(freshness.ttl_ms, "private")
        return self.served.complete(ctx, result, freshness)

    async def _get_skill(self, params: wire.GetNamedParams) -> Answer:
        if not isinstance(params.name, str):
            raise ProtocolError("name-invalid", "'name' is missing or not text", "see skills/list", rule="P2")
        found = await self.served.names().find(params.name)
        entry, document = await read_current(self.served.visible(), found)
        declared = read_declared(entry.frontmatter)
        instructions = fill_in(document.body, parse_arguments(declared.arguments, params.arguments))
        make = partial(wire.get_result, entry, declared, instructions, document.body)
        return await to_thread.run_sync(make) if len(document.body) > _LONG else make()

    async def _missing(self, offers: Offers, skill: Answer) -> list[Missing]:
        return await find_missing(self.served, offers, *wire.parse_dependencies(skill))

    def _offers(self, ctx: Context, call_next: CallNext) -> Offers:
        meta = meta_only(ctx)

        async def page(method: str, params: dict[str, Any]) -> Answer:
            return cast("Answer", await call_next(replace(ctx, method=method, params={**meta, **params})))

        return Offers(page, self._files.has)
