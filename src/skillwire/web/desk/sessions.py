"""Who may use the desk: whoever opened the one link that was printed, in that browser, while this process lives.

The link works once. What it gives is a cookie that scripts cannot read and other sites cannot send along; nothing
of it is written anywhere. Each session has a token that every form carries.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field


def _new_secret() -> str:
    return secrets.token_urlsafe(32)


@dataclass(frozen=True, slots=True)
class Session:
    """One browser. ``id`` is in its cookie, ``csrf`` in every form that it is given."""

    id: str = field(default_factory=_new_secret, repr=False)
    csrf: str = field(default_factory=_new_secret, repr=False)

    def has_token(self, token: str) -> bool:
        """Whether a form that says ``token`` was given to this browser."""
        return _same(token, self.csrf)


class Sessions:
    """The one-time key, and who came in with it."""

    def __init__(self) -> None:
        self.key = _new_secret()
        self.is_used = False
        self._sessions: dict[str, Session] = {}

    def enter(self, key: str) -> Session | None:
        """A session for the first who brings the key."""
        if self.is_used or not _same(key, self.key):
            return None
        self.is_used = True
        session = Session()
        self._sessions[session.id] = session
        return session

    def knows(self, key: str) -> bool:
        """Whether it is the key of this desk, used or not."""
        return _same(key, self.key)

    def find(self, identity: str) -> Session | None:
        """The session of a cookie."""
        return self._sessions.get(identity)


def _same(one: str, other: str) -> bool:
    """Equal, in a time that does not tell how much of it is."""
    return secrets.compare_digest(one.encode(errors="replace"), other.encode())
