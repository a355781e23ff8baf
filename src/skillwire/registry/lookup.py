"""Reading a registry: skills, versions, files and names, as one caller sees them.

Each function is one snapshot. ``visibility.py`` has the conditions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from skillwire.errors import FormatError
from skillwire.registry import records
from skillwire.registry.contract import Release, VersionLine
from skillwire.registry.model import STABLE, parse_version
from skillwire.registry.visibility import LAST, listed, may_see_version, visible, visible_keys
from skillwire.store.database import placeholders

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from skillwire.registry.model import Identity, Namespace, SkillRef
    from skillwire.store.database import Session

MOST_OF_ONE_NAME: Final = 100
_MOST_SEGMENTS = 16
_FROM_SKILL = "FROM skill s JOIN namespace n ON n.key = s.key"
_JOIN_CHANNEL = "JOIN channel c ON c.skill_id = s.id JOIN version v ON v.id = c.version_id"
_RELEASE_COLUMNS = (
    "s.id, s.path, s.listed, s.deprecated, s.instead,"
    " v.id, v.version, v.digest, v.manifest, v.published_at, v.published_by, v.yanked, v.source,"
    " (SELECT digest FROM archive WHERE version_id = v.id)"
)


def skills(session: Session, who: Identity, after: str, limit: int, below: str) -> list[Release]:
    """The listed skills after a path."""
    if not below:
        rows = listed(session, who, "document", limit, after=after)
    else:
        # No skill is inside another one: ``below`` is a skill or a folder.
        rows = listed(session, who, "document", 1, after=below, below=f"{below}/", inclusive=True)
        if rows:
            rows = rows if rows[0][0] == below and after < below else []
        if not rows:
            rows = listed(session, who, "document", limit, after=max(after, f"{below}/"), below=f"{below}0")
    return [records.release_from_bytes(document) for _, document in rows]


def release(session: Session, who: Identity, ref: SkillRef) -> Release | None:
    """One version."""
    if ref.version is None and ref.channel in (None, STABLE):
        return _served(session, who, [ref.path])
    join, version = _chosen(ref)
    seen, may_see = visible(who), may_see_version(who)
    found = session.row(
        f"SELECT {_RELEASE_COLUMNS} {_FROM_SKILL} {join}"
        f" WHERE s.path = ? AND {seen.sql} AND {may_see.sql} AND v.deleted IS NULL",
        version,
        ref.path,
        *seen.values,
        *may_see.values,
    )
    return None if found is None else _release(session, found)


def stable_release(session: Session, skill: int) -> Release | None:
    """The version that is served as a skill, for everyone who may see the skill."""
    found = session.row(
        f"SELECT {_RELEASE_COLUMNS} FROM skill s {_JOIN_CHANNEL} AND c.name = ? WHERE s.id = ?", STABLE, skill
    )
    return None if found is None else _release(session, found)


def around(session: Session, who: Identity, path: str) -> Release | None:
    """The skill at ``path``, or the one that it is inside."""
    segments = path.split("/", _MOST_SEGMENTS)
    return _served(session, who, ["/".join(segments[:count]) for count in range(2, len(segments) + 1)])


def read(session: Session, who: Identity, ref: SkillRef, file: str) -> bytes | None:
    """The bytes of one file."""
    join, version = _chosen(ref)
    seen, may_see = visible(who), may_see_version(who)
    found = session.row(
        f"SELECT b.data {_FROM_SKILL} {join}"
        " JOIN version_file f ON f.version_id = v.id AND f.path = ?"
        " JOIN blob b ON b.key = f.key AND b.digest = f.digest"
        f" WHERE s.path = ? AND {seen.sql} AND {may_see.sql} AND v.deleted IS NULL",
        version,
        file,
        ref.path,
        *seen.values,
        *may_see.values,
    )
    return None if found is None else bytes(found[0])


def archive(session: Session, who: Identity, path: str, digest: str) -> bytes | None:
    """The zip file with this digest, of one of the versions of a skill."""
    seen, may_see = visible(who), may_see_version(who)
    found = session.row(
        f"SELECT a.data {_FROM_SKILL} JOIN version v ON v.skill_id = s.id"
        " JOIN archive a ON a.version_id = v.id AND a.digest = ?"
        f" WHERE s.path = ? AND {seen.sql} AND {may_see.sql} AND v.deleted IS NULL LIMIT 1",
        digest,
        path,
        *seen.values,
        *may_see.values,
    )
    return None if found is None else bytes(found[0])


def history(session: Session, who: Identity, path: str) -> list[VersionLine]:
    """All versions of a skill, the newest first."""
    seen, may_see = visible(who), may_see_version(who)
    found = session.rows(
        "SELECT v.id, v.version, v.digest, v.published_at, v.published_by, v.yanked, v.deleted, v.approved,"
        " v.source"
        f" {_FROM_SKILL} JOIN version v ON v.skill_id = s.id WHERE s.path = ? AND {seen.sql} AND {may_see.sql}",
        path,
        *seen.values,
        *may_see.values,
    )
    channels = session.rows(
        f"SELECT c.version_id, c.name {_FROM_SKILL} {_JOIN_CHANNEL} WHERE s.path = ? AND {seen.sql}"
        " ORDER BY c.name",
        path,
        *seen.values,
    )
    lines = [
        VersionLine(
            version,
            digest,
            at,
            by,
            yanked,
            deleted,
            tuple(name for of, name in channels if of == number),
            bool(approved),
            json.loads(source),
        )
        for number, version, digest, at, by, yanked, deleted, approved, source in found
    ]
    return sorted(lines, key=lambda line: parse_version(line.version), reverse=True)


def children(session: Session, who: Identity, folder: str, after: str, limit: int) -> list[str]:
    """Names directly below a folder.

    Paths are not in the order of names: ``a-b/x`` comes before ``a/x``. So for each name with a hyphen, shorter
    names are looked for too. After a name, a query starts behind all skills below it.
    """
    prefix = f"{folder}/" if folder else ""
    start, end = f"{prefix}{after}", f"{folder}0" if folder else LAST
    names: set[str] = set()
    looked_for: set[str] = set()
    while len(names) < limit and (page := listed(session, who, "name", limit, after=start, below=end)):
        for path, _ in page:
            if path <= start:
                continue
            name, slash, _ = path[len(prefix) :].partition("/")
            parts = name.split("-")
            for shorter in {"-".join(parts[:count]) for count in range(1, len(parts))} - looked_for:
                looked_for.add(shorter)
                begin = f"{prefix}{shorter}/"
                if shorter > after and listed(session, who, "name", 1, after=begin, below=f"{begin[:-1]}0"):
                    names.add(shorter)
            if name > after:
                names.add(name)
            start = f"{prefix}{name}{'0' if slash else ''}"  # 0 comes after the slash
    return sorted(names)[:limit]


def beginning(session: Session, who: Identity, text: str, limit: int) -> list[str]:
    """Paths that begin with ``text``."""
    if not text.isascii() or LAST in text:
        return []
    found = listed(session, who, "name", limit, after=text, below=f"{text}{LAST}", inclusive=True)
    return [path for path, _ in found]


def named(session: Session, who: Identity, names: Collection[str]) -> dict[str, Sequence[str]]:
    """The paths of the skills with each of these names."""
    found = {
        name: [path for path, _ in listed(session, who, "name", MOST_OF_ONE_NAME, name=name)]
        for name in dict.fromkeys(names)
    }
    return {name: paths for name, paths in found.items() if paths}


def namespaces(session: Session, who: Identity, after: str, limit: int) -> list[Namespace]:
    """The visible namespaces."""
    keys = visible_keys(session, who, f"{after}/!" if after else "", limit)
    if not keys:
        return []
    found = session.rows(
        f"SELECT {records.NAMESPACE_COLUMNS} FROM namespace n WHERE n.key IN ({placeholders(len(keys))})"
        " ORDER BY n.key",
        *keys,
    )
    return [records.namespace_from_row(*row) for row in found]


def counts(session: Session, who: Identity, names: Collection[str], most: int) -> dict[str, int]:
    """The number of listed skills in each visible namespace, counted up to ``most``."""
    seen, found = visible(who, "served"), dict[str, int]()
    for name in dict.fromkeys(names):
        [(found[name],)] = session.rows(
            "SELECT count(*) FROM (SELECT 1 FROM served WHERE listed = 1 AND key = ?"
            f" AND {seen.sql} LIMIT ?) AS part",
            f"{name}/",
            *seen.values,
            most,
        )
    return {name: count for name, count in found.items() if count}


def _chosen(ref: SkillRef) -> tuple[str, str]:
    """How to join the version of a reference, and the value for it."""
    if ref.version is None:
        return f"{_JOIN_CHANNEL} AND c.name = ?", ref.channel or STABLE
    try:
        version = str(parse_version(ref.version))
    except FormatError:
        version = ""  # which no version has
    return "JOIN version v ON v.skill_id = s.id AND v.version = ?", version


def _served(session: Session, who: Identity, paths: Iterable[str]) -> Release | None:
    """The stable version of the skill with one of these paths; at most one exists."""
    paths = list(paths)
    seen = visible(who, "p")
    found = session.row(
        f"SELECT p.document FROM served p WHERE p.path IN ({placeholders(len(paths)) or 'NULL'}) AND {seen.sql}",
        *paths,
        *seen.values,
    )
    return None if found is None else records.release_from_bytes(found[0])


def _release(session: Session, row: tuple[Any, ...]) -> Release:
    skill, path, is_listed, deprecated, instead, *of_version = row
    version_id, version, digest, manifest, at, by, yanked, source, archive = of_version
    channels = session.rows(
        "SELECT name FROM channel WHERE skill_id = ? AND version_id = ? ORDER BY name", skill, version_id
    )
    return Release(
        path=path,
        version=version,
        manifest=records.manifest_from_bytes(manifest, digest),
        published_at=at,
        published_by=by,
        listed=bool(is_listed),
        yanked=yanked,
        deprecated=deprecated,
        instead=instead,
        channels=tuple(name for (name,) in channels),
        source=json.loads(source),
        archive=archive,
    )
