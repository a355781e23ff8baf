"""The ``native`` dialect: skills that are activated, and bring tools, prompts and resources with them (M1–M5).

A refused request changes nothing: everything that can fail is done before an activation is remembered.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from skillwire.catalog.current import read_current
from skillwire.errors import ProtocolError, SkillwireError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.binding import OWN, Answer
from skillwire.server.native.activation import Activations, already_active
from skillwire.server.native.active import ActiveSkills
from skillwire.server.native.scope_guard import Guarding
from skillwire.server.native.scoped import canonical_key
from skillwire.server.sep2076.listening import listen_for_skills
from skillwire.skill.uri import skill_md_uri
from skillwire.wire import native
from skillwire.wire.errors import to_rpc_error
from skillwire.wire.extension import SKILLS_LIST
from skillwire.wire.meta import URI
from skillwire.wire.native import KINDS, SKILLS_ACTIVATE, SKILLS_DEACTIVATE, Kind
from skillwire.wire.templates import is_template

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult

    from skillwire.catalog.contract import Catalog
    from skillwire.server.binding import Context, Route, Served
    from skillwire.server.endpoints import Dialects
    from skillwire.server.notifications import Notices
    from skillwire.skill import SkillEntry

log = logging.getLogger("skillwire.server")

_LIST = f"{OWN}native/list"
_ACTIVATE = f"{OWN}native/activate"
_DEACTIVATE = f"{OWN}native/deactivate"
# Where the server defines what a skill binds: the kind, the method, the field of its result, what names an item.
_LISTS: tuple[tuple[Kind, str, str, str], ...] = (
    ("tools", "tools/list", "tools", "name"),
    ("prompts", "prompts/list", "prompts", "name"),
    ("resources", "resources/list", "resources", "uri"),
    ("resources", "resources/templates/list", "resourceTemplates", "uriTemplate"),
)


class NativeBinding(Guarding):
    """``skills/list``, ``skills/activate``, ``skills/deactivate``, and what they do to the server's own things."""

    def __init__(self, served: Served, notices: Notices, options: Dialects) -> None:
        self._activations = Activations(options.activation_key, options.activation_seconds)
        super().__init__(served, ActiveSkills(served, self._activations, keep_listed=options.keep_listed))
        self._missed: set[tuple[str, str, str]] = set()
        if not options.keep_listed:
            notices.scoped_kinds = lambda: self.active.scoped.kinds
        self.handle(_LIST, native.ListSkillsParams, self._list_skills)
        self.handle(_ACTIVATE, native.ActivateSkillParams, self._prepare, cacheable=False)
        self.handle(_DEACTIVATE, native.DeactivateSkillParams, self._deactivate, cacheable=False)
        self.routes |= {
            SKILLS_LIST: _as(_LIST),
            SKILLS_ACTIVATE: self._activate,
            SKILLS_DEACTIVATE: _as(_DEACTIVATE),
            "subscriptions/listen": listen_for_skills,
        }

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Answer, share or pass on one request; one with a bad token is refused, whatever it asks for."""
        try:
            self._activations.paths(ctx)
        except SkillwireError as error:
            raise to_rpc_error(error) from error
        return await super().__call__(ctx, call_next)

    def declare(self, ctx: Context, capabilities: Answer) -> None:
        """M4. Also under ``experimental``: the Python SDK's clients drop a capability that they do not know."""
        super().declare(ctx, capabilities)
        said = {"listChanged": True}
        capabilities["skills"] = said
        capabilities["experimental"] = {**(capabilities.get("experimental") or {}), "skills": said}
        if not self.active.keep_listed:
            for kind in KINDS:
                if capabilities.get(kind) is not None:
                    capabilities[kind] = {**capabilities[kind], **said}

    async def _list_skills(self, ctx: Context, params: native.ListSkillsParams) -> Answer:
        page = await self.served.catalog_for(ctx).list_skills(params.cursor, self.served.page_size)
        skills = [
            native.listed_skill(entry, await self.label(ctx, entry))
            for entry in page.items
            if await self.active.is_listed(ctx, entry.path)
        ]
        return native.list_result(skills, page.next_cursor)

    async def _activate(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        answer = cast("Answer", await call_next(replace(ctx, method=_ACTIVATE)))
        try:
            entry = await self._known(ctx, answer["_meta"][URI])
            defined = await self._definitions(ctx, call_next, entry)
            gone = frozenset(self._activations.paths(ctx)) - await self.active.live(ctx)
            meta = self._activations.activate(ctx, entry.path, gone)
        except SkillwireError as error:
            raise to_rpc_error(error) from error
        resources = [*defined.pop("resources", ()), *answer["resources"]]
        return {**answer, **defined, "resources": resources, "_meta": {**answer["_meta"], **meta}}

    async def _known(self, ctx: Context, uri: str) -> SkillEntry:
        """The skill that was just looked at; a dynamic one is not made a second time."""
        entry = await self.served.catalog_for(ctx).peek_skill(uri)
        return entry or await self.served.catalog_for(ctx).get_skill(uri)

    async def _prepare(self, ctx: Context, params: native.ActivateSkillParams) -> Answer:
        """What activating would say, but for the definitions; or why it is refused."""
        catalog = self.served.catalog_for(ctx)
        entry = await self.served.names_for(ctx).find(params.name)
        live = await self.active.live(ctx)
        if entry.path in live:
            raise already_active(params.name)
        if not await self.active.is_offered(ctx, entry.path, live):
            raise await self._enclosed(ctx, catalog, entry)
        entry, document = await read_current(catalog, entry)
        return native.activate_result(entry, document.body, await self._nested(ctx, entry))

    async def _deactivate(self, ctx: Context, params: native.DeactivateSkillParams) -> Answer:
        entry = await self.served.names_for(ctx).find(params.name)
        if entry.path not in await self.active.live(ctx):
            raise ProtocolError(
                "skill-not-active",
                f"the skill {params.name!r:.200} is not active",
                "there is nothing to deactivate",
                rule="M3",
            )
        meta = self._activations.deactivate(ctx, entry.path)
        return {"_meta": meta} if meta else {}

    async def _nested(self, ctx: Context, entry: SkillEntry) -> list[Answer]:
        """Skills directly inside ``entry``, in the listing's words."""
        catalog, found = self.served.catalog_for(ctx), list[Answer]()
        for path in await catalog.suggest(f"{entry.path}/", DEFAULT_LIMITS.max_page_size):
            outer = await self.active.enclosing(catalog, path)
            inner = await catalog.peek_skill(skill_md_uri(path, self.served.scheme))
            if inner is not None and outer is not None and outer.path == entry.path:
                found.append(native.listed_skill(inner, await self.label(ctx, inner)))
        return found

    async def _definitions(self, ctx: Context, call_next: CallNext, entry: SkillEntry) -> dict[str, list[Answer]]:
        """M2: what the server says of everything that the skill binds."""
        defined: dict[str, list[Answer]] = {}
        for kind, method, field, key in _LISTS:
            keys = await self.active.scoped.keys_of(entry, kind)
            wanted = {name for name in keys if is_template(name) == (key == "uriTemplate")}
            if wanted:
                listed = await self.their_list(ctx, call_next, method, field)
                items = {canonical_key(kind, str(item.get(key))): item for item in listed}
                defined[field] = [item for name, item in items.items() if name in wanted]
                self._report(entry, field, wanted - items.keys())
        return defined

    def _report(self, entry: SkillEntry, field: str, missing: set[str]) -> None:
        for key in sorted(missing):
            if (entry.path, field, key) not in self._missed:
                self._missed.add((entry.path, field, key))
                log.warning(
                    "the skill %r binds %r, but the server's %s have no such thing", entry.path, key, field
                )

    async def _enclosed(self, ctx: Context, catalog: Catalog, entry: SkillEntry) -> ProtocolError:
        outer = await self.active.enclosing(catalog, entry.path)
        around = "" if outer is None else await self.label(ctx, outer)
        return ProtocolError(
            "skill-enclosed",
            f"the skill {entry.name!r} is inside the skill {around!r:.200}, which is not active. "
            f"{native.how_to_activate(around)}",
            f"activate {around!r:.200}",
            rule="M3",
        )


def _as(method: str) -> Route:
    """Answered by our own handler, under its own name."""

    async def route(ctx: Context, call_next: CallNext) -> HandlerResult:
        return await call_next(replace(ctx, method=method))

    return route
