"""A page of the catalog, with what all of them show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skillwire.web.theme import page

if TYPE_CHECKING:
    from starlette.responses import Response

    from skillwire.web.catalog.site import Site


def framed(site: Site, template: str, *, status: int = 200, **context: Any) -> Response:
    """``template`` as a page of ``site``."""
    common = {"base": site.base, "site": site.name, "query": "", "needs_token": site.needs_token}
    return page(template, status=status, **{**common, **context})
