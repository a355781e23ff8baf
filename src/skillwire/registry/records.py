"""How the values of a registry are written in its database, as JSON. Pure.

JSON is written in ASCII, so a frontmatter can have characters that a database refuses.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from skillwire.registry.contract import AuditLine, Release, TokenInfo, TrustedPublisher
from skillwire.registry.model import Manifest, ManifestFile, Namespace, Quota

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

NAMESPACE_COLUMNS = "n.key, n.public, n.reviewed, n.max_skills, n.max_bytes, n.max_versions"
TOKEN_COLUMNS = (  # without the digest of the secret
    "id, name, subject, key, actions, expires_at, created_by, created_at, last_used, is_admin"  # noqa: S105
)
CHANGE_COLUMNS = "number, at, actor, address, what, path, version, facts"


def to_json(value: Any) -> str:
    """A value as JSON. Equal values are equal texts."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def names_to_json(names: Collection[str] | None) -> str | None:
    """A set of names, or none."""
    return None if names is None else to_json(sorted(names))


def manifest_to_bytes(manifest: Manifest) -> bytes:
    """A manifest, without its digest."""
    files = [[file.path, file.digest, file.size, file.executable] for file in manifest.files]
    # The fields of a frontmatter keep the order of their author.
    return json.dumps({"frontmatter": manifest.frontmatter, "files": files}, separators=(",", ":")).encode()


def manifest_from_bytes(data: bytes, digest: str) -> Manifest:
    """The manifest that ``manifest_to_bytes`` wrote."""
    return _manifest(json.loads(data), digest)


def release_to_bytes(release: Release) -> bytes:
    """A version as JSON, in the form that a store keeps and returns."""
    fields = {
        "path": release.path,
        "version": release.version,
        "digest": release.manifest.digest,
        "manifest": manifest_to_bytes(release.manifest).decode(),
        "published_at": release.published_at,
        "published_by": release.published_by,
        "listed": release.listed,
        "yanked": release.yanked,
        "deprecated": release.deprecated,
        "instead": release.instead,
        "channels": release.channels,
        "source": dict(release.source),
        "archive": release.archive,
    }
    return to_json(fields).encode()


def release_from_bytes(data: bytes) -> Release:
    """The version that ``release_to_bytes`` wrote."""
    fields = json.loads(data)
    return Release(
        path=fields["path"],
        version=fields["version"],
        manifest=_manifest(json.loads(fields["manifest"]), fields["digest"]),
        published_at=fields["published_at"],
        published_by=fields["published_by"],
        listed=fields["listed"],
        yanked=fields["yanked"],
        deprecated=fields["deprecated"],
        instead=fields["instead"],
        channels=tuple(fields["channels"]),
        source=fields["source"],
        archive=fields["archive"],
    )


def namespace_from_row(
    key: str, public: int, reviewed: int, max_skills: int, max_bytes: int, max_versions: int
) -> Namespace:
    """A row of ``NAMESPACE_COLUMNS``."""
    return Namespace(key[:-1], bool(public), bool(reviewed), Quota(max_skills, max_bytes, max_versions))


def token_from_row(
    token: str,
    name: str,
    subject: str,
    key: str | None,
    actions: str | None,
    expires_at: float | None,
    created_by: str,
    created_at: float,
    last_used: float | None,
    is_admin: int,
) -> TokenInfo:
    """A row of ``TOKEN_COLUMNS``."""
    return TokenInfo(
        token,
        name,
        subject,
        None if key is None else key[:-1],
        None if actions is None else frozenset(json.loads(actions)),
        expires_at,
        created_by,
        created_at,
        last_used,
        bool(is_admin),
    )


def publisher_from_row(number: int, key: str, issuer: str, claims: str, role: Any) -> TrustedPublisher:
    """A trusted publisher."""
    return TrustedPublisher(number, key[:-1], issuer, json.loads(claims), role)


def change_from_row(
    number: int, at: float, actor: str, address: str, what: str, path: str, version: str, facts: str
) -> AuditLine:
    """A row of ``CHANGE_COLUMNS``."""
    return AuditLine(number, at, actor, address, what, path, version, json.loads(facts))


def _manifest(fields: Mapping[str, Any], digest: str) -> Manifest:
    files = tuple(ManifestFile(*each) for each in fields["files"])
    return Manifest(fields["frontmatter"], files, digest)
