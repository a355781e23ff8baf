"""The caller: who it is, its tokens, and what it may read in the audit log."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from skillwire.errors import FormatError
from skillwire.registry import documents as docs
from skillwire.registry.api.call import MOST_LINES, Call, Operation, OperationResult, demand_caller
from skillwire.registry.contract import TokenInfo
from skillwire.registry.identity import TOKEN_PREFIX, parse_subject
from skillwire.server.access import digest_token

if TYPE_CHECKING:
    from collections.abc import Sequence

    from skillwire.registry.model import Actor

_DAY = 86_400


async def whoami(call: Call) -> OperationResult:
    """Who the caller is."""
    who = call.actor.identity
    return {
        "name": who.name,
        "principals": sorted(who.principals),
        "admin": who.is_admin,
        "namespace": who.namespace,
        "actions": None if who.actions is None else sorted(who.actions),
    }


async def tokens(call: Call) -> OperationResult:
    """The caller's tokens."""
    demand_caller()
    return {"tokens": [docs.token_json(each) for each in await call.store.tokens(call.actor)]}


async def make_token(call: Call) -> OperationResult:
    """Make a token; its secret is shown once."""
    body: docs.TokenBody = call.body
    secret, info = new_token(call.actor, body)
    await call.store.put_token(call.actor, info, digest_token(secret))
    return {"secret": secret, **docs.token_json(info)}


async def revoke_token(call: Call) -> OperationResult:
    """Revoke a token."""
    await call.store.revoke_token(call.actor, call.at("id"))
    return {"id": call.at("id")}


async def audit(call: Call) -> OperationResult:
    """What was changed by whom."""
    before, is_admin = call.query("before"), call.actor.identity.is_admin
    if before and not (is_admin and before.isascii() and before.isdigit() and len(before) < 19):
        raise FormatError("argument-invalid", "'before' is not valid", "omit it: it is for administrators")
    lines = await call.store.audit(
        call.actor,
        namespace=call.query("namespace") or None,
        before=int(before) if before else None,
        limit=call.limit(100, MOST_LINES),
    )
    return {"changes": [docs.audit_json(line, with_number=is_admin) for line in lines]}


def new_token(actor: Actor, body: docs.TokenBody) -> tuple[str, TokenInfo]:
    """A token with its secret, made by ``actor``."""
    identity = actor.identity
    subject = parse_subject(identity.name if body.subject is None else body.subject)
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    info = TokenInfo(
        id=secrets.token_hex(8),
        name=body.name,
        subject=subject,
        namespace=body.namespace,
        actions=None if body.actions is None else frozenset(body.actions),
        expires_at=None if body.days is None else actor.at + body.days * _DAY,
        created_by=identity.name,
        created_at=actor.at,
        is_admin=body.admin,
    )
    return secret, info


OPERATIONS: Final[Sequence[Operation]] = (
    Operation("GET", "/whoami", whoami),
    Operation("GET", "/tokens", tokens),
    Operation("POST", "/tokens", make_token, docs.TokenBody, 201),
    Operation("DELETE", "/tokens/{id}", revoke_token),
    Operation("GET", "/audit", audit, query=("namespace", "limit", "before")),
)
