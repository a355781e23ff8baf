"""Who calls, and what each caller may see.

``Skills(…, visible=fn)`` calls ``fn(caller)`` for each request. It returns prefixes of skill paths, or a function
of a skill path. Everything below a visible path is visible.
"""

from __future__ import annotations

from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from mcp.server.auth.middleware.auth_context import get_access_token

from skillwire.catalog.visibility import EVERYTHING, VisibleCatalog, is_visible
from skillwire.skill.uri import parse_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp.server.context import ServerRequestContext

    from skillwire.catalog.contract import Catalog

    Visible = Iterable[str] | Callable[[str], bool]

_MOST_VIEWS = 256  # views for different prefixes that are kept

current_request: ContextVar[ServerRequestContext[Any, Any] | None] = ContextVar("current_request", default=None)


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


def both(one: Callable[[Caller], Visible], other: Callable[[Caller], Visible]) -> Callable[[Caller], Visible]:
    """What both functions allow a caller to see."""

    def visible(caller: Caller) -> Callable[[str], bool]:
        first, second = _checked(one(caller)), _checked(other(caller))
        return lambda path: _allows(first, path) and _allows(second, path)

    return visible


def _checked(visible: Visible) -> tuple[str, ...] | Callable[[str], bool]:
    if callable(visible):
        return visible
    if isinstance(visible, str):
        raise TypeError("'visible' returned text; return a list of prefixes, or a function of a skill path")
    return tuple(sorted(set(visible)))  # callers with the same prefixes share a view


def _allows(visible: tuple[str, ...] | Callable[[str], bool], path: str) -> bool:
    return (not callable(visible) and EVERYTHING in visible) or is_visible(visible, path)


class Views(Protocol):
    """What the caller of the current request sees of a catalog."""

    def catalog(self, catalog: Catalog) -> Catalog:
        """The part of ``catalog`` that the caller may see."""
        ...

    def sees(self) -> Callable[[str], bool]:
        """A function that tells whether the caller may see a URI. It is used until the connection ends."""
        ...


class CallerViews:
    """The catalog that each caller sees. Callers with the same prefixes share one view."""

    def __init__(self, visible: Callable[[Caller], Visible]) -> None:
        self._visible = visible
        self._views: OrderedDict[tuple[str, ...], VisibleCatalog] = OrderedDict()

    def catalog(self, catalog: Catalog) -> Catalog:
        """The part of ``catalog`` that the caller of the current request may see."""
        return self.view(catalog, _checked(self._visible(current_caller())))

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
        visible = _checked(self._visible(current_caller()))
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

    def close(self) -> None:
        """Close all values."""
        while self._values:
            self._values.popitem()[1].close()
