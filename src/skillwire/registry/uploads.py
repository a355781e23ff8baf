"""The bytes of files, stored once for each namespace that uploaded them.

An upload is not a change: no caller sees it before a version is published. Uploads are the only writes that do not
wait for each other. Each locks one file and then its namespace, and what removes files locks them by digest first.
So two writers never wait for each other in a circle.
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
_UNUSED: Final = "NOT EXISTS (SELECT 1 FROM version_file f WHERE f.key = b.key AND f.digest = b.digest)"


def missing(session: Session, actor: Actor, namespace: str, digests: Collection[str]) -> list[str]:
    """Those of ``digests`` that were not uploaded to this namespace. The others are not tidied for a day."""
    wanted = list(dict.fromkeys(map(parse_digest, digests)))
    require(session, actor, namespace, "publish")
    key, known = f"{namespace}/", set[str]()
    for some in _parts(wanted):
        found = session.rows(
            f"SELECT digest, at FROM blob WHERE key = ? AND digest IN ({placeholders(len(some))})", key, *some
        )
        known.update(digest for digest, _ in found)
        for digest in sorted(digest for digest, at in found if at < actor.at - _RENEWED_AFTER):
            session.run("UPDATE blob SET at = ? WHERE key = ? AND digest = ?", actor.at, key, digest)
    return [digest for digest in wanted if digest not in known]


def put(session: Session, actor: Actor, namespace: str, digest: str, data: bytes) -> None:
    """Store bytes for a later publication."""
    if digest_of(data) != parse_digest(digest):
        raise VerificationError("blob-digest", f"the bytes do not have the digest {digest}", "upload them again")
    require(session, actor, namespace, "publish")
    key = f"{namespace}/"
    is_new = session.run(
        "INSERT INTO blob (key, digest, at, size, data) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        key,
        digest,
        actor.at,
        len(data),
        data,
    )
    if is_new:
        session.run("UPDATE namespace SET bytes = bytes + ? WHERE key = ?", len(data), key)
        # Afterwards: other uploads of this namespace are stored at the same time, and wait for this row.
        _check_quota(session, namespace)
    else:
        session.run(
            "UPDATE blob SET at = ? WHERE key = ? AND digest = ? AND at < ?", actor.at, key, digest, actor.at
        )


def get(session: Session, actor: Actor, namespace: str, digest: str) -> bytes | None:
    """Bytes that were uploaded to this namespace."""
    require(session, actor, namespace, "publish")
    found = session.row("SELECT data FROM blob WHERE key = ? AND digest = ?", f"{namespace}/", digest)
    return None if found is None else bytes(found[0])


def check_present(session: Session, key: str, manifest: Manifest) -> None:
    """Refuse a manifest with files that were not uploaded to the namespace, or have another size."""
    sizes: dict[str, int] = {}
    for some in _parts(sorted({file.digest for file in manifest.files})):
        marks = placeholders(len(some))
        sizes |= dict(
            session.rows(f"SELECT digest, size FROM blob WHERE key = ? AND digest IN ({marks})", key, *some)
        )
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
    """Remove those files of a namespace that no version uses (and were uploaded before ``before``); how many."""
    removed = 0
    lock = " FOR UPDATE" if session.dialect == "postgres" else ""
    for some in _parts(sorted(digests)):
        unused = session.rows(
            f"SELECT b.digest, b.size FROM blob b WHERE b.key = ? AND b.digest IN ({placeholders(len(some))})"
            f" {'' if before is None else 'AND b.at < ?'} AND {_UNUSED} ORDER BY b.digest{lock}",
            key,
            *some,
            *([] if before is None else [before]),
        )
        gone = [digest for digest, _ in unused]
        if not gone:
            continue
        removed += session.run(
            f"DELETE FROM blob WHERE key = ? AND digest IN ({placeholders(len(gone))})", key, *gone
        )
        freed = sum(size for _, size in unused)
        session.run("UPDATE namespace SET bytes = bytes - ? WHERE key = ?", freed, key)
    return removed


def tidy(session: Session, now: float) -> int:
    """Remove uploads that no version used within a day; how many."""
    before = now - UNUSED_SECONDS
    by_key: dict[str, list[str]] = {}
    for key, digest in session.rows(f"SELECT b.key, b.digest FROM blob b WHERE b.at < ? AND {_UNUSED}", before):
        by_key.setdefault(key, []).append(digest)
    return sum(remove_unused(session, key, by_key[key], before) for key in sorted(by_key))


def _check_quota(session: Session, namespace: str) -> None:
    [(used, most)] = session.rows("SELECT bytes, max_bytes FROM namespace WHERE key = ?", f"{namespace}/")
    if used > most:
        raise LimitError(
            "quota-bytes",
            f"{namespace} may store {most} bytes",
            f"ask an administrator for a higher quota of {namespace}",
        )


def _parts(digests: Sequence[str]) -> Iterator[Sequence[str]]:
    """Parts that fit into one statement."""
    for start in range(0, len(digests), _AT_ONCE):
        yield digests[start : start + _AT_ONCE]
