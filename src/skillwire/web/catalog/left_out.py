"""What was left out of the catalog and why, as far as the caller may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillwire.catalog.contract import Catalog

_MOST_IGNORED = 1000


async def left_out(catalog: Catalog, most: int) -> dict[str, Any]:
    """The problems that keep skills out, those that do not, and paths that are left out by their names."""
    problems = await catalog.problems()
    refused = [problem for problem in problems if problem.refuses]
    noted = [problem for problem in problems if not problem.refuses]
    ignored = await catalog.ignored()
    return {
        "refused": refused[:most],
        "noted": noted[:most],
        "ignored": ignored[:_MOST_IGNORED],
        "refused_count": len(refused),
        "noted_count": len(noted),
        "ignored_count": len(ignored),
    }
