"""Access control: bearer tokens, JSON web tokens, and the path prefixes that each subject may see.

The rules are in a TOML file. Static tokens are stored as SHA-256 digests: they are long and random, so a digest
reveals nothing. JSON web tokens are checked with an issuer's key set (OAuth 2.1 resource server). Both kinds give
a request a subject, and the subject has prefixes that it may see. An unknown subject sees nothing. The two kinds
share no subjects (Z7): an issuer chooses its own names, so they get the prefix ``jwt:`` here.

    [[token]]
    subject = "billing-agents"
    sha256 = "…"
    see = ["acme/billing"]

    [jwt]
    issuer = "https://login.example.com"
    audience = "https://skills.example.com/mcp"
    jwks = "https://login.example.com/keys.json"

    [see]
    "ada@example.com" = ["*"]
"""

from __future__ import annotations

import hashlib
import re
import secrets
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from anyio import to_thread
from mcp.server.auth.provider import AccessToken

from skillwire.catalog.visibility import EVERYTHING
from skillwire.errors import FormatError, NotFoundError
from skillwire.skill.uri import parse_path

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skillwire.server.callers import Caller

JWT = "jwt:"  # the prefix of the subjects of JSON web tokens
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA"]
_URL = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(/\S*)?\Z")
_HEX_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_MAX_TOKEN = 16 * 1024


@dataclass(frozen=True, slots=True)
class JwtSettings:
    """The issuer of the accepted JSON web tokens, and the audience that they must have."""

    issuer: str
    audience: str
    jwks: str


@dataclass(frozen=True, slots=True)
class Access:
    """The contents of an access file."""

    tokens: dict[str, str] = field(default_factory=dict[str, str])  # sha256 of the token -> subject
    jwt: JwtSettings | None = None
    see: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])  # subject -> prefixes

    def holder(self, headers: Iterable[tuple[bytes, bytes]]) -> str | None:
        """The subject of the static token in the headers of a request."""
        given = next((value for name, value in headers if name == b"authorization"), b"")
        kind, _, token = given.decode("latin-1").partition(" ")
        return self.tokens.get(digest_token(token)) if kind.lower() == "bearer" else None

    def prefixes(self, subject: str | None) -> tuple[str, ...]:
        """The prefixes that a subject may see; none for an unknown subject."""
        return self.see.get(subject or "", ())

    def visible(self, caller: Caller) -> tuple[str, ...]:
        """The prefixes that a caller may see, for ``Skills(visible=…)``."""
        return self.prefixes(caller.subject)


def new_token() -> tuple[str, str]:
    """A new token for a caller, and the digest to store."""
    token = f"skw_{secrets.token_urlsafe(32)}"
    return token, digest_token(token)


def digest_token(token: str) -> str:
    """The stored form of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def read_access(path: Path) -> Access:
    """Read an access file. The ``FormatError`` names the invalid part."""
    try:
        data = tomllib.loads(path.read_text())
    except OSError as error:
        raise NotFoundError(
            "access-file-unknown", f"the access file {path.name!r} cannot be read", "give the path of a TOML file"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _invalid(f"the access file is not TOML: {error}") from error
    unknown = data.keys() - {"token", "jwt", "see"}
    if unknown:
        raise _invalid(f"the access file has unknown parts: {', '.join(sorted(unknown))}")
    if "see" in data and "jwt" not in data:
        raise _invalid(
            "[see] is only for the subjects of web tokens; write the prefixes of a [[token]] into its see"
        )
    see = _see(data.get("see", {}))
    access = Access(_tokens(data.get("token", []), see), _jwt(data.get("jwt")), see)
    if not access.tokens and access.jwt is None:
        raise _invalid("the access file has neither [[token]] nor [jwt], so no caller would have access")
    return access


def _tokens(value: Any, see: dict[str, tuple[str, ...]]) -> dict[str, str]:
    """Digests and their subjects. The prefixes of the tokens are added to ``see``."""
    tokens: dict[str, str] = {}
    for item in _list(value, "[[token]]"):
        fields = _table(item, "[[token]]")
        subject, digest = fields.get("subject"), fields.get("sha256")
        if not isinstance(subject, str) or not isinstance(digest, str) or not _HEX_DIGEST.match(digest):
            raise _invalid("every [[token]] needs a subject and the sha256 of the token")
        if subject.startswith(JWT):
            raise _invalid(
                f"the subject {subject!r:.80} of a [[token]] begins with {JWT}, which is for web tokens"
            )
        tokens[digest] = subject
        see[subject] = (*see.get(subject, ()), *_prefixes(subject, fields.get("see", [])))
    return tokens


def _jwt(value: Any) -> JwtSettings | None:
    if value is None:
        return None
    fields = _table(value, "[jwt]")
    texts = [fields.get(name) for name in ("issuer", "audience", "jwks")]
    if len(fields) != 3 or not all(isinstance(text, str) and text for text in texts):
        raise _invalid("[jwt] needs issuer, audience and jwks as text, and nothing else")
    settings = JwtSettings(*cast("list[str]", texts))
    if not _URL.match(settings.issuer) or not _URL.match(settings.jwks):
        raise _invalid("[jwt] needs issuer and jwks as URLs")
    return settings


def _see(value: Any) -> dict[str, tuple[str, ...]]:
    return {JWT + subject: _prefixes(subject, prefixes) for subject, prefixes in _table(value, "[see]").items()}


def _prefixes(subject: str, value: Any) -> tuple[str, ...]:
    prefixes = _list(value, f"the prefixes of {subject!r:.80}")
    for prefix in prefixes:
        if not isinstance(prefix, str) or (prefix != EVERYTHING and not parse_path(prefix)):
            raise _invalid(f"the prefixes of {subject!r:.80} are not a list of paths")
    return tuple(cast("list[str]", prefixes))


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise _invalid(f"not a list: {what}")
    return cast("list[Any]", value)


def _table(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _invalid(f"not a table: {what}")
    return cast("dict[str, Any]", value)


class Verifier:
    """Checks bearer tokens for the SDK's authentication. Tokens are never logged."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._keys = None
        if access.jwt is not None:
            import jwt  # late, here and below: most servers do not need it

            self._keys = jwt.PyJWKClient(access.jwt.jwks, timeout=10)

    async def verify_token(self, token: str) -> AccessToken | None:
        """The holder of ``token``, or ``None``."""
        if len(token) > _MAX_TOKEN:
            return None
        subject = self._access.tokens.get(digest_token(token))
        if subject is not None:
            return AccessToken(token=token, client_id=subject, scopes=[], subject=subject)
        if self._keys is None or token.count(".") != 2:
            return None
        claims = await to_thread.run_sync(self._claims, token)
        if claims is None or not isinstance(claims.get("sub"), str):
            return None
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or claims["sub"]),
            scopes=str(claims.get("scope") or "").split(),
            expires_at=int(claims["exp"]),
            subject=JWT + claims["sub"],
            claims={"iss": claims["iss"]},
        )

    def _claims(self, token: str) -> dict[str, Any] | None:
        settings = self._access.jwt
        if settings is None or self._keys is None:
            return None
        import jwt

        try:
            key = self._keys.get_signing_key_from_jwt(token)
            return jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                issuer=settings.issuer,
                audience=settings.audience,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError:
            return None


def _invalid(message: str) -> FormatError:
    return FormatError("access-file-invalid", message, "docs/serve.md shows an access file")
