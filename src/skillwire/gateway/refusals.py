"""Who said no to what in a form of their client: it is not asked about again for a while, and binds nobody else.

A no is remembered by the subject of a token, or else by the session. The stateless era has no sessions: clients
without a token are told apart by the names that they give themselves, which many share, so that a no counts there
only for as long as a model would try again at once.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

from mcp.server.auth.middleware.auth_context import get_access_token

from skillwire.gateway.wanting import who_asks
from skillwire.server.binding import connection_of, is_modern

if TYPE_CHECKING:
    from skillwire.server.binding import Context

_SECONDS = 3600.0
_NAMELESS_SECONDS = 60.0
_MOST = 10_000


class Asker(NamedTuple):
    """Whom a no is remembered by, and for how long."""

    key: str
    seconds: float = _SECONDS


About: TypeAlias = tuple[Asker, str, str, str]  # who, label, URI, content


class Refusals:
    """The last of them; what is forgotten is asked about again."""

    def __init__(self) -> None:
        self._until: OrderedDict[About, float] = OrderedDict()
        self._sessions: WeakKeyDictionary[object, int] = WeakKeyDictionary()
        self._numbers = count()

    def asker(self, ctx: Context) -> Asker:
        """Who is behind a request, as far as that can be told."""
        token = get_access_token()
        if token is not None and token.subject:
            return Asker(f"subject:{token.subject}")
        if is_modern(ctx):
            return Asker(who_asks(ctx), _NAMELESS_SECONDS)
        session = connection_of(ctx)
        if session not in self._sessions:
            self._sessions[session] = next(self._numbers)
        return Asker(f"session:{self._sessions[session]}")

    def note(self, about: About) -> None:
        """They said no."""
        self._until[about] = time.monotonic() + about[0].seconds
        self._until.move_to_end(about)
        while len(self._until) > _MOST:
            self._until.popitem(last=False)

    def has(self, about: About) -> bool:
        """Whether they said no, a while ago at most."""
        return time.monotonic() < self._until.get(about, 0.0)
