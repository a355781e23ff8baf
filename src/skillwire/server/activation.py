"""Active skills in the ``native`` dialect, and what a caller may use because of them (M3, M5).

In the handshake era the active skills belong to the session. The stateless era has no sessions, and any replica
may get the next request. There the response to an activation contains a signed token, which expires and lists the
active skills, and the client sends it with each request. A token is valid only for the subject that it was issued
to. It grants no access: hidden skills stay hidden, whatever the token lists.

A tool, prompt or resource that a skill binds is in no list, active or not: activating the skill returns its
definition. An activated skill counts only while it exists, is visible to the caller, and is inside no inactive
skill. A skill inside a listed skill is scoped too: it can be activated once the outer one is active.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from mcp.server.auth.middleware.auth_context import get_access_token

from skillwire.errors import ProtocolError
from skillwire.limits import KIB
from skillwire.server.dialect import MIN_KEY_BYTES, is_modern
from skillwire.server.scopes import canonical_key
from skillwire.server.sdk_compat import connection_of
from skillwire.skill.uri import skill_md_uri
from skillwire.wire.meta import ACTIVATION
from skillwire.wire.native import ACTIVATION_INVALID

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from skillwire.catalog.contract import Catalog
    from skillwire.server.dialect import Context, ServedSkills
    from skillwire.server.scopes import Bindings, Bound
    from skillwire.skill import SkillEntry
    from skillwire.wire.native import BoundKind

MAX_ACTIVE = 64
_MAX_TOKEN = 8 * KIB
_ALGORITHM = "HS256"
_AUDIENCE = "skillwire/activation"
_CLAIMS = ["exp", "aud", "sub", "skills"]


class Activations:
    """Paths of activated skills, by session or by token. Without ``key`` tokens are valid only in this process."""

    def __init__(self, key: bytes | None = None, seconds: int = 3600) -> None:
        self._key = key or secrets.token_bytes(MIN_KEY_BYTES)
        self._seconds = seconds
        self._sessions: WeakKeyDictionary[object, tuple[str, ...]] = WeakKeyDictionary()

    def paths(self, ctx: Context) -> tuple[str, ...]:
        """The activated skills, even if they no longer exist. An invalid token raises a ``ProtocolError``."""
        if not is_modern(ctx):
            return self._sessions.get(connection_of(ctx.session), ())
        meta: object = (ctx.params or {}).get("_meta")
        if not isinstance(meta, dict) or ACTIVATION not in meta:
            return ()
        return self._read(cast("dict[str, object]", meta)[ACTIVATION])

    def activate(self, ctx: Context, path: str, gone: Collection[str] = ()) -> dict[str, Any]:
        """Activate a skill; those in ``gone`` are no longer active. Returns the ``_meta`` of the response."""
        known = self.paths(ctx)
        if path in known and path not in gone:
            raise already_active(path)
        kept = tuple(other for other in known if other != path and other not in gone)
        if len(kept) >= MAX_ACTIVE:
            raise _too_many()
        return self._keep(ctx, (*kept, path))

    def deactivate(self, ctx: Context, path: str) -> dict[str, Any]:
        """Deactivate a skill and all skills inside it. Returns the ``_meta`` of the response."""
        inside = f"{path}/"
        return self._keep(
            ctx, tuple(other for other in self.paths(ctx) if other != path and not other.startswith(inside))
        )

    def _keep(self, ctx: Context, paths: tuple[str, ...]) -> dict[str, Any]:
        if is_modern(ctx):
            return {ACTIVATION: self._sign(paths)}
        self._sessions[connection_of(ctx.session)] = paths
        return {}

    def _sign(self, paths: tuple[str, ...]) -> str:
        import jwt  # late, here and below: only clients that activate skills need it

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

    def _read(self, token: object) -> tuple[str, ...]:
        if not isinstance(token, str) or len(token) > _MAX_TOKEN:
            raise _refused("was not issued by this server")
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
        except (jwt.PyJWTError, ValueError) as error:  # a forged token may cause either
            raise _refused("was not issued by this server, or not to this caller") from error
        value: object = claims["skills"]
        paths = cast("list[object]", value) if isinstance(value, list) else [None]
        if len(paths) > MAX_ACTIVE or not all(isinstance(path, str) for path in paths):
            raise _refused("was not issued by this server")
        return tuple(cast("list[str]", paths))


class ActiveSkills:
    """Decides what is hidden. With ``keep_listed`` only items of invisible skills are hidden (M5)."""

    def __init__(
        self, served: ServedSkills, bindings: Bindings, activations: Activations, *, keep_listed: bool
    ) -> None:
        self._served = served
        self._activations = activations
        self.bindings = bindings
        self.keep_listed = keep_listed

    async def live(self, ctx: Context) -> frozenset[str]:
        """Paths of the skills that are active now for this caller."""
        catalog = self._served.visible()
        live: set[str] = set()
        for path in sorted(self._activations.paths(ctx)):  # an outer skill sorts before the skills inside it
            if await self._peek(catalog, path) is not None and await self.can_activate(path, live):
                live.add(path)
        return frozenset(live)

    async def enclosing(self, catalog: Catalog, path: str) -> SkillEntry | None:
        """The innermost listed skill around ``path`` in ``catalog``."""
        while path := path.rpartition("/")[0]:
            entry = await self._peek(catalog, path)
            if entry is not None and entry.listed:
                return entry
        return None

    async def can_activate(self, path: str, live: Collection[str] = ()) -> bool:
        """Whether the skill at ``path`` is inside no visible skill, or inside one of ``live``."""
        if self.keep_listed:
            return True
        outer = await self.enclosing(self._served.visible(), path)
        return outer is None or outer.path in live

    async def hidden(self, kind: BoundKind) -> frozenset[str] | None:
        """Names or canonical URIs that are in no list; ``None`` if no skill binds items of this kind."""
        keys = (await self.bindings.current()).skills[kind]
        if not keys or not self.keep_listed:
            return frozenset(keys) or None
        sees = self._served.sees()
        return frozenset(key for key, paths in keys.items() if not any(map(sees, self._uris(paths))))

    async def refusal(self, ctx: Context, paths: tuple[str, ...]) -> list[SkillEntry] | None:
        """``None`` if one of ``paths`` gives access; otherwise the listed skills that the caller can activate.

        A refusal contains no unlisted skills, and does not generate any.
        """
        if not paths or await self._usable(ctx, paths):
            return None
        catalog = self._served.visible()
        entries = [await self._peek(catalog, path) for path in paths]
        return [entry for entry in entries if entry is not None and entry.listed]

    async def binders(self, kind: BoundKind, key: str) -> tuple[Bound, tuple[str, ...]]:
        """All bindings, and the skills that bind exactly ``key``."""
        bound = await self.bindings.current()
        return bound, bound.skills_of(kind, key)

    async def _usable(self, ctx: Context, paths: Collection[str]) -> frozenset[str]:
        if self.keep_listed:
            sees = self._served.sees()
            return frozenset(path for path, uri in zip(paths, self._uris(paths), strict=True) if sees(uri))
        return (await self.live(ctx)).intersection(paths)

    def _uris(self, paths: Iterable[str]) -> list[str]:
        return [skill_md_uri(path, self._served.scheme) for path in paths]

    async def _peek(self, catalog: Catalog, path: str) -> SkillEntry | None:
        return await catalog.peek_skill(skill_md_uri(path, self._served.scheme))


def is_hidden(kind: BoundKind, key: object, hidden: frozenset[str]) -> bool:
    """Whether a listed item is in ``hidden``."""
    return isinstance(key, str) and canonical_key(kind, key) in hidden


def already_active(name: str) -> ProtocolError:
    """The error for a second activation."""
    return ProtocolError(
        "skill-already-active",
        f"the skill {name!r:.200} is active already",
        "use the result of its activation, or deactivate it first: skills/deactivate",
        rule="M3",
    )


def _subject() -> str:
    """The caller; empty on a server without tokens."""
    token = get_access_token()
    if token is None:
        return ""
    return f"client:{token.client_id}" if token.subject is None else f"subject:{token.subject}"


def _refused(problem: str) -> ProtocolError:
    return ProtocolError(
        ACTIVATION_INVALID,
        f"the activation token {problem}: activate the skill again, without it",
        "omit the token from the next request, and keep the one that the activation returns",
        rule="M3",
    )


def _too_many() -> ProtocolError:
    return ProtocolError(
        "too-many-active",
        f"at most {MAX_ACTIVE} skills can be active at once, and their paths must fit into a token",
        "deactivate one first",
        rule="M3",
    )
