"""What a caller may see and do, as conditions and walks in SQL.

A condition is part of the query that reads. So what a caller may not see is not found by the same steps as what
does not exist. A walk takes a page of the public skills and a page of the skills in the caller's namespaces, both
in the order of an index, and merges them. Its cost depends on the page and on the number of the caller's
principals, and not on the number of skills or namespaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skillwire.errors import ApprovalError, NotFoundError
from skillwire.registry.model import ROLES
from skillwire.store.database import placeholders

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from skillwire.registry.model import Action, Actor, Identity
    from skillwire.store.database import Row, Session

LAST: Final = "~"
"""Comes after every path and every key."""

_ALL: Final[frozenset[Action]] = frozenset({"read", "publish", "review", "manage"})
_MANY: Final = 200  # namespaces of one caller
_PRINCIPALS_AT_ONCE: Final = 100  # SQLite allows 500 parts of a UNION


class Condition:
    """A condition in SQL, and its values."""

    def __init__(self, sql: str, *values: Any) -> None:
        self.sql = sql
        self.values = values


def key_of(path: str) -> str:
    """The key of the namespace that ``path`` is in."""
    return f"{path.partition('/')[0]}/"


def visible(who: Identity, table: str = "n") -> Condition:
    """The condition for rows of ``table``, which has the columns ``key`` and ``public``."""
    public = f"{table}.public = 1"
    limit = None if who.namespace is None else f"{who.namespace}/"
    if who.is_admin:
        return Condition("1 = 1") if limit is None else Condition(f"({public} OR {table}.key = ?)", limit)
    granted = _has_role(who, table, ROLES)
    if limit is None:
        return Condition(f"({public} OR {granted.sql})", *granted.values)
    return Condition(f"({public} OR ({table}.key = ? AND {granted.sql}))", limit, *granted.values)


def works_in(who: Identity) -> Condition:
    """The condition for a namespace ``n`` in which the caller may do more than read."""
    limit = _ALL if who.actions is None else who.actions
    roles = [role for role, actions in ROLES.items() if (actions - {"read"}) & limit]
    works = Condition("1 = 1" if roles else "1 = 0") if who.is_admin else _has_role(who, "n", roles)
    if who.namespace is None:
        return works
    return Condition(f"(n.key = ? AND {works.sql})", f"{who.namespace}/", *works.values)


def may_see_version(who: Identity) -> Condition:
    """The condition for a version ``v`` in a visible namespace ``n``: approved, or the caller works there."""
    works = works_in(who)
    return Condition(f"(v.approved = 1 OR {works.sql})", *works.values)


def actions_in(session: Session, who: Identity, namespace: str) -> frozenset[Action]:
    """What a caller may do in a namespace; nothing if the caller may not know it."""
    principals = sorted(who.principals)
    found = session.rows(
        "SELECT n.public, r.role FROM namespace n"
        f" LEFT JOIN role r ON r.key = n.key AND r.principal IN ({placeholders(len(principals)) or 'NULL'})"
        " WHERE n.key = ?",
        *principals,
        f"{namespace}/",
    )
    if not found:
        return frozenset()
    granted: set[Action] = set(_ALL if who.is_admin else ())
    for _, role in found:
        granted |= ROLES.get(role, frozenset())
    if who.namespace not in (None, namespace):
        granted.clear()
    elif who.actions is not None:
        granted = {action for action in granted if action in who.actions or action == "read"}
    if found[0][0]:
        granted.add("read")
    return frozenset(granted)


def require(session: Session, actor: Actor, namespace: str, action: Action) -> None:
    """``NotFoundError`` without ``read``, ``ApprovalError`` without the action."""
    allowed = actions_in(session, actor.identity, namespace)
    if not allowed:
        raise no_namespace(namespace)
    if action not in allowed:
        raise forbidden(
            f"to {action} in the namespace {namespace!r:.60}",
            f"ask an owner of {namespace} for a role, and check whether your token is limited",
        )


def forbidden(what: str, hint: str) -> ApprovalError:
    """The error for an action that the actor's roles or token do not allow."""
    return ApprovalError("registry-forbidden", f"not allowed: {what}", hint)


def no_namespace(namespace: str) -> NotFoundError:
    """The error for a namespace that does not exist, or that the caller may not know."""
    return NotFoundError(
        "namespace-not-found",
        f"there is no namespace {namespace!r:.60} that you may see",
        "check the name and your token; an administrator creates one with: skillwire registry namespace NAME",
    )


def visible_keys(session: Session, who: Identity, at_least: str, limit: int) -> list[str]:
    """The keys of the first visible namespaces from ``at_least`` on."""
    if who.is_admin and who.namespace is None:
        found = session.rows("SELECT key FROM namespace WHERE key >= ? ORDER BY key LIMIT ?", at_least, limit)
        return [key for (key,) in found]
    public = session.rows(
        "SELECT key FROM namespace WHERE public = 1 AND key >= ? ORDER BY key LIMIT ?", at_least, limit
    )
    return sorted({key for (key,) in public} | set(granted_keys(session, who, at_least, LAST, limit)))[:limit]


