"""One catalog, every dialect: which bindings stand on which endpoint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, cast, get_args

from skillwire.errors import FormatError
from skillwire.server.extension import ExtensionBinding
from skillwire.server.fallback.binding import FallbackBinding
from skillwire.server.index import IndexBinding
from skillwire.server.native.activation import DEFAULT_SECONDS, MIN_KEY_BYTES
from skillwire.server.native.binding import NativeBinding
from skillwire.server.routing import ENDPOINTS, Endpoint, Router
from skillwire.server.sep2076.binding import Sep2076Binding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.server.binding import Binding, Served
    from skillwire.server.notifications import Notices

Fallback: TypeAlias = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class Dialects:
    """What the author of a server may choose. The defaults suit every client there is.

    ``default`` is what a connection without a path (stdio, memory) speaks. ``fallback`` says who sees the plain
    tools and prompts: whoever does not declare the extension, everybody, or nobody.

    The rest is about the native endpoint. ``keep_listed`` leaves what skills bind in the lists, active or not
    (M5). ``activation_key`` signs which skills are active, for so many seconds; replicas share it. Without one
    each process makes its own.
    """

    default: Endpoint = "extension"
    fallback: Fallback = "auto"
    keep_listed: bool = False
    activation_key: bytes | None = field(default=None, repr=False)
    activation_seconds: int = DEFAULT_SECONDS

    def __post_init__(self) -> None:
        if self.default not in ENDPOINTS or self.fallback not in get_args(Fallback):
            raise FormatError(
                "dialect-unknown",
                f"there is no dialect {self.default!r:.40} with the fallback {self.fallback!r:.40}",
                f"choose of {', '.join(ENDPOINTS)}, and of {', '.join(get_args(Fallback))}",
            )
        if self.activation_seconds < 1:
            raise FormatError(
                "activation-time-invalid", "nothing would ever be active", "give at least one second"
            )
        key = cast("object", self.activation_key)  # text would be taken as a key, and sign something else
        if key is not None and not (isinstance(key, bytes) and len(key) >= MIN_KEY_BYTES):
            raise FormatError(
                "activation-key-short",
                f"the activation key has fewer than {MIN_KEY_BYTES} bytes",
                "make one with: openssl rand -out activation.key 32",
                rule="M3",
            )


def bind(served: Served, notices: Notices, options: Dialects) -> Router:
    """The middleware that makes ``served`` speak every dialect."""
    bindings: dict[Endpoint, Sequence[Binding]] = {
        "extension": [
            *_fallback(served, notices, options),
            IndexBinding(served, notices),
            ExtensionBinding(served, notices),
        ],
        "sep-2076": [Sep2076Binding(served)],
        "native": [NativeBinding(served, notices, options)],
    }
    return Router(bindings, notices, options.default)


def _fallback(served: Served, notices: Notices, options: Dialects) -> Sequence[Binding]:
    if options.fallback == "never":
        return ()
    return (FallbackBinding(served, notices, always=options.fallback == "always"),)
