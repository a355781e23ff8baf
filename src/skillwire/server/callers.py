"""Who calls, and what each caller may see.

``Skills(…, visible=fn)`` calls ``fn(caller)`` for each request. It returns prefixes of skill paths, or a function
of a skill path. Everything below a visible path is visible.
"""

from __future__ import annotations

from collections import OrderedDict
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request. Without authentication ``subject`` is ``None``.

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


class CallerViews:
    """The catalog that each caller sees. Callers with the same prefixes share one view."""

    def __init__(self, visible: Callable[[Caller], Visible]) -> None:
        self._visible = visible
        self._views: OrderedDict[tuple[str, ...], VisibleCatalog] = OrderedDict()

    def catalog(self, catalog: Catalog) -> Catalog:
        """The part of ``catalog`` that the caller of the current request may see."""
        return self.view(catalog, self._of_caller())

    def view(self, catalog: Catalog, visible: tuple[str, ...] | Callable[[str], bool]) -> Catalog:
        """The part of ``catalog`` that is ``visible``."""
        if callable(visible):
            return VisibleCatalog(catalog, visible)  # a function may answer differently next time
        if EVERYTHING in visible:
            return catalog
        view = self._views.get(visible)
        if view is None or view.inner is not catalog:
            view = self._views[visible] = VisibleCatalog(catalog, visible)
            if len(self._views) > _MOST_VIEWS:
                self._views.popitem(last=False)[1].close()
        self._views.move_to_end(visible)
        return view

    def sees(self) -> Callable[[str], bool]:
        """A function that tells whether the caller may see a URI. It is used until the connection ends."""
        visible = self._of_caller()
        if not callable(visible) and EVERYTHING in visible:
            return lambda _: True
        return lambda uri: is_visible(visible, parse_uri(uri).path)

    def _of_caller(self) -> tuple[str, ...] | Callable[[str], bool]:
        visible = self._visible(current_caller())
        if callable(visible):
            return visible
        if isinstance(visible, str):
            raise TypeError("'visible' returned text; return a list of prefixes, or a function of a skill path")
        return tuple(visible)
