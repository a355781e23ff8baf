"""Changing who may do what in a registry: namespaces, roles, tokens and trusted publishers.

Each function is one transaction and checks the permission in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skillwire.errors import ConflictError, FormatError, NotFoundError
from skillwire.registry import changes, records
from skillwire.registry.model import ROLES, parse_namespace, parse_principal, skeleton
from skillwire.registry.projection import refresh_namespace
from skillwire.registry.visibility import actions_in, forbidden, no_namespace, require, visible
from skillwire.store.database import placeholders

if TYPE_CHECKING:
    from collections.abc import Collection

    from skillwire.registry.contract import AuditLine, TokenInfo, TrustedPublisher
    from skillwire.registry.model import Actor, Identity, Namespace, Role
    from skillwire.store.database import Session

TOKEN_USE_SECONDS: Final = 3600.0
_INSERT_ROLE = (
    "INSERT INTO role (principal, key, role) VALUES (?, ?, ?)"
    " ON CONFLICT (principal, key) DO UPDATE SET role = excluded.role"
)


def namespace(session: Session, who: Identity, name: str) -> Namespace | None:
    """One namespace."""
    seen = visible(who)
    found = session.row(
        f"SELECT {records.NAMESPACE_COLUMNS} FROM namespace n WHERE n.key = ? AND {seen.sql}",
        f"{name}/",
        *seen.values,
    )
    return None if found is None else records.namespace_from_row(*found)


def create_namespace(session: Session, actor: Actor, new: Namespace) -> None:
    """Create a namespace."""
    who, key = actor.identity, f"{parse_namespace(new.name)}/"
    is_limited = who.namespace not in (None, new.name) or (who.actions is not None and "manage" not in who.actions)
    if not who.is_admin or is_limited:
        raise forbidden("to create a namespace", "ask an administrator of the registry")
    _check_quota(new)
    similar = session.row("SELECT key FROM namespace WHERE skeleton = ?", skeleton(new.name))
    if similar is not None:
        other = similar[0][:-1]
        if other == new.name:
            raise ConflictError("namespace-taken", f"the namespace {other} exists", "choose another name")
        raise ConflictError(
            "namespace-lookalike", f"{new.name} looks like the namespace {other}", "choose another name"
        )
    session.run(
        "INSERT INTO namespace (key, skeleton, public, reviewed, max_skills, max_bytes, max_versions, bytes)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
        key,
        skeleton(new.name),
        new.public,
        new.reviewed,
        new.quota.skills,
        new.quota.bytes,
        new.quota.versions,
    )
    if who.subject is not None:
        session.run(_INSERT_ROLE, who.subject, key, "owner")
    changes.record(session, actor, "namespace-created", new.name, owner=who.subject, after=_settings(new))


def change_namespace(session: Session, actor: Actor, changed: Namespace) -> None:
    """Change the settings of a namespace."""
    require(session, actor, changed.name, "manage")
    before = namespace(session, actor.identity, changed.name)
    if before is None:
        raise no_namespace(changed.name)
    if before == changed:
        return
    if before.quota != changed.quota and not actor.identity.is_admin:
        raise forbidden("to change a quota", "ask an administrator of the registry")
    _check_quota(changed)
    key = f"{changed.name}/"
    session.run(
        "UPDATE namespace SET public = ?, reviewed = ?, max_skills = ?, max_bytes = ?, max_versions = ?"
        " WHERE key = ?",
        changed.public,
        changed.reviewed,
        changed.quota.skills,
        changed.quota.bytes,
        changed.quota.versions,
        key,
    )
    if before.public != changed.public:
        refresh_namespace(session, key)
    changes.record(
        session, actor, "namespace-changed", changed.name, before=_settings(before), after=_settings(changed)
    )


def grant(session: Session, actor: Actor, name: str, principal: str, role: Role | None) -> None:
    """Give a principal a role in a namespace, or none."""
    parse_principal(principal)
    if role is not None and role not in ROLES:
        raise FormatError("role-invalid", f"{role!r:.40} is not a role", f"use one of {', '.join(ROLES)}")
    require(session, actor, name, "manage")
    key = f"{name}/"
    found = session.row("SELECT role FROM role WHERE key = ? AND principal = ?", key, principal)
    before = None if found is None else found[0]
    if before == role:
        return
    if before == "owner":
        [(owners,)] = session.rows("SELECT count(*) FROM role WHERE key = ? AND role = 'owner'", key)
        if owners == 1:
            raise ConflictError(
                "owner-last", f"{principal} is the last owner of {name}", "add another owner first"
            )
    if role is None:
        session.run("DELETE FROM role WHERE key = ? AND principal = ?", key, principal)
    else:
        session.run(_INSERT_ROLE, principal, key, role)
    changes.record(session, actor, "role-changed", name, principal=principal, before=before, after=role)


def grants(session: Session, actor: Actor, name: str) -> dict[str, Role]:
    """The roles in a namespace."""
    require(session, actor, name, "manage")
    found = session.rows("SELECT principal, role FROM role WHERE key = ? ORDER BY principal", f"{name}/")
    return dict(found)


def put_token(session: Session, actor: Actor, token: TokenInfo, secret_digest: str) -> None:
    """Store a token."""
    who = actor.identity
    parse_principal(token.subject)
    _check_token(session, who, token)
    if session.row("SELECT 1 FROM token WHERE id = ? OR secret_digest = ?", token.id, secret_digest):
        raise ConflictError("token-taken", "a token with this id exists", "make another one")
    session.run(
        "INSERT INTO token (secret_digest, id, name, subject, key, actions, expires_at, created_by, created_at,"
        " last_used, is_admin) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        secret_digest,
        token.id,
        token.name,
        token.subject,
        None if token.namespace is None else f"{token.namespace}/",
        records.names_to_json(token.actions),
        token.expires_at,
        token.created_by,
        token.created_at,
        token.last_used,
        token.is_admin,
    )
    _record_token(session, actor, "token-created", token)


def tokens(session: Session, actor: Actor) -> list[TokenInfo]:
    """The tokens of the actor that may do no more than this one; all tokens for administrators."""
    if _manages_all(actor.identity):
        found = session.rows(f"SELECT {records.TOKEN_COLUMNS} FROM token ORDER BY created_at, id")
        return [records.token_from_row(*row) for row in found]
    own = sorted(actor.identity.persons)
    found = session.rows(
        f"SELECT {records.TOKEN_COLUMNS} FROM token WHERE subject IN ({placeholders(len(own)) or 'NULL'})"
        " ORDER BY created_at, id",
        *own,
    )
    known = (records.token_from_row(*row) for row in found)
    return [each for each in known if _is_within(actor.identity, each)]


def revoke_token(session: Session, actor: Actor, token: str) -> None:
    """Revoke a token."""
    found = next((each for each in tokens(session, actor) if each.id == token), None)
    if found is None:
        raise NotFoundError("token-not-found", f"you have no token {token!r:.80}", "list your tokens")
    session.run("DELETE FROM token WHERE id = ?", token)
    _record_token(session, actor, "token-revoked", found)


def token(session: Session, secret_digest: str, now: float) -> TokenInfo | None:
    """The valid token with this digest of its secret."""
    found = session.row(
        f"SELECT {records.TOKEN_COLUMNS} FROM token WHERE secret_digest = ?"
        " AND (expires_at IS NULL OR expires_at > ?)",
        secret_digest,
        now,
    )
    return None if found is None else records.token_from_row(*found)


def note_token_use(session: Session, used: TokenInfo, now: float) -> None:
    """Note that a token was used."""
    session.run(
        "UPDATE token SET last_used = ? WHERE id = ? AND (last_used IS NULL OR last_used <= ?)",
        now,
        used.id,
        now - TOKEN_USE_SECONDS,
    )


def open_session(session: Session, token: str, secret_digest: str, expires_at: float) -> None:
    """Store a browser session of a token."""
    session.run(
        "INSERT INTO browser_session (secret_digest, token_id, expires_at)"
        " SELECT ?, id, ? FROM token WHERE id = ?",
        secret_digest,
        expires_at,
        token,
    )


def session_token(session: Session, secret_digest: str, now: float) -> TokenInfo | None:
    """The valid token of a browser session."""
    found = session.row(
        f"SELECT {records.TOKEN_COLUMNS} FROM token WHERE (expires_at IS NULL OR expires_at > ?) AND id ="
        " (SELECT token_id FROM browser_session WHERE secret_digest = ? AND expires_at > ?)",
        now,
        secret_digest,
        now,
    )
    return None if found is None else records.token_from_row(*found)


def close_session(session: Session, secret_digest: str) -> None:
    """End a browser session."""
    session.run("DELETE FROM browser_session WHERE secret_digest = ?", secret_digest)


def remove_expired(session: Session, now: float) -> int:
    """Remove expired tokens and browser sessions; how many."""
    ended = session.run("DELETE FROM browser_session WHERE expires_at <= ?", now)
    return ended + session.run("DELETE FROM token WHERE expires_at IS NOT NULL AND expires_at <= ?", now)


def trust(session: Session, actor: Actor, publisher: TrustedPublisher) -> int:
    """Add a trusted publisher; its number."""
    require(session, actor, publisher.namespace, "manage")
    if not publisher.claims:
        raise FormatError(
            "publisher-invalid",
            "a trusted publisher without claims would be everyone with a token of this issuer",
            "name the program by claims with ids, such as repository_id",
        )
    if publisher.role not in ROLES or publisher.role == "owner":
        raise FormatError("role-invalid", f"a program cannot be {publisher.role!r:.40}", "use publisher")
    key, claims = f"{publisher.namespace}/", dict(publisher.claims)
    facts: dict[str, Any] = {"issuer": publisher.issuer, "claims": claims, "role": publisher.role}
    number = changes.new_number(session, "publisher")
    changes.record(session, actor, "publisher-trusted", publisher.namespace, publisher=number, **facts)
    session.run(
        "INSERT INTO publisher (number, key, issuer, claims, role) VALUES (?, ?, ?, ?, ?)",
        number,
        key,
        publisher.issuer,
        records.to_json(claims),
        publisher.role,
    )
    session.run(_INSERT_ROLE, f"publisher:{number}", key, publisher.role)
    return number


def distrust(session: Session, actor: Actor, name: str, number: int) -> None:
    """Remove a trusted publisher, and its role."""
    require(session, actor, name, "manage")
    if not session.run("DELETE FROM publisher WHERE number = ? AND key = ?", number, f"{name}/"):
        raise NotFoundError(
            "publisher-not-found", f"{name} has no trusted publisher {number}", "list the trusted publishers"
        )
    session.run("DELETE FROM role WHERE key = ? AND principal = ?", f"{name}/", f"publisher:{number}")
    changes.record(session, actor, "publisher-removed", name, publisher=number)


def trusted(session: Session, issuer: str) -> list[TrustedPublisher]:
    """All trusted publishers of an issuer."""
    found = session.rows(
        "SELECT number, key, issuer, claims, role FROM publisher WHERE issuer = ? ORDER BY number", issuer
    )
    return [records.publisher_from_row(*row) for row in found]


def audit(session: Session, actor: Actor, name: str | None, before: int | None, limit: int) -> list[AuditLine]:
    """The newest lines of the audit log."""
    if name is not None:
        require(session, actor, name, "manage")
        return changes.before(session, f"{name}/", before, limit)
    if not _manages_all(actor.identity):
        raise forbidden("to read the whole audit log", "name one of your namespaces")
    return changes.before(session, None, before, limit)


def readers(session: Session, names: Collection[str]) -> dict[str, frozenset[str] | None]:
    """The principals that may read each namespace."""
    found: dict[str, frozenset[str] | None] = {}
    for name in sorted(set(names)):
        rows = session.rows(
            "SELECT n.public, r.principal FROM namespace n LEFT JOIN role r ON r.key = n.key WHERE n.key = ?",
            f"{name}/",
        )
        if rows:
            principals = frozenset(principal for _, principal in rows if principal is not None)
            found[name] = None if rows[0][0] else principals
    return found


def _manages_all(who: Identity) -> bool:
    return who.is_admin and who.namespace is None and (who.actions is None or "manage" in who.actions)


def _check_token(session: Session, who: Identity, token: TokenInfo) -> None:
    """Refuse a token that may do more than its maker, or lives longer."""
    hint = "ask an administrator of the registry"
    if token.namespace is not None and not actions_in(session, who, token.namespace):
        raise no_namespace(token.namespace)
    if _manages_all(who):
        return
    # A program with a web token must not make itself a token that lasts.
    if token.subject not in who.persons or token.subject.startswith("publisher:"):
        raise forbidden(f"to make a token for {token.subject}", hint)
    if token.is_admin:
        raise forbidden("to make a token for an administrator", hint)
    if not _is_within(who, token):
        where = "your actions" if who.namespace is None else f"{who.namespace}, and to your actions"
        raise forbidden("to make a token that is limited less than yours", f"limit it to {where}")
    if who.expires_at is not None and (token.expires_at is None or token.expires_at > who.expires_at):
        raise forbidden("to make a token that lives longer than yours", "let it end earlier")


def _is_within(who: Identity, token: TokenInfo) -> bool:
    """Whether a token is limited as much as the one that the caller uses."""
    if who.namespace not in (None, token.namespace):
        return False
    return who.actions is None or (token.actions is not None and token.actions <= who.actions | {"read"})


def _record_token(session: Session, actor: Actor, what: str, token: TokenInfo) -> None:
    facts: dict[str, Any] = {
        "token": token.id,
        "name": token.name,
        "subject": token.subject,
        "actions": None if token.actions is None else sorted(token.actions),
        "expires_at": token.expires_at,
        "is_admin": token.is_admin,
    }
    changes.record(session, actor, what, token.namespace or "", **facts)


def _check_quota(new: Namespace) -> None:
    if min(new.quota.skills, new.quota.bytes, new.quota.versions) < 0 or new.quota.bytes > 1 << 60:
        raise FormatError("quota-invalid", "a quota is a number of at least 0", "use smaller numbers")


def _settings(of: Namespace) -> dict[str, object]:
    return {
        "public": of.public,
        "reviewed": of.reviewed,
        "skills": of.quota.skills,
        "bytes": of.quota.bytes,
        "versions": of.quota.versions,
    }
