"""Who makes a request: a registry token, a web token, or no token.

A registry token begins with ``skw_`` and acts for the principal that it was made for. A web token of a configured
issuer gives the principal of its subject, one for each of its groups, and one for each trusted publisher whose
claims it has. The kinds share no principals (Z7): the names of the issuers get a prefix, and no registry token can
be made for a principal with such a prefix. Without a token a caller sees public namespaces. An invalid token is
refused and not treated as none, so that its holder notices.

``IdentityLayer`` resolves the identity once for each request and sets the SDK's user, so that the protocol in both
eras, the pages and the API see the same caller. Event streams end with their token (``streams.py``).
"""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import time
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from mcp.server.auth.middleware.auth_context import auth_context_var, get_access_token
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from pydantic import ConfigDict
from starlette.responses import JSONResponse

from skillwire.errors import FormatError, SkillwireError
from skillwire.registry.model import ANONYMOUS, Identity
from skillwire.registry.settings import RegistrySettings
from skillwire.server.access import JwtChecker, JwtSettings, digest_token

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from starlette.types import ASGIApp, Receive, Scope, Send

    from skillwire.registry.contract import RegistryStore, TokenInfo, TrustedPublisher
    from skillwire.registry.settings import Issuer
    from skillwire.registry.streams import TokenStreams

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
TOKEN_PREFIX: Final = "skw_"  # noqa: S105 - not a secret
_MOST_GROUPS = 1_000
_SUBJECT = re.compile(r"user:[A-Za-z0-9](?:[A-Za-z0-9._@+-]{0,98}[A-Za-z0-9])?\Z")


