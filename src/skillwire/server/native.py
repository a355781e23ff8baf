"""The ``native`` dialect: skills that are activated, and bind tools, prompts and resources (M1–M5).

A refused request changes nothing: an activation is stored after everything that can fail.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from skillwire.catalog.skill_content import read_current
from skillwire.errors import ProtocolError
from skillwire.limits import DEFAULT_LIMITS
from skillwire.server.activation import Activations, ActiveSkills, already_active
from skillwire.server.dialect import Answer, DialectHandlers, validated
from skillwire.server.notifications import listen_for_skills
from skillwire.server.scope_guard import ScopeGuard
from skillwire.server.scopes import canonical_key
from skillwire.server.skill_files import SkillFiles
from skillwire.skill.uri import skill_md_uri
from skillwire.wire import native
from skillwire.wire.errors import rpc_errors
from skillwire.wire.extension import SKILLS_LIST
from skillwire.wire.native import KINDS, SKILLS_ACTIVATE, SKILLS_DEACTIVATE, Kind
from skillwire.wire.templates import is_template

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult

    from skillwire.server.dialect import Context, Served
    from skillwire.server.endpoints import Dialects
    from skillwire.server.notifications import Notifier
    from skillwire.skill import SkillEntry

log = logging.getLogger("skillwire.server")

# The listings that define the items of a kind: the kind, the method, the field of its result, the key of an item.
_LISTS: tuple[tuple[Kind, str, str, str], ...] = (
    ("tools", "tools/list", "tools", "name"),
    ("prompts", "prompts/list", "prompts", "name"),
    ("resources", "resources/list", "resources", "uri"),
    ("resources", "resources/templates/list", "resourceTemplates", "uriTemplate"),
)


class NativeHandlers(DialectHandlers):
    """``skills/list``, ``skills/activate``, ``skills/deactivate``, and the guard of scoped items."""

    def __init__(self, served: Served, notifier: Notifier, options: Dialects) -> None:
        super().__init__(served)
        self._activations = Activations(options.activation_key, options.activation_seconds)
        self._active = ActiveSkills(served, self._activations, keep_listed=options.keep_listed)
        self._guard = ScopeGuard(served, SkillFiles(served), self._active)
        self._reported: set[tuple[str, str, str]] = set()
        if not options.keep_listed:
            notifier.scoped_kinds = lambda: self._active.bindings.kinds
        self.handlers |= self._guard.handlers
        self.handlers |= {
            SKILLS_LIST: served.answering(native.ListNativeParams, self._list_skills),
            SKILLS_ACTIVATE: self._activate,
            SKILLS_DEACTIVATE: self._deactivate,
            "subscriptions/listen": listen_for_skills,
        }

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Handle one request. A request with an invalid token is refused, whatever its method is."""
        with rpc_errors():
            self._activations.paths(ctx)
        return await super().__call__(ctx, call_next)

    def declare(self, ctx: Context, capabilities: Answer) -> None:  # noqa: ARG002 - the same for every client
        """M4. Also under ``experimental``: clients of the Python SDK drop an unknown capability."""
        changes = {"listChanged": True}
        capabilities["resources"] = {**(capabilities.get("resources") or {})}
        capabilities["skills"] = changes
        capabilities["experimental"] = {**(capabilities.get("experimental") or {}), "skills": changes}
        if not self._active.keep_listed:
            for kind in KINDS:
                if capabilities.get(kind) is not None:
                    capabilities[kind] = {**capabilities[kind], **changes}

    async def may_subscribe(self, ctx: Context, call_next: CallNext, uri: str) -> bool | None:
        """Whether the caller may subscribe to ``uri``."""
        return await self._guard.may_subscribe(ctx, call_next, uri)

    async def _list_skills(self, params: native.ListNativeParams) -> Answer:
        page = await self.served.visible().list_skills(params.cursor, self.served.page_size)
        skills = [
            native.listed_skill(entry, await self.served.label(entry))
            for entry in page.items
            if await self._active.is_listed(entry.path)
        ]
        return native.list_result(skills, page.next_cursor)

    async def _activate(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        params = validated(ctx, native.ActivateSkillParams)
        with rpc_errors():
            catalog = self.served.visible()
            entry = await self.served.names().find(params.name)
            live = await self._active.live(ctx)
            if entry.path in live:
                raise already_active(params.name)
            if not await self._active.can_activate(entry.path, live):
                raise await self._enclosed(entry)
            entry, document = await read_current(catalog, entry)
            result = native.activate_result(entry, document.body, await self._nested(entry))
            defined = await self._definitions(ctx, call_next, entry)
            gone = frozenset(self._activations.paths(ctx)) - await self._active.live(ctx)
            meta = self._activations.activate(ctx, entry.path, gone)
        resources = [*defined.pop("resources", ()), *result["resources"]]
        result = {**result, **defined, "resources": resources, "_meta": {**result["_meta"], **meta}}
        return self.served.complete(ctx, result)

    async def _deactivate(self, ctx: Context, call_next: CallNext) -> HandlerResult:  # noqa: ARG002
        params = validated(ctx, native.DeactivateSkillParams)
        with rpc_errors():
            entry = await self.served.names().find(params.name)
            if entry.path not in await self._active.live(ctx):
                raise ProtocolError(
                    "skill-not-active",
                    f"the skill {params.name!r:.200} is not active",
                    "there is nothing to deactivate",
                    rule="M3",
                )
            meta = self._activations.deactivate(ctx, entry.path)
        return self.served.complete(ctx, {"_meta": meta} if meta else {})

    async def _nested(self, entry: SkillEntry) -> list[Answer]:
        """The skills directly inside ``entry``, in the form of the listing."""
        catalog, found = self.served.visible(), list[Answer]()
        for path in await catalog.suggest(f"{entry.path}/", DEFAULT_LIMITS.max_page_size):
            outer = await self._active.enclosing(catalog, path)
            inner = await catalog.peek_skill(skill_md_uri(path, self.served.scheme))
            if inner is not None and outer is not None and outer.path == entry.path:
                found.append(native.listed_skill(inner, await self.served.label(inner)))
        return found

    async def _definitions(self, ctx: Context, call_next: CallNext, entry: SkillEntry) -> dict[str, list[Answer]]:
        """M2: the server's definitions of everything that the skill binds."""
        defined: dict[str, list[Answer]] = {}
        for kind, method, field, key in _LISTS:
            keys = await self._active.bindings.keys_of(entry, kind)
            wanted = {name for name in keys if is_template(name) == (key == "uriTemplate")}
            if wanted:
                listed = await self.served.server_items(ctx, call_next, method, field)
                items = {canonical_key(kind, str(item.get(key))): item for item in listed}
                defined[field] = [item for name, item in items.items() if name in wanted]
                self._report(entry, field, wanted - items.keys())
        return defined

    def _report(self, entry: SkillEntry, field: str, missing: set[str]) -> None:
        """Log each missing item once."""
        for key in sorted(missing):
            if (entry.path, field, key) not in self._reported:
                self._reported.add((entry.path, field, key))
                log.warning("the skill %r binds %r, which is not in the server's %s", entry.path, key, field)

    async def _enclosed(self, entry: SkillEntry) -> ProtocolError:
        outer = await self._active.enclosing(self.served.visible(), entry.path)
        around = "" if outer is None else await self.served.label(outer)
        return ProtocolError(
            "skill-enclosed",
            f"the skill {entry.name!r} is inside the skill {around!r:.200}, which is not active. "
            f"{native.how_to_activate(around)}",
            f"activate {around!r:.200}",
            rule="M3",
        )
