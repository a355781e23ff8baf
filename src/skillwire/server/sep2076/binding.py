"""The ``sep-2076`` dialect on a server: skills as a primitive, by name (P1–P6).

``skills/list`` and ``skills/get`` show what the caller may see and what would work: a skill that depends on
something the server does not offer is left out of the listing, and asking for it says what is missing (P3). Files
are read by ``resources/read`` and are in no listing (P4). Nothing here looks at more than one page of skills.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread

from skillwire.catalog.current import read_current
from skillwire.errors import ProtocolError
from skillwire.server.binding import OWN, Answer, ask
from skillwire.server.extension import ReadingFiles
from skillwire.server.sep2076.dependencies import Offers, find_missing, refuse_missing
from skillwire.server.sep2076.listening import listen_for_skills
from skillwire.skill.arguments import fill_in, parse_arguments
from skillwire.skill.declared import read_declared
from skillwire.wire import sep2076 as wire
from skillwire.wire.errors import to_rpc_error
from skillwire.wire.extension import SKILLS_GET, SKILLS_LIST, Freshness

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult

    from skillwire.server.binding import Context, Served
    from skillwire.server.sep2076.dependencies import Missing

_LIST = f"{OWN}sep-2076/{SKILLS_LIST}"
_GET = f"{OWN}sep-2076/{SKILLS_GET}"
_LONG = 16 * 1024  # characters of Markdown that are read beside the event loop


class Sep2076Binding(ReadingFiles):
    """``skills/list`` and ``skills/get`` by name."""

    def __init__(self, served: Served) -> None:
        super().__init__(served)
        self.handle(_LIST, wire.ListSkillsParams, self._list_skills)
        self.handle(_GET, wire.GetSkillParams, self._get_skill, cacheable=False)
        self.routes |= {
            SKILLS_LIST: self._list,
            SKILLS_GET: self._get,
            "subscriptions/listen": listen_for_skills,
        }

    def declare(self, ctx: Context, capabilities: Answer) -> None:
        """P1, P5. Some SDKs drop a capability that they do not know, so it stands among the experimental too."""
        super().declare(ctx, capabilities)
        capabilities["resources"] = {**capabilities["resources"], "listChanged": True}
        skills = {"listChanged": True}
        capabilities[wire.CAPABILITY] = skills
        capabilities["experimental"] = {**(capabilities.get("experimental") or {}), wire.CAPABILITY: skills}

    async def _list(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """P3: a page, without the skills that would not work."""
        cursor = {key: value for key, value in (ctx.params or {}).items() if key == "cursor"}
        result = await ask(ctx, call_next, _LIST, **cursor)
        offers = self._offers(ctx, call_next)
        works = [skill for skill in result["skills"] if not await self._lacking(offers, skill)]
        return {**result, "skills": works, **offers.keep(self.served.freshness).fields(ctx.protocol_version)}

    async def _get(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """P3: a skill, if it would work."""
        result = await ask(ctx, call_next, _GET)
        offers = self._offers(ctx, call_next)
        missing = await self._lacking(offers, result)
        if missing:
            raise to_rpc_error(refuse_missing(str((ctx.params or {}).get("name")), missing))
        kept = offers.keep(self.served.freshness)
        if (ctx.params or {}).get("arguments"):  # whatever the caller said is nobody else's business
            kept = Freshness(kept.ttl_ms, "private")
        return {**result, **kept.fields(ctx.protocol_version)}

    async def _lacking(self, offers: Offers, skill: Answer) -> list[Missing]:
        return await find_missing(self.served, offers, *wire.parse_dependencies(skill))

    def _offers(self, ctx: Context, call_next: CallNext) -> Offers:
        meta = (ctx.params or {}).get("_meta")
        said: dict[str, Any] = {} if meta is None else {"_meta": meta}

        async def listing(method: str, params: dict[str, Any]) -> Answer:
            return cast("Answer", await call_next(replace(ctx, method=method, params={**said, **params})))

        return Offers(listing, partial(self.has_file, ctx))

    async def _list_skills(self, ctx: Context, params: wire.ListSkillsParams) -> Answer:
        page = await self.served.catalog_for(ctx).list_skills(params.cursor, self.served.page_size)
        names = self.served.names_for(ctx)
        skills = [wire.listed_skill(entry, await names.label(entry)) for entry in page.items]
        return wire.list_result(skills, page.next_cursor)

    async def _get_skill(self, ctx: Context, params: wire.GetSkillParams) -> Answer:
        if not isinstance(params.name, str):
            raise ProtocolError("name-invalid", "'name' is missing or not text", "see skills/list", rule="P2")
        found = await self.served.names_for(ctx).find(params.name)
        entry, document = await read_current(self.served.catalog_for(ctx), found)
        declared = read_declared(entry.frontmatter)
        instructions = fill_in(document.body, parse_arguments(declared.arguments, params.arguments))
        make = partial(wire.get_result, entry, declared, instructions, document.body)
        return await to_thread.run_sync(make) if len(document.body) > _LONG else make()
