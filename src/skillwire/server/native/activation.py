"""Which skills a caller has activated (M3): remembered by its session, or carried by the caller itself.

In the handshake era a session's end forgets them. The stateless era has no sessions, and any replica may get the
next request: the answer to an activation holds a token, signed and expiring, that names the active skills; the
client sends it back with each request. A token is worth something only to the subject it was made for. It opens
nothing by itself: what a caller may not see stays unseen whatever its token names.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from mcp.server.auth.middleware.auth_context import get_access_token

from skillwire.errors import ProtocolError
from skillwire.limits import KIB
from skillwire.server.binding import connection_of, is_modern
from skillwire.wire.meta import ACTIVATION
from skillwire.wire.native import ACTIVATION_INVALID

if TYPE_CHECKING:
    from collections.abc import Collection

    from skillwire.server.binding import Context

MIN_KEY_BYTES = 32
DEFAULT_SECONDS = 3600
MAX_ACTIVE = 64
_MAX_TOKEN = 8 * KIB
_ALGORITHM = "HS256"
_AUDIENCE = "skillwire/activation"
_CLAIMS = ["exp", "aud", "sub", "skills"]

Paths = tuple[str, ...]


class Activations:
    """Paths of active skills, by session or by token. ``key`` signs; without one, only this process can check."""

    def __init__(self, key: bytes | None = None, seconds: int = DEFAULT_SECONDS) -> None:
        self._key = key or secrets.token_bytes(MIN_KEY_BYTES)
        self._seconds = seconds
        self._sessions: WeakKeyDictionary[object, Paths] = WeakKeyDictionary()

    def paths(self, ctx: Context) -> Paths:
        """What was activated, whatever became of it since. A token that is not good is a ``ProtocolError``."""
        if not is_modern(ctx):
            return self._sessions.get(connection_of(ctx), ())
        meta: object = (ctx.params or {}).get("_meta")
        if not isinstance(meta, dict) or ACTIVATION not in meta:
            return ()
        return self._read(cast("dict[str, object]", meta)[ACTIVATION])

    def activate(self, ctx: Context, path: str, gone: Collection[str] = ()) -> dict[str, Any]:
        """One more; ``gone`` are active no longer. The ``_meta`` of the answer."""
        known = self.paths(ctx)
        if path in known and path not in gone:
            raise already_active(path)
        kept = tuple(other for other in known if other != path and other not in gone)
        if len(kept) >= MAX_ACTIVE:
            raise _too_many()
        return self._keep(ctx, (*kept, path))

    def deactivate(self, ctx: Context, path: str) -> dict[str, Any]:
        """One less, and none of those inside it. The ``_meta`` of the answer."""
        inside = f"{path}/"
        return self._keep(
            ctx, tuple(other for other in self.paths(ctx) if other != path and not other.startswith(inside))
        )

    def _keep(self, ctx: Context, paths: Paths) -> dict[str, Any]:
        if is_modern(ctx):
            return {ACTIVATION: self._sign(paths)}
        self._sessions[connection_of(ctx)] = paths
        return {}

    def _sign(self, paths: Paths) -> str:
        import jwt  # late, and below: only those who activate skills need it

        claims = {
            "aud": _AUDIENCE,
            "sub": _subject(),
            "exp": int(time.time()) + self._seconds,
            "skills": list(paths),
        }
        token = jwt.encode(claims, self._key, algorithm=_ALGORITHM)
        if len(token) > _MAX_TOKEN:
            raise _too_many()
        return token

    def _read(self, token: object) -> Paths:
        if not isinstance(token, str) or len(token) > _MAX_TOKEN:
            raise _refused("is not one of this server")
        import jwt

        try:
            claims = jwt.decode(
                token,
                self._key,
                algorithms=[_ALGORITHM],
                audience=_AUDIENCE,
                subject=_subject(),
                options={"require": _CLAIMS},
            )
        except jwt.ExpiredSignatureError as error:
            raise _refused("has expired") from error
        except (jwt.PyJWTError, ValueError) as error:  # whatever a stranger's text makes of it
            raise _refused("is not one of this server, or of another caller") from error
        return _skills(claims["skills"])


def already_active(name: str) -> ProtocolError:
    """The refusal of a second activation."""
    return ProtocolError(
        "skill-already-active",
        f"the skill {name!r:.200} is active already",
        "use what its activation named, or deactivate it first: skills/deactivate",
        rule="M3",
    )


def _skills(value: object) -> Paths:
    items = cast("list[object]", value) if isinstance(value, list) else [None]
    if len(items) > MAX_ACTIVE or not all(isinstance(item, str) for item in items):
        raise _refused("is not one of this server")
    return tuple(cast("list[str]", items))


def _subject() -> str:
    """Who is calling: nobody in particular, where nobody has to say."""
    token = get_access_token()
    if token is None:
        return ""
    return f"client:{token.client_id}" if token.subject is None else f"subject:{token.subject}"


def _refused(what: str) -> ProtocolError:
    return ProtocolError(
        ACTIVATION_INVALID,
        f"the activation token {what}: activate the skill again, without it",
        "leave the token out of the next request, and keep the one that the activation gives",
        rule="M3",
    )


def _too_many() -> ProtocolError:
    return ProtocolError(
        "too-many-active",
        f"at most {MAX_ACTIVE} skills can be active at once, and their paths have to fit into a token",
        "deactivate one first",
        rule="M3",
    )
