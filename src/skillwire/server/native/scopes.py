"""Tools, prompts and resources that belong to a skill, said in code (M3).

    refunds = skills.scope("acme/refunds")

    @refunds.tool
    def pay(order: str) -> str: ...

Registers on the server that the skills are attached to, by the server's own decorator, and remembers that the
skill binds it. Skills may be attached before or after. What a server has already is bound by name, with
``refunds.bind(…)``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar, overload

from skillwire.errors import FormatError
from skillwire.skill.uri import parse_path
from skillwire.wire.native import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

F = TypeVar("F", bound="Callable[..., Any]")

_DECORATORS: dict[Kind, str] = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


@dataclass(frozen=True, slots=True)
class _Registration:
    """A function that waits for servers to be registered on."""

    kind: Kind
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def apply(self, server: object) -> None:
        decorator = getattr(server, _DECORATORS[self.kind], None)
        if not callable(decorator):
            raise FormatError(
                "scope-needs-decorators",
                f"a {type(server).__name__} has no decorator to register {self.key!r:.100} by",
                f"let the server list and answer it, and bind it: scope.bind({self.kind}=[{self.key!r:.100}])",
                rule="M3",
            )
        registered: Any = decorator(*self.arguments, **self.options)
        registered(self.function)

    @property
    def key(self) -> str:
        if self.arguments:
            return str(self.arguments[0])
        name = self.options.get("name") or getattr(self.function, "__name__", None)
        if not isinstance(name, str):
            raise FormatError(
                "scope-name-missing", "this function has no name", "say which: scope.tool(name='pay')"
            )
        return name


class Scopes:
    """What skills bind in code. ``version`` grows with it, so that whoever keeps a copy knows when it is old."""

    def __init__(self) -> None:
        self.version = 0
        self._bound: dict[str, dict[Kind, dict[str, None]]] = {}
        self._registrations: list[_Registration] = []
        self._servers: list[object] = []

    def scope(self, path: str) -> Scope:
        """The scope of the skill at ``path``."""
        return Scope(self, parse_path(path))

    def attach(self, server: object) -> None:
        """Register on ``server`` what was declared so far, and from now on what will be."""
        for registration in self._registrations:
            registration.apply(server)
        self._servers.append(server)

    def bind(self, path: str, kind: Kind, keys: Iterable[str]) -> None:
        """The skill at ``path`` binds these."""
        bound = self._bound.setdefault(path, {name: {} for name in KINDS})
        bound[kind].update(dict.fromkeys(keys))
        self.version += 1

    def register(self, path: str, registration: _Registration) -> None:
        """Register a function on every server there is, and on those to come; then the skill binds it."""
        key = registration.key
        for server in self._servers:
            registration.apply(server)
        self._registrations.append(registration)
        self.bind(path, registration.kind, [key])

    def bound_by(self, path: str, kind: Kind) -> tuple[str, ...]:
        """What the skill at ``path`` binds in code."""
        return tuple(self._bound.get(path, {}).get(kind, ()))

    @property
    def paths(self) -> tuple[str, ...]:
        """Skills that bind something in code."""
        return tuple(self._bound)


class Scope:
    """What one skill binds. Made by ``Skills.scope``."""

    def __init__(self, scopes: Scopes, path: str) -> None:
        self._scopes = scopes
        self.path = path

    @overload
    def tool(self, function: F, /) -> F: ...
    @overload
    def tool(self, function: None = None, /, **options: Any) -> Callable[[F], F]: ...
    def tool(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """A tool of this skill; ``options`` are those of the server's own decorator."""
        return self._registering("tools", function, options)

    @overload
    def prompt(self, function: F, /) -> F: ...
    @overload
    def prompt(self, function: None = None, /, **options: Any) -> Callable[[F], F]: ...
    def prompt(self, function: F | None = None, /, **options: Any) -> F | Callable[[F], F]:
        """A prompt of this skill."""
        return self._registering("prompts", function, options)

    def resource(self, uri: str, /, **options: Any) -> Callable[[F], F]:
        """A resource of this skill, or a template of resources."""
        return self._registering("resources", None, options, uri)

    def bind(
        self, *, tools: Iterable[str] = (), prompts: Iterable[str] = (), resources: Iterable[str] = ()
    ) -> None:
        """What the server has already, by name, or by URI (of a template: as it is listed)."""
        for kind, keys in zip(KINDS, (tools, prompts, resources), strict=True):
            if isinstance(keys, str):
                raise FormatError("scope-not-a-list", f"{kind} is one text", f"write {kind}=[{keys!r:.100}]")
            self._scopes.bind(self.path, kind, keys)

    def _registering(
        self, kind: Kind, function: Callable[..., Any] | None, options: Mapping[str, Any], *arguments: str
    ) -> Any:
        def register(function: F) -> F:
            self._scopes.register(self.path, _Registration(kind, function, arguments, options))
            return function

        return register if function is None else register(function)
