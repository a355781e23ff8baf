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
import secrets
import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from anyio import CapacityLimiter, to_thread
from mcp.server.auth.provider import AccessToken
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError

from skillwire.catalog.visibility import EVERYTHING
from skillwire.errors import FormatError, NotFoundError
from skillwire.skill.uri import parse_path

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from skillwire.server.callers import Caller

JWT = "jwt:"  # the prefix of the subjects of JSON web tokens
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA"]
_MAX_TOKEN = 16 * 1024
_THREADS = 4


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
        file = _AccessFile.model_validate(tomllib.loads(path.read_text()))
    except OSError as error:
        raise NotFoundError(
            "access-file-unknown", f"the access file {path.name!r} cannot be read", "give the path of a TOML file"
        ) from error
    except ValidationError as error:
        raise _invalid(first_mistake(error)) from error
    except ValueError as error:
        raise _invalid(f"it is not TOML: {error}") from error
    if file.see and file.jwt is None:
        raise _invalid(
            "[see] is only for the subjects of JSON web tokens; a [[token]] has its prefixes in 'see = […]'"
        )
    if not file.token and file.jwt is None:
        raise _invalid("it has neither [[token]] nor [jwt], so no caller would have access")
    see = {JWT + subject: tuple(prefixes) for subject, prefixes in file.see.items()}
    for token in file.token:
        if token.subject.startswith(JWT):
            raise _invalid(
                f"the subject {token.subject!r:.80} begins with {JWT}, which is reserved for JSON web tokens"
            )
        see[token.subject] = (*see.get(token.subject, ()), *token.see)
    jwt = None if file.jwt is None else JwtSettings(file.jwt.issuer, file.jwt.audience, file.jwt.jwks)
    return Access({token.sha256: token.subject for token in file.token}, jwt, see)


def _checked_prefix(prefix: str) -> str:
    if prefix != EVERYTHING:
        parse_path(prefix)
    return prefix


_Url: TypeAlias = Annotated[str, StringConstraints(pattern=r"^https?://[A-Za-z0-9.:\[\]-]+(/\S*)?$")]
_Prefixes: TypeAlias = list[Annotated[str, StringConstraints(min_length=1), AfterValidator(_checked_prefix)]]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Token(_Part):
    subject: str
    sha256: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]
    see: _Prefixes = []


class _Jwt(_Part):
    issuer: _Url
    audience: Annotated[str, StringConstraints(min_length=1)]
    jwks: _Url


class _AccessFile(_Part):
    token: list[_Token] = []
    jwt: _Jwt | None = None
    see: dict[str, _Prefixes] = {}


class JwtChecker:
    """Checks JSON web tokens of one issuer. The issuer's key set is fetched when it is first needed."""

    def __init__(self, settings: JwtSettings) -> None:
        import jwt  # late, here and below: most servers do not need it

        self._settings = settings
        self._keys = jwt.PyJWKClient(settings.jwks, timeout=10)
        # Tokens of strangers wait here for an issuer that does not respond, and not in the threads of all others.
        self._threads = CapacityLimiter(_THREADS)

    async def claims(self, token: str) -> dict[str, Any] | None:
        """The claims of a valid token, or ``None``. ``sub`` is text."""
        if len(token) > _MAX_TOKEN or token.count(".") != 2:
            return None
        claims = await to_thread.run_sync(self._checked, token, limiter=self._threads)
        return claims if claims is not None and isinstance(claims.get("sub"), str) else None

    def _checked(self, token: str) -> dict[str, Any] | None:
        import jwt

        try:
            key = self._keys.get_signing_key_from_jwt(token)
            return jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                issuer=self._settings.issuer,
                audience=self._settings.audience,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.PyJWTError:
            return None


class Verifier:
    """Checks bearer tokens for the SDK's authentication. Tokens are never logged."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._web = None if access.jwt is None else JwtChecker(access.jwt)

    async def verify_token(self, token: str) -> AccessToken | None:
        """The holder of ``token``, or ``None``."""
        if len(token) > _MAX_TOKEN:
            return None
        subject = self._access.tokens.get(digest_token(token))
        if subject is not None:
            return AccessToken(token=token, client_id=subject, scopes=[], subject=subject)
        claims = None if self._web is None else await self._web.claims(token)
        if claims is None:
            return None
        return AccessToken(
            token=token,
            client_id=str(claims.get("client_id") or claims.get("azp") or claims["sub"]),
            scopes=str(claims.get("scope") or "").split(),
            expires_at=int(claims["exp"]),
            subject=JWT + claims["sub"],
            claims={"iss": claims["iss"]},
        )


def first_mistake(error: ValidationError) -> str:
    """Where the first mistake is, and what is wrong, without the value: it may be a secret."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place:.200}: {first['msg']:.300}" if place else f"{first['msg']:.300}"


def _invalid(message: str) -> FormatError:
    return FormatError(
        "access-file-invalid",
        f"the access file is invalid: {message}",
        "docs/reference/configuration.md shows an access file",
    )
