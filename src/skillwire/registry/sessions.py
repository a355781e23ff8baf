"""Who signed in to the pages of a registry.

A person pastes a registry token once. The browser gets a random secret, and the database has its digest and the
token, so that every replica knows the session. It ends with its token, and after twelve hours.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser

from skillwire.errors import SkillwireError
from skillwire.registry.identity import TOKEN_PREFIX
from skillwire.server.access import digest_token
from skillwire.server.page import Sessions

if TYPE_CHECKING:
    from starlette.types import Scope

    from skillwire.registry.contract import RegistryStore
    from skillwire.registry.identity import Identities

SESSION_SECONDS: Final = 12 * 3600.0


class RegistrySessions(Sessions):
    """Sessions in the database. Callers without one see what is public."""

    cookie = "skillwire_registry"  # the same on every replica
    same_site = "strict"  # these pages can change things
    is_required = False
    ends = "when you sign out, when the token is revoked or expires, and after twelve hours"

    def __init__(self, store: RegistryStore, identities: Identities) -> None:
        self._store = store
        self._identities = identities

    async def open(self, token: str) -> str | None:
        """Open a session for a registry token. Returns its secret, or ``None`` if the token is unknown."""
        now = time.time()
        found = await self._store.token(digest_token(token), now) if token.startswith(TOKEN_PREFIX) else None
        if found is None:
            return None
        secret = secrets.token_urlsafe(32)
        await self._store.open_session(found.id, digest_token(secret), now + SESSION_SECONDS)
        return secret

    async def close(self, name: str) -> None:
        """End a session."""
        await self._store.close_session(digest_token(name))

    async def user(self, scope: Scope) -> AuthenticatedUser | None:
        """The user of the session in the cookie of a request."""
        secret = self.name_in(scope)
        if not secret:
            return None
        try:
            holder = await self._identities.session_holder(secret, time.time())
        except SkillwireError:  # the page itself shows that the database fails
            return None
        return None if holder is None else AuthenticatedUser(holder)
