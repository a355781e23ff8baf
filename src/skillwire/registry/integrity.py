"""What ``skillwire registry fsck`` finds: each function checks one part, and returns faults and where to go on.

The database keeps references by itself; these checks also find what a damaged disk or another program did. Each
call is one snapshot of a small part, so a registry can be checked while it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from skillwire.errors import SkillwireError
from skillwire.registry import lookup, records
from skillwire.registry.contract import Fault
from skillwire.registry.model import build_manifest
from skillwire.skill.archive import unpack
from skillwire.skill.entry import digest_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillwire.registry.model import Manifest
    from skillwire.store.database import Session

AT_ONCE: Final = 100
_BYTES_AT_ONCE: Final = 16 * 1024 * 1024


def blobs(session: Session, after: str) -> tuple[list[Fault], str | None]:
    """Hash the bytes of some files again."""
    faults: list[Fault] = []
    some = session.rows(
        "SELECT key, digest, size FROM blob WHERE (key, digest) > (?, ?) ORDER BY key, digest LIMIT ?",
        *(after.split(" ") if after else ("", "")),
        AT_ONCE,
    )
    total, last = 0, None
    for key, digest, size in some:
        [(data,)] = session.rows("SELECT data FROM blob WHERE key = ? AND digest = ?", key, digest)
        if digest_of(bytes(data)) != digest or len(data) != size:
            words = f"the stored bytes of {key[:-1]} do not have this digest or size"
            faults.append(Fault("blob-damaged", digest, words))
        last, total = f"{key} {digest}", total + len(data)
        if total > _BYTES_AT_ONCE:
            break
    return faults, last


def namespaces(session: Session, after: str) -> tuple[list[Fault], str | None]:
    """Compare the counted sizes of some namespaces."""
    keys = session.rows("SELECT key, bytes FROM namespace WHERE key > ? ORDER BY key LIMIT ?", after, AT_ONCE)
    faults: list[Fault] = []
    for key, counted in keys:
        [(size,)] = session.rows("SELECT coalesce(sum(size), 0) FROM blob WHERE key = ?", key)
        if size != counted:
            faults.append(Fault("bytes-differ", key[:-1], f"{counted} bytes are counted, and {size} are stored"))
    return faults, keys[-1][0] if keys else None


def skills(session: Session, after: str) -> tuple[list[Fault], str | None]:
    """Check the versions, channels and served row of some skills."""
    some = session.rows(
        "SELECT id, path, key FROM skill WHERE path > ? ORDER BY path LIMIT ?", after, max(1, AT_ONCE // 10)
    )
    faults = [fault for skill, path, key in some for fault in _skill(session, skill, path, key)]
    return faults, some[-1][1] if some else None


def served(session: Session, after: str) -> tuple[list[Fault], str | None]:
    """Find served rows without a skill."""
    some = session.rows(
        "SELECT p.path, s.path FROM served p LEFT JOIN skill s ON s.id = p.skill_id"
        " WHERE p.path > ? ORDER BY p.path LIMIT ?",
        after,
        AT_ONCE,
    )
    faults = [
        Fault("served-differs", path, "a skill is served that does not exist") for path, of in some if path != of
    ]
    return faults, some[-1][0] if some else None


def _skill(session: Session, skill: int, path: str, key: str) -> Iterator[Fault]:
    for version_id, version, digest, manifest, deleted in session.rows(
        "SELECT id, version, digest, manifest, deleted FROM version WHERE skill_id = ? ORDER BY id", skill
    ):
        yield from _version(session, f"{path}@{version}", key, version_id, digest, manifest, deleted)
    for name, version, yanked, deleted in session.rows(
        "SELECT c.name, v.version, v.yanked, v.deleted FROM channel c LEFT JOIN version v"
        " ON v.id = c.version_id AND v.skill_id = c.skill_id WHERE c.skill_id = ? ORDER BY c.name",
        skill,
    ):
        if version is None or yanked is not None or deleted is not None:
            state = "missing" if version is None else "yanked" if deleted is None else "deleted"
            yield Fault("channel-invalid", f"{path}@{name}", f"it points to the {state} version {version}")
    yield from _served(session, skill, path, key)


def _version(
    session: Session, where: str, key: str, version: int, digest: str, manifest: Any, deleted: str | None
) -> Iterator[Fault]:
    rows = session.rows(
        "SELECT f.path, f.digest, f.key, b.size FROM version_file f LEFT JOIN blob b"
        " ON b.key = f.key AND b.digest = f.digest WHERE f.version_id = ?",
        version,
    )
    if deleted is not None:
        if rows or bytes(manifest) or session.row("SELECT 1 FROM archive WHERE version_id = ?", version):
            yield Fault("version-not-deleted", where, "its content is still stored")
        return
    try:
        content = records.manifest_from_bytes(bytes(manifest), digest)
        intact = content == build_manifest(content.frontmatter, content.files)
    except (ValueError, TypeError, KeyError):
        yield Fault("manifest-damaged", where, "its manifest cannot be read")
        return
    for path, of, _, size in rows:
        if size is None:
            yield Fault("blob-missing", of, f"{where} has it as {path!r:.200}")
    yield from _archive(session, where, version, content)
    expected = {(file.path, file.digest, key, file.size) for file in content.files}
    known = {(path, of, own, size) for path, of, own, size in rows if size is not None}
    if not intact or not known <= expected or len(rows) != len(expected):
        yield Fault("manifest-differs", where, "its manifest does not match its digest or its files")


def _archive(session: Session, where: str, version: int, content: Manifest) -> Iterator[Fault]:
    row = session.row("SELECT digest, data FROM archive WHERE version_id = ?", version)
    if row is None:
        return  # too large for one
    data = bytes(row[1])
    if digest_of(data) != row[0]:
        yield Fault("archive-damaged", where, "its stored zip file does not have its digest")
        return
    try:
        packed = {path: digest_of(each) for path, each in unpack(data, "zip").items()}
    except SkillwireError:
        packed = {}
    if packed != {file.path: file.digest for file in content.files}:
        yield Fault("archive-differs", where, "its stored zip file has other files")


def _served(session: Session, skill: int, path: str, key: str) -> Iterator[Fault]:
    row = session.row(
        "SELECT p.path, p.key, p.name, p.description, p.public, p.listed, p.document FROM served p"
        " WHERE p.skill_id = ?",
        skill,
    )
    try:
        release = lookup.stable_release(session, skill)
    except (ValueError, TypeError, KeyError):
        return  # a fault of the version, which was reported
    expected = None
    if release is not None:
        [(public,)] = session.rows("SELECT public FROM namespace WHERE key = ?", key)
        description = str(release.manifest.frontmatter.get("description", ""))
        name = path.rpartition("/")[2]
        expected = (path, key, name, description, public, int(release.listed), records.release_to_bytes(release))
    if row != expected and (row is None or (*row[:-1], bytes(row[-1])) != expected):
        yield Fault("served-differs", path, "what is served is not the version of its channel stable")
    found = session.rows("SELECT 1 FROM served_words WHERE rowid = ?", skill)
    if bool(found) != (release is not None and release.listed):
        yield Fault("search-differs", path, "it is found by the search and not listed, or the other way round")
