"""The bytes of files, stored once for all namespaces, and which namespace has uploaded which of them.

An upload is not a change: no caller sees it before a version is published. Uploads are the only writes that do not
wait for each other. Rows are locked in one order (the bytes, the upload, the namespace), and the bytes of several
files by digest. So two writers never wait for each other in a circle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from skillwire.errors import LimitError, NotFoundError, VerificationError
from skillwire.registry.visibility import require
from skillwire.skill.entry import digest_of, parse_digest
from skillwire.store.database import placeholders

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from skillwire.registry.model import Actor, Manifest
    from skillwire.store.database import Session

UNUSED_SECONDS: Final = 24 * 3600.0
_RENEWED_AFTER: Final = 3600.0
_AT_ONCE: Final = 500


def missing(session: Session, actor: Actor, namespace: str, digests: Collection[str]) -> list[str]:
    """Those of ``digests`` that were not uploaded to this namespace. The others are not tidied for a day."""
    wanted = list(dict.fromkeys(map(parse_digest, digests)))
    require(session, actor, namespace, "publish")
    key, known = f"{namespace}/", set[str]()
    for some in _parts(wanted):
        found = session.rows(
            f"SELECT digest, at FROM upload WHERE key = ? AND digest IN ({placeholders(len(some))})", key, *some
        )
        known.update(digest for digest, _ in found)
        old = sorted(digest for digest, at in found if at < actor.at - _RENEWED_AFTER)
        if old:
            session.run(
                f"UPDATE upload SET at = ? WHERE key = ? AND digest IN ({placeholders(len(old))})",
                actor.at,
                key,
                *old,
            )
    return [digest for digest in wanted if digest not in known]


def put(session: Session, actor: Actor, namespace: str, digest: str, data: bytes) -> None:
    """Store bytes for a later publication."""
    if digest_of(data) != parse_digest(digest):
        raise VerificationError("blob-digest", f"the bytes do not have the digest {digest}", "upload them again")
    require(session, actor, namespace, "publish")
    key = f"{namespace}/"
    _check_quota(session, namespace, len(data))
    # On a conflict the row is locked, so that ``remove_unused`` cannot remove it before the upload is stored.
    session.run(
        "INSERT INTO blob (digest, size, data) VALUES (?, ?, ?)"
        " ON CONFLICT (digest) DO UPDATE SET size = excluded.size",
        digest,
        len(data),
        data,
    )
    is_new = session.run(
        "INSERT INTO upload (key, digest, at) VALUES (?, ?, ?) ON CONFLICT (key, digest) DO NOTHING",
        key,
        digest,
        actor.at,
    )
    if is_new:
        session.run("UPDATE namespace SET bytes = bytes + ? WHERE key = ?", len(data), key)
        _check_quota(session, namespace, 0)  # again: other uploads of this namespace are stored at the same time
    else:
        session.run(
            "UPDATE upload SET at = ? WHERE key = ? AND digest = ? AND at < ?", actor.at, key, digest, actor.at
        )


def get(session: Session, actor: Actor, namespace: str, digest: str) -> bytes | None:
    """Bytes that were uploaded to this namespace."""
    require(session, actor, namespace, "publish")
    found = session.row(
        "SELECT b.data FROM upload u JOIN blob b ON b.digest = u.digest WHERE u.key = ? AND u.digest = ?",
        f"{namespace}/",
        digest,
    )
    return None if found is None else bytes(found[0])


def check_present(session: Session, key: str, manifest: Manifest) -> None:
    """Refuse a manifest with files that were not uploaded to the namespace, or have another size."""
    sizes: dict[str, int] = {}
    for some in _parts(sorted({file.digest for file in manifest.files})):
        found = session.rows(
            "SELECT u.digest, b.size FROM upload u JOIN blob b ON b.digest = u.digest"
            f" WHERE u.key = ? AND u.digest IN ({placeholders(len(some))})",
            key,
            *some,
        )
        sizes.update((digest, size) for digest, size in found)
    for file in manifest.files:
        if file.digest not in sizes:
            raise NotFoundError(
                "upload-missing",
                f"the file {file.path!r:.200} ({file.digest}) was not uploaded",
                "publish again, which uploads it",
            )
        if file.size != sizes[file.digest]:
            raise VerificationError(
                "manifest-size",
                f"the file {file.path!r:.200} has {sizes[file.digest]} bytes, not {file.size}",
                "publish again",
            )


def remove_unused(session: Session, key: str, digests: Collection[str], before: float | None = None) -> int:
    """Remove those uploads of a namespace that no version uses (and are older than ``before``); how many.

    Bytes that no namespace has any more are removed too.
    """
    removed = 0
    lock = " FOR UPDATE" if session.dialect == "postgres" else ""
    for some in _parts(sorted(digests)):
        marks = placeholders(len(some))
        sizes = dict(
            session.rows(f"SELECT digest, size FROM blob WHERE digest IN ({marks}) ORDER BY digest{lock}", *some)
        )
        unused = session.rows(
            f"SELECT u.digest FROM upload u WHERE u.key = ? AND u.digest IN ({marks})"
            f" {'' if before is None else 'AND u.at < ?'}"
            " AND NOT EXISTS (SELECT 1 FROM version_file f WHERE f.key = u.key AND f.digest = u.digest)",
            key,
            *some,
            *([] if before is None else [before]),
        )
        gone = sorted(digest for (digest,) in unused)
        if not gone:
            continue
        marks = placeholders(len(gone))
        removed += session.run(f"DELETE FROM upload WHERE key = ? AND digest IN ({marks})", key, *gone)
        session.run(
            f"DELETE FROM blob WHERE digest IN ({marks})"
            " AND NOT EXISTS (SELECT 1 FROM upload u WHERE u.digest = blob.digest)",
            *gone,
        )
        freed = sum(sizes[digest] for digest in gone)
        session.run("UPDATE namespace SET bytes = bytes - ? WHERE key = ?", freed, key)
    return removed


def tidy(session: Session, now: float) -> int:
    """Remove uploads that no version used within a day; how many."""
    before = now - UNUSED_SECONDS
    found = session.rows(
        "SELECT u.key, u.digest FROM upload u WHERE u.at < ?"
        " AND NOT EXISTS (SELECT 1 FROM version_file f WHERE f.key = u.key AND f.digest = u.digest)"
        " ORDER BY u.key, u.digest",
        before,
    )
    by_key: dict[str, list[str]] = {}
    for key, digest in found:
        by_key.setdefault(key, []).append(digest)
    return sum(remove_unused(session, key, digests, before) for key, digests in by_key.items())


def _check_quota(session: Session, namespace: str, more: int) -> None:
    [(used, most)] = session.rows("SELECT bytes, max_bytes FROM namespace WHERE key = ?", f"{namespace}/")
    if used + more > most:
        raise LimitError(
            "quota-bytes",
            f"{namespace} may store {most} bytes",
            f"ask an administrator for a higher quota of {namespace}",
        )


def _parts(digests: Sequence[str]) -> Iterator[Sequence[str]]:
    """Parts that fit into one statement."""
    for start in range(0, len(digests), _AT_ONCE):
        yield digests[start : start + _AT_ONCE]
