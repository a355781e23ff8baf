"""One catalog, every dialect: which bindings stand on which endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from skillwire.server.extension import ExtensionBinding, ReadingFiles
from skillwire.server.routing import Endpoint, Router

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.server.binding import Binding, Served
    from skillwire.server.notices import Notices

Fallback: TypeAlias = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class Dialects:
    """What the author of a server may choose. The defaults suit every client there is.

    ``default`` is what a connection without a path (stdio, memory) speaks. ``fallback`` says who sees the plain
    tools and prompts: whoever does not declare the extension, everybody, or nobody.
    """

    default: Endpoint = "extension"
    fallback: Fallback = "auto"


def bind(served: Served, notices: Notices, options: Dialects) -> Router:
    """The middleware that makes ``served`` speak every dialect."""
    bindings: dict[Endpoint, Sequence[Binding]] = {
        "extension": [ExtensionBinding(served, notices)],
        "sep-2076": [ReadingFiles(served)],
        "native": [ReadingFiles(served)],
    }
    return Router(bindings, notices, options.default)
