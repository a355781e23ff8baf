"""Who calls, and what each caller may see.

``Skills(…, visible=fn)`` calls ``fn(caller)`` for each request. It returns prefixes of skill paths, or a function
of a skill path. Everything below a visible path is visible. If ``fn`` is a coroutine function, it is awaited once
when a request arrives (``decide``), because the handlers of the request use its result without waiting.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import isawaitable, iscoroutinefunction
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from mcp.server.auth.middleware.auth_context import get_access_token

from skillwire.catalog.visibility import EVERYTHING, VisibleCatalog, is_visible
from skillwire.errors import FormatError
from skillwire.skill.uri import parse_path, parse_uri

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp.server.context import ServerRequestContext

    from skillwire.catalog.contract import Catalog

    Visible = Iterable[str] | Callable[[str], bool]
    VisibleTo = Callable[["Caller"], Visible | Awaitable[Visible]]

_MOST_VIEWS = 256  # views for different prefixes that are kept

current_request: ContextVar[ServerRequestContext[Any, Any] | None] = ContextVar("current_request", default=None)

# What the caller of the current request may see, and whose function decided it.
_decided: ContextVar[tuple[CallerViews | None, tuple[str, ...] | Callable[[str], bool]]] = ContextVar(
    "_decided", default=(None, ())
)


def everything(uri: str) -> bool:  # noqa: ARG001 - without a policy
    """What a caller may see if there are no restrictions."""
    return True


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request. Without authentication ``subject`` is ``None``, and ``scopes`` is empty.

    ``request`` is the SDK's context of the request, with its session and, over HTTP, its headers.
    """

    subject: str | None = None
    scopes: tuple[str, ...] = ()
    request: ServerRequestContext[Any, Any] | None = field(default=None, compare=False, repr=False)


def current_caller() -> Caller:
    """The caller of the current request."""
    token = get_access_token()
    if token is None:
        return Caller(request=current_request.get())
    return Caller(token.subject, tuple(token.scopes), current_request.get())


def both(one: Callable[[Caller], Visible], other: VisibleTo) -> VisibleTo:
    """What both functions allow a caller to see."""

    def merged(caller: Caller, given: object) -> Callable[[str], bool]:
        first, second = _checked(one(caller)), _checked(given)
        return lambda path: _allows(first, path) and _allows(second, path)

    async def visible_async(caller: Caller) -> Callable[[str], bool]:
        return merged(caller, await cast("Awaitable[Visible]", other(caller)))

    def visible(caller: Caller) -> Callable[[str], bool]:
        return merged(caller, other(caller))

    return visible_async if iscoroutinefunction(other) else visible


def _checked(visible: object) -> tuple[str, ...] | Callable[[str], bool]:
    """What a function of the caller returned. ``TypeError`` for anything else, so that nothing is visible."""
    if iscoroutinefunction(visible):
        raise TypeError("'visible' returned a coroutine function; return a plain function of a skill path")
    if callable(visible):
        test = cast("Callable[[str], object]", visible)

        def tested(path: str) -> bool:
            answer = test(path)
            if isawaitable(answer):  # it would count as true
                raise TypeError("the function that 'visible' returned is asynchronous; return a plain function")
            return bool(answer)

        return tested
    if isinstance(visible, str | bytes) or not isinstance(visible, Iterable):
        kind = type(visible).__name__
        raise TypeError(f"'visible' returned {kind}; return a list of prefixes, or a function of a skill path")
    # Sorted, because callers with the same prefixes share a view.
    return _valid(tuple(sorted(set(cast("Iterable[str]", visible)))))


@lru_cache(_MOST_VIEWS)
def _valid(prefixes: tuple[str, ...]) -> tuple[str, ...]:
    try:
        for prefix in prefixes:
            if prefix != EVERYTHING:
                parse_path(prefix)
    except FormatError as error:  # the function is at fault, so the caller learns nothing about it
        raise ValueError(f"'visible' returned an invalid prefix: {error.message}") from error
    return prefixes


def _allows(visible: tuple[str, ...] | Callable[[str], bool], path: str) -> bool:
    return (not callable(visible) and EVERYTHING in visible) or is_visible(visible, path)


class Views(Protocol):
    """What the caller of the current request sees of a catalog."""

    async def decide(self) -> None:
        """Prepare the answers for the current request. Called before a request is handled."""

    def catalog(self, catalog: Catalog) -> Catalog:
        """The part of ``catalog`` that the caller may see."""
        ...

    def sees(self) -> Callable[[str], bool]:
        """A function that tells whether the caller may see a URI. It is used until the connection ends."""
        ...


class CallerViews:
    """The catalog that each caller sees. Callers with the same prefixes share one view."""

    def __init__(self, visible: VisibleTo) -> None:
        self._visible = visible
        self._waits = iscoroutinefunction(visible)
        self._views: OrderedDict[tuple[str, ...], VisibleCatalog] = OrderedDict()

    async def decide(self) -> None:
        """Await a coroutine function for the current request. Call this before a request is handled."""
        if self._waits:
            given = await cast("Awaitable[Visible]", self._visible(current_caller()))
            _decided.set((self, _checked(given)))

    def _of_caller(self) -> tuple[str, ...] | Callable[[str], bool]:
        """What the caller of the current request may see."""
        if not self._waits:
            return _checked(self._visible(current_caller()))
        views, visible = _decided.get()
        if views is not self:
            raise RuntimeError("what the caller may see is not decided yet")
        return visible

    def catalog(self, catalog: Catalog) -> Catalog:
        """The part of ``catalog`` that the caller of the current request may see."""
        return self.view(catalog, self._of_caller())

    def view(self, catalog: Catalog, visible: tuple[str, ...] | Callable[[str], bool]) -> Catalog:
        """The part of ``catalog`` that is ``visible``."""
        if callable(visible):
            return VisibleCatalog(catalog, visible)  # a function may answer differently next time
        if EVERYTHING in visible:
            return catalog
        view = self._views.pop(visible, None)
        if view is None or view.inner is not catalog:
            if view is not None:  # of a catalog that was replaced
                view.close()
            view = VisibleCatalog(catalog, visible)
        self._views[visible] = view
        if len(self._views) > _MOST_VIEWS:
            self._views.popitem(last=False)[1].close()
        return view

    def sees(self) -> Callable[[str], bool]:
        """A function that tells whether the caller may see a URI. It is used until the connection ends."""
        visible = self._of_caller()
        if not callable(visible) and EVERYTHING in visible:
            return everything
        return lambda uri: is_visible(visible, parse_uri(uri).path)


class _Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)


class ViewCache(Generic[C]):
    """One value for each view that callers have of the skills, made on first use.

    The most recently used ones are kept, and the others are closed: a value may subscribe to changes of its view.
    """

    def __init__(self, make: Callable[[Catalog], C], most: int) -> None:
        self._make = make
        self._most = most
        self._values: OrderedDict[Catalog, C] = OrderedDict()

    def of(self, view: Catalog) -> C:
        """The value for ``view``."""
        value = self._values.pop(view, None) or self._make(view)
        self._values[view] = value
        if len(self._values) > self._most:
            self._values.popitem(last=False)[1].close()
        return value

    def values(self) -> list[C]:
        """All values."""
        return list(self._values.values())

    def close(self) -> None:
        """Close all values."""
        while self._values:
            self._values.popitem()[1].close()