def granted_keys(session: Session, who: Identity, at_least: str, below: str, limit: int) -> list[str]:
    """The first keys from ``at_least`` on of the namespaces in which the caller has a role."""
    if who.namespace is not None:
        key = f"{who.namespace}/"
        allowed = visible(who)
        found = session.rows(
            f"SELECT n.key FROM namespace n WHERE n.key = ? AND n.key >= ? AND n.key < ? AND {allowed.sql}",
            key,
            at_least,
            below,
            *allowed.values,
        )
        return [key for (key,) in found]
    keys: set[str] = set()
    principals = sorted(who.principals)
    # Each part is bounded. With ``principal IN (…)`` the database would sort all namespaces of the caller.
    part = (
        "SELECT key FROM (SELECT key FROM role WHERE principal = ? AND key >= ? AND key < ?"
        " ORDER BY key LIMIT ?) AS part"
    )
    for start in range(0, len(principals), _PRINCIPALS_AT_ONCE):
        some = principals[start : start + _PRINCIPALS_AT_ONCE]
        values = (value for principal in some for value in (principal, at_least, below, limit))
        keys.update(key for (key,) in session.rows(" UNION ".join([part] * len(some)), *values))
    return sorted(keys)[:limit]


def listed(
    session: Session,
    who: Identity,
    columns: str,
    limit: int,
    *,
    after: str = "",
    below: str = LAST,
    inclusive: bool = False,
    name: str | None = None,
) -> list[Row]:
    """The first ``limit`` visible, listed skills between two paths, by path. The path is the first column.

    With ``inclusive`` the path ``after`` counts too. With ``name`` only skills of this name.
    """
    bounds = f"listed = 1 AND path {'>=' if inclusive else '>'} ? AND path < ?"
    values: list[Any] = [after, below]
    if name is not None:
        bounds += " AND name = ?"
        values.append(name)
    select = f"SELECT path, {columns} FROM served WHERE {bounds}"
    end = "ORDER BY path LIMIT ?"
    if who.is_admin and who.namespace is None:
        return session.rows(f"{select} {end}", *values, limit)
    rows = {row[0]: row for row in session.rows(f"{select} AND public = 1 {end}", *values, limit)}
    first, slash, _ = after.partition("/")
    found = 0
    at_least = first + slash
    if name is not None and len(granted_keys(session, who, at_least, below, _MANY)) == _MANY:
        # Few skills have one name, so their namespaces are looked at instead.
        seen = visible(who, "served")
        return session.rows(f"{select} AND {seen.sql} {end}", *values, *seen.values, limit)
    while found < limit and (keys := granted_keys(session, who, at_least, below, limit)):
        for row in _in_namespaces(session, keys, f"{select} AND key =", end, values, limit - found):
            rows[row[0]] = row
            found += 1
        if len(keys) < limit:
            break
        at_least = keys[-1] + "!"  # after this key; no key has this character
    return [rows[path] for path in sorted(rows)[:limit]]


def _in_namespaces(
    session: Session, keys: Iterable[str], select: str, end: str, values: list[Any], limit: int
) -> Iterator[Row]:
    """The rows of each namespace in turn, until there are enough."""
    if session.dialect == "sqlite":  # has no LATERAL, and a query costs ten microseconds
        for key in keys:
            found = session.rows(f"{select} ? {end}", *values, key, limit)
            yield from found
            limit -= len(found)
            if limit <= 0:
                return
        return
    keys = list(keys)
    given = ", ".join(["(CAST(? AS TEXT))"] * len(keys))
    # Each namespace is asked for at most ``limit`` rows, so that the plan cannot read all of them.
    yield from session.rows(
        f"SELECT s.* FROM (VALUES {given}) AS g (key) CROSS JOIN LATERAL ({select} g.key {end}) AS s"
        ' ORDER BY g.key COLLATE "C", s.path LIMIT ?',
        *keys,
        *values,
        limit,
        limit,
    )


def _has_role(who: Identity, table: str, roles: Iterable[str]) -> Condition:
    roles, principals = sorted(roles), sorted(who.principals)
    if not roles or not principals:
        return Condition("1 = 0")
    every = "" if len(roles) == len(ROLES) else f" AND r.role IN ({placeholders(len(roles))})"
    return Condition(
        f"EXISTS (SELECT 1 FROM role r WHERE r.key = {table}.key AND"
        f" r.principal IN ({placeholders(len(principals))}){every})",
        *principals,
        *(roles if every else ()),
    )
