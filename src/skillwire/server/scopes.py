"""Tools, prompts and resources that belong to skills, declared in code or in the frontmatter (M3).

    refunds = skills.scope("acme/refunds")

    @refunds.tool
    def pay(order: str) -> str: ...

A ``Scope`` registers the function on the server with the server's own decorator, and records that the skill binds
it. Skills may be attached before or after. Items that the server has already are bound by name, with
``refunds.bind(…)``.

``Bindings`` collects the bindings of all skills, listed or not, once and again after each change; no request
searches all skills. Several skills may bind the same item. A skill that is made from a template binds nothing by
its frontmatter, which is unknown before the skill is made. Code can bind items to it.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, overload

import anyio
from anyio import lowlevel

from skillwire.catalog.contract import LargeCatalog
from skillwire.errors import FormatError
from skillwire.skill.uri import parse_path, skill_md_uri
from skillwire.wire.native import KINDS, BoundKind, bound_in
from skillwire.wire.templates import canonical_uri, is_template, matches_template

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from skillwire.catalog.contract import Catalog
    from skillwire.server.dialect import ServedSkills
    from skillwire.skill import SkillEntry

F = TypeVar("F", bound="Callable[..., Any]")

log = logging.getLogger("skillwire.server")

_ATTEMPTS = 3
_PAUSE_EVERY = 256  # skills, so that other requests get their turn
_DECORATORS: dict[BoundKind, str] = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


class Scopes:
    """The bindings in code. ``version`` grows with each change, so that a copy can be recognised as outdated."""

    def __init__(self) -> None:
        self.version = 0
        self._bound: dict[str, dict[BoundKind, dict[str, None]]] = {}
        self._registrations: list[Callable[[object], None]] = []
        self._servers: list[object] = []

    def scope(self, path: str) -> Scope:
        """The scope of the skill at ``path``."""
        return Scope(self, parse_path(path))

    def attach(self, server: object) -> None:
        """Register all functions on ``server``, those that are declared later too."""
        for apply in self._registrations:
            apply(server)
        self._servers.append(server)

    def bind(self, path: str, kind: BoundKind, keys: Iterable[str]) -> None:
        """Bind items to the skill at ``path``."""
        bound = self._bound.setdefault(path, {name: {} for name in KINDS})
        bound[kind].update(dict.fromkeys(keys))
        self.version += 1

    def register(self, apply: Callable[[object], None]) -> None:
        """Apply ``apply``, which registers a function, to all servers, present and future."""
        for server in self._servers:
            apply(server)
        self._registrations.append(apply)

    def bound_by(self, path: str, kind: BoundKind) -> tuple[str, ...]:
        """The items that the skill at ``path`` binds in code."""
        return tuple(self._bound.get(path, {}).get(kind, ()))

    @property
    def paths(self) -> tuple[str, ...]:
        """The skills that bind items in code."""
        return tuple(self._bound)


class Scope:
    """The bindings of one skill. ``Skills.scope`` makes it."""

    def __init__(self, scopes: Scopes, path: str) -> None:
        self._scopes = scopes
        self.path = path

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, function: None = None, /, **options: Any) -> Callable[[F], F]: ...
    def tool(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """A tool of this skill; ``options`` are those of the server's own decorator."""
        return self._register("tools", function, options)

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, function: None = None, /, **options: Any) -> Callable[[F], F]: ...
    def prompt(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """A prompt of this skill."""
        return self._register("prompts", function, options)

    def resource(self, uri: str, /, **options: Any) -> Callable[[F], F]:
        """A resource of this skill, or a template of resources."""
        return self._register("resources", None, options, uri)

    def bind(
        self, *, tools: Iterable[str] = (), prompts: Iterable[str] = (), resources: Iterable[str] = ()
    ) -> None:
        """Bind items of the server by name or by URI; a template by its text in the listing."""
        for kind, keys in zip(KINDS, (tools, prompts, resources), strict=True):
            if isinstance(keys, str):
                raise FormatError(
                    "scope-not-a-list", f"{kind} is one text instead of a list", f"write {kind}=[{keys!r:.100}]"
                )
            self._scopes.bind(self.path, kind, keys)

    def _register(
        self, kind: BoundKind, function: Callable[..., Any] | None, options: Mapping[str, Any], *arguments: str
    ) -> Any:
        def register(function: F) -> F:
            key = arguments[0] if arguments else options.get("name") or getattr(function, "__name__", None)
            if not isinstance(key, str):
                raise FormatError(
                    "scope-name-missing", "this function has no name", "give one: scope.tool(name='pay')"
                )

            def apply(server: object) -> None:
                decorator: Any = getattr(server, _DECORATORS[kind], None)
                if not callable(decorator):
                    raise FormatError(
                        "scope-needs-decorators",
                        f"a {type(server).__name__} has no decorator to register {key!r:.100} with",
                        f"implement it in the server's handlers, and bind it: scope.bind({kind}=[{key!r:.100}])",
                        rule="M3",
                    )
                registered: Any = decorator(*arguments, **options)
                registered(function)

            self._scopes.register(apply)
            self._scopes.bind(self.path, kind, [key])
            return function

        return register if function is None else register(function)


@dataclass(frozen=True, slots=True)
class Bound:
    """The paths of the skills that bind a name or a URI, for each kind."""

    skills: Mapping[BoundKind, Mapping[str, tuple[str, ...]]]

    def skills_of(self, kind: BoundKind, key: str) -> tuple[str, ...]:
        """The skills that bind exactly this item."""
        return self.skills[kind].get(canonical_key(kind, key), ())

    def by_template(self, uri: str) -> tuple[str, ...]:
        """The skills that bind a template that matches ``uri``."""
        resources = self.skills["resources"]
        found = [paths for key, paths in resources.items() if is_template(key) and matches_template(key, uri)]
        return tuple(dict.fromkeys(path for paths in found for path in paths))


class Bindings:
    """The current bindings of all skills of ``served``, in code (``scopes``) and in frontmatter."""

    def __init__(self, served: ServedSkills, scopes: Scopes) -> None:
        self._served = served
        self._scopes = scopes
        self._warned_paths: set[str] = set()
        self._has_warned = False
        self._turn = anyio.Lock()
        self._known: tuple[tuple[int, int], Bound] | None = None
        self.kinds: frozenset[BoundKind] = frozenset()  # of which items are bound, as far as they are known

    async def keys_of(self, entry: SkillEntry, kind: BoundKind) -> frozenset[str]:
        """The items that one skill binds and that are hidden because of it (M3). URIs are canonical."""
        bound, declared = await self.current(), bound_in(entry.frontmatter).get(kind, ())
        keys = {canonical_key(kind, key) for key in (*self._scopes.bound_by(entry.path, kind), *declared)}
        own = frozenset(key for key in keys if entry.path in bound.skills_of(kind, key))
        if own < keys and not self._has_warned:
            self._has_warned = True
            log.warning(
                "the frontmatter of %r, which is made from a template, cannot bind %s %s: bind them in code, with"
                " skills.scope(%r).bind(%s=[…])",
                entry.path,
                kind,
                ", ".join(sorted(keys - own)),
                entry.path,
                kind,
            )
        return own

    async def current(self) -> Bound:
        """All bindings. After a change they are collected again."""
        async with self._turn:
            for _ in range(_ATTEMPTS):
                mark = (self._served.version(), self._scopes.version)
                if self._known is not None and self._known[0] == mark:
                    return self._known[1]
                bound = await self._collect(self._served.catalog)
                self._known = (mark, bound)
                self.kinds = frozenset(kind for kind in KINDS if bound.skills[kind])
            return await self._collect(self._served.catalog)  # it changes all the time

    async def _collect(self, catalog: Catalog) -> Bound:
        skills: dict[BoundKind, dict[str, tuple[str, ...]]] = {kind: {} for kind in KINDS}
        for path in self._scopes.paths:
            await self._warn_if_missing(catalog, path)
            for kind in KINDS:
                _add(skills[kind], kind, self._scopes.bound_by(path, kind), path)
        for entry in await catalog.unlisted():
            _add_declared(skills, entry)
        if isinstance(catalog, LargeCatalog):  # its server has no items of its own that a skill could bind
            return Bound(skills)
        count = 0
        async for entry in catalog.entries():
            count += 1
            if count % _PAUSE_EVERY == 0:
                await lowlevel.checkpoint()
            _add_declared(skills, entry)
        return Bound(skills)

    async def _warn_if_missing(self, catalog: Catalog, path: str) -> None:
        """Log once that code binds items to a missing skill, which cannot be activated: the path may be wrong."""
        if (
            path not in self._warned_paths
            and await catalog.peek_skill(skill_md_uri(path, self._served.scheme)) is None
        ):
            self._warned_paths.add(path)
            log.warning("code binds items to the skill %r, which does not exist: they stay hidden", path)


def canonical_key(kind: BoundKind, key: str) -> str:
    """The form to compare: names unchanged, URIs in one spelling."""
    return canonical_uri(key) if kind == "resources" and not is_template(key) else key


def _add_declared(skills: dict[BoundKind, dict[str, tuple[str, ...]]], entry: SkillEntry) -> None:
    for kind, keys in bound_in(entry.frontmatter).items():
        _add(skills[kind], kind, keys, entry.path)


def _add(skills: dict[str, tuple[str, ...]], kind: BoundKind, keys: Iterable[str], path: str) -> None:
    for key in keys:
        canonical = canonical_key(kind, key)
        known = skills.get(canonical, ())
        skills[canonical] = known if path in known else (*known, path)
