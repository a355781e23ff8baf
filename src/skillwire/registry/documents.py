"""The JSON documents of the HTTP API: what requests contain, and what responses show."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from skillwire.registry.model import Action, Role  # noqa: TC001 - pydantic reads them when the program runs

if TYPE_CHECKING:
    from skillwire.registry.contract import (
        AuditLine,
        Match,
        Published,
        Release,
        ReviewRequest,
        TokenInfo,
        TrustedPublisher,
        VersionLine,
    )
    from skillwire.registry.model import Namespace

Digest = Annotated[str, StringConstraints(pattern="^sha256:[0-9a-f]{64}$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=1_000, pattern=r"^[^\x00-\x1f\x7f]*$")]
Short = Annotated[str, StringConstraints(min_length=1, max_length=300)]
MOST_FILES = 10_000


class Body(BaseModel):
    """The body of a request. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class QuotaBody(Body):
    """The limits of a namespace. What is missing keeps its value."""

    skills: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    bytes: Annotated[int, Field(ge=0, le=1 << 50)] | None = None
    versions: Annotated[int, Field(ge=0, le=1_000_000)] | None = None


class NamespaceBody(Body):
    """The settings of a namespace. What is missing keeps its value, or has the default."""

    public: bool | None = None
    reviewed: bool | None = None
    quota: QuotaBody | None = None


class GrantBody(Body):
    """A role in a namespace."""

    role: Role


class PublisherBody(Body):
    """A program of an issuer that may publish with its web tokens. A token matches if it has all claims."""

    issuer: Short
    claims: Annotated[dict[Short, Short], Field(min_length=1, max_length=20)]
    role: Role = "publisher"


class DigestsBody(Body):
    """Digests of files."""

    digests: Annotated[list[Digest], Field(max_length=MOST_FILES)]


class FileBody(Body):
    """One file of a version. Its bytes were uploaded before."""

    path: Annotated[str, StringConstraints(min_length=1, max_length=4_096)]
    digest: Digest
    size: Annotated[int, Field(ge=0)]
    executable: bool = False


class VersionBody(Body):
    """A version to publish. ``metadata.version`` of its ``SKILL.md`` decides the number; else the next patch."""

    version: Short | None = None
    files: Annotated[list[FileBody], Field(min_length=1, max_length=MOST_FILES)]
    channel: Short | None = "stable"
    listed: bool = True
    quarantine: bool = False
    source: Annotated[dict[Short, Line], Field(max_length=20)] = {}


class ChannelBody(Body):
    """The version that a channel gets."""

    version: Short


class ReasonBody(Body):
    """Why something is withdrawn."""

    reason: Line


class DeprecationBody(Body):
    """Why a skill should not be used any more, and the path of the one to use instead."""

    message: Line
    instead: Short | None = None


class ListedBody(Body):
    """Whether a skill is listed."""

    listed: bool


class VerdictBody(Body):
    """The decision about a move of a channel. ``digest`` is that of the reviewed content."""

    verdict: Literal["approved", "declined"]
    digest: Digest
    note: Annotated[str, StringConstraints(max_length=1_000)] = ""


class TokenBody(Body):
    """A token to make. Without ``subject`` it acts for the caller."""

    name: Line
    subject: Short | None = None
    namespace: Short | None = None
    actions: list[Action] | None = None
    days: Annotated[int, Field(ge=1, le=3_650)] | None = None
    admin: bool = False


def stamp(at: float | None) -> str | None:
    """A time in UTC."""
    return (
        None
        if at is None
        else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    )


def namespace_json(namespace: Namespace) -> dict[str, Any]:
    """A namespace."""
    quota = namespace.quota
    return {
        "name": namespace.name,
        "public": namespace.public,
        "reviewed": namespace.reviewed,
        "quota": {"skills": quota.skills, "bytes": quota.bytes, "versions": quota.versions},
    }


def release_json(release: Release) -> dict[str, Any]:
    """One version, with its files."""
    return {
        "path": release.path,
        "version": release.version,
        "digest": release.manifest.digest,
        "frontmatter": dict(release.manifest.frontmatter),
        "files": [
            {"path": file.path, "digest": file.digest, "size": file.size, "executable": file.executable}
            for file in release.manifest.files
        ],
        "publishedAt": stamp(release.published_at),
        "publishedBy": release.published_by,
        "listed": release.listed,
        "yanked": release.yanked,
        "channels": sorted(release.channels),
        "source": dict(release.source),
    }


def line_json(line: VersionLine) -> dict[str, Any]:
    """One line of a history."""
    return {
        "version": line.version,
        "digest": line.digest,
        "publishedAt": stamp(line.published_at),
        "publishedBy": line.published_by,
        "yanked": line.yanked,
        "deleted": line.deleted,
        "channels": sorted(line.channels),
        "approved": line.approved,
        "source": dict(line.source),
    }


def published_json(published: Published) -> dict[str, Any]:
    """The result of a publication or of a move."""
    return {
        "outcome": published.outcome,
        "version": published.version,
        "moved": published.moved,
        "waits": published.waits,
        "note": published.note,
    }


def review_json(review: ReviewRequest) -> dict[str, Any]:
    """A move that waits for an approval."""
    return {
        "number": review.number,
        "path": review.path,
        "channel": review.channel,
        "version": review.version,
        "current": review.current,
        "digest": review.digest,
        "by": review.by,
        "at": stamp(review.at),
    }


def match_json(match: Match) -> dict[str, Any]:
    """One result of a search."""
    return {"path": match.path, "name": match.name, "description": match.description, "score": match.score}


def token_json(token: TokenInfo) -> dict[str, Any]:
    """A token without its secret."""
    return {
        "id": token.id,
        "name": token.name,
        "subject": token.subject,
        "namespace": token.namespace,
        "actions": None if token.actions is None else sorted(token.actions),
        "expiresAt": stamp(token.expires_at),
        "createdBy": token.created_by,
        "createdAt": stamp(token.created_at),
        "lastUsed": stamp(token.last_used),
        "admin": token.is_admin,
    }


def publisher_json(publisher: TrustedPublisher) -> dict[str, Any]:
    """A trusted publisher."""
    return {
        "number": publisher.number,
        "issuer": publisher.issuer,
        "claims": dict(publisher.claims),
        "role": publisher.role,
    }


def audit_json(line: AuditLine, *, with_number: bool) -> dict[str, Any]:
    """One line of the audit log. Its number counts the changes of all namespaces, so only some may see it."""
    words: dict[str, Any] = {
        "at": stamp(line.at),
        "by": line.by,
        "address": line.address,
        "what": line.what,
        "path": line.path,
        "version": line.version,
        "facts": dict(line.facts),
    }
    return {"number": line.number, **words} if with_number else words