class RegistryToken(AccessToken):
    """The token of a request, with the identity that it stands for."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    identity: Identity


def current_identity() -> Identity:
    """The identity of the caller of the current request."""
    token = get_access_token()
    return token.identity if isinstance(token, RegistryToken) else ANONYMOUS


def parse_subject(text: str) -> str:
    """``text`` if a registry token can be made for it (Z7)."""
    if _SUBJECT.match(text):
        return text
    raise FormatError(
        "registry-subject-invalid",
        f"{text!r:.100} is not a subject of a token",
        "write user:NAME",
        rule="Z7",
    )


class Identities:
    """Finds the identity for a token."""

    def __init__(self, store: RegistryStore, settings: RegistrySettings | None = None) -> None:
        self._store = store
        self._settings = settings or RegistrySettings()
        self._checkers = {
            each.issuer: (each, JwtChecker(JwtSettings(each.issuer, each.audience, each.jwks)))
            for each in self._settings.issuers
        }

    @property
    def issuers(self) -> frozenset[str]:
        """The issuers whose tokens are accepted."""
        return frozenset(self._checkers)

    async def holder(self, token: str, now: float) -> RegistryToken | None:
        """The holder of ``token``; ``None`` if it is not valid."""
        if token.startswith(TOKEN_PREFIX):
            return await self._of_registry_token(token, now)
        return await self._of_web_token(token)

    async def is_valid(self, token: RegistryToken) -> bool:
        """Whether a token that was accepted is still valid. A web token cannot be revoked; it only expires."""
        return not token.token.startswith(TOKEN_PREFIX) or await self.holder(token.token, time.time()) is not None

    async def _of_registry_token(self, token: str, now: float) -> RegistryToken | None:
        return self._holder_of(await self._store.token(digest_token(token), now), token)

    async def session_holder(self, secret: str, now: float) -> RegistryToken | None:
        """The holder of the token of a browser session; ``None`` if it has ended."""
        return self._holder_of(await self._store.session(digest_token(secret), now), "")

    def _holder_of(self, found: TokenInfo | None, token: str) -> RegistryToken | None:
        if found is None:
            return None
        principals = frozenset({found.subject})
        is_admin = found.is_admin or bool(principals & self._settings.admins)
        identity = Identity(found.subject, principals, is_admin, found.namespace, found.actions, found.expires_at)
        expires_at = None if found.expires_at is None else int(found.expires_at)
        return _token(token, identity, expires_at, {"token": found.id})

    async def _of_web_token(self, token: str) -> RegistryToken | None:
        issuer, checker = self._checkers.get(_claimed_issuer(token), (None, None))
        claims = None if checker is None else await checker.claims(token)
        if issuer is None or claims is None:
            return None
        name = issuer.principal("jwt", claims["sub"])
        principals = {name, *_groups(issuer, claims)}
        for publisher in await self._store.trusted(issuer.issuer):
            if _matches(publisher, claims):
                principals.add(f"publisher:{publisher.number}")
        is_admin = not self._settings.admins.isdisjoint(principals)
        identity = Identity(name, frozenset(principals), is_admin, expires_at=float(claims["exp"]))
        return _token(token, identity, int(claims["exp"]), {"iss": issuer.issuer})


class IdentityLayer:
    """Wraps an application: every request has the identity of its token, and the address of its client.

    Behind one of ``proxies`` the address is the one in ``X-Forwarded-For``. A header of others is not read: it
    could name any address, and the audit log has it.
    """

    def __init__(
        self, app: ASGIApp, identities: Identities, streams: TokenStreams, proxies: Collection[Network] = ()
    ) -> None:
        self._app = app
        self._identities = identities
        self._streams = streams
        self._proxies = proxies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._proxies:
            scope = {**scope, "client": _client_of(scope, self._proxies)}
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        holder: RegistryToken | None = None
        if given:
            try:
                kind, _, token = given[0].decode("latin-1").partition(" ")
                if len(given) == 1 and kind.lower() == "bearer":
                    holder = await self._identities.holder(token.strip(), time.time())
            except SkillwireError as error:
                await _unavailable(error)(scope, receive, send)
                return
            if holder is None:
                await _refused()(scope, receive, send)
                return
        user = None if holder is None else AuthenticatedUser(holder)
        before = auth_context_var.set(user)
        try:
            if holder is None:
                await self._app(scope, receive, send)
            elif not await self._streams.serve(self._app, holder, {**scope, "user": user}, receive, send):
                await _refused()(scope, receive, send)
        except SkillwireError as error:
            await _unavailable(error)(scope, receive, send)
        finally:
            auth_context_var.reset(before)


def parse_network(text: str) -> Network:
    """An address, or a network such as ``10.0.0.0/8``."""
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise FormatError(
            "argument-invalid", f"{text!r:.100} is not an address of a proxy", "write 127.0.0.1 or 10.0.0.0/8"
        ) from error


def _client_of(scope: Scope, proxies: Collection[Network]) -> tuple[str, int] | None:
    """The client of a request: the last address, from the connection back, that is not that of a proxy."""
    client: tuple[str, int] | None = scope.get("client")
    told = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for").decode("latin-1")
    for text in reversed(told.split(",")):
        try:
            if client is None or not any(ipaddress.ip_address(client[0]) in each for each in proxies):
                break
            client = str(ipaddress.ip_address(text.strip())), 0
        except ValueError:  # not an address: the proxy before it is the last that is known
            break
    return client


def error_body(error: SkillwireError) -> dict[str, Any]:
    """An error as the body of a response."""
    return {"error": {"reference": error.reference, "message": error.message, "hint": error.hint}}


def _unavailable(error: SkillwireError) -> JSONResponse:
    return JSONResponse(error_body(error), 503, {"Retry-After": "1"})


def _refused() -> JSONResponse:
    error = SkillwireError(
        "token-invalid",
        "the token is unknown, expired or revoked",
        "sign in with a new token: skillwire registry login URL; without a token, public skills are visible",
    )
    return JSONResponse(error_body(error), 401, {"WWW-Authenticate": 'Bearer error="invalid_token"'})


def _token(token: str, identity: Identity, expires_at: int | None, claims: dict[str, str]) -> RegistryToken:
    # A session of the handshake era belongs to this triple: another token of the same person cannot use it.
    return RegistryToken(
        token=token,
        client_id=claims.get("token", identity.name),
        scopes=[],
        expires_at=expires_at,
        subject=identity.name,
        claims=claims,
        identity=identity,
    )


def _claimed_issuer(token: str) -> str:
    """The issuer that a web token names, before anything is checked: only to find the keys to check it with."""
    parts = token.split(".")
    if len(token) > 16 * 1024 or len(parts) != 3:
        return ""
    try:
        claims: object = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except (ValueError, RecursionError):
        return ""
    issuer: object = cast("dict[str, Any]", claims).get("iss") if isinstance(claims, dict) else None
    return issuer if isinstance(issuer, str) else ""


def _groups(issuer: Issuer, claims: Mapping[str, Any]) -> list[str]:
    groups: object = claims.get(issuer.groups) if issuer.groups else None
    if not isinstance(groups, list):
        return []
    names = [name for name in cast("list[object]", groups)[:_MOST_GROUPS] if isinstance(name, str)]
    return [issuer.principal("group", name) for name in names]


def _matches(publisher: TrustedPublisher, claims: Mapping[str, Any]) -> bool:
    """Whether a token has all claims. Numbers count as their digits; nothing else is text."""

    def text(value: object) -> str | None:
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        return value if isinstance(value, str) else None

    return bool(publisher.claims) and all(
        text(claims.get(key)) == value for key, value in publisher.claims.items()
    )
