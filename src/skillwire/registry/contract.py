"""The contract of a registry's store: namespaces, versions, channels, roles, tokens, and the audit log.

Every implementation passes ``tests/contracts/test_registry_contract.py``, on SQLite and on PostgreSQL:

- Each call is one transaction. A change takes effect completely or not at all, and appends to the audit log in the
  same transaction. Nothing of an unfinished publication is ever visible.
- A version never changes after it was published, except that it is yanked or deleted. Its number is never used
  again for other content, also after it was deleted.
- A method with an ``Identity`` answers as if everything that this identity may not read did not exist: with the
  same result, made by the same steps (no error, size, count, order or digest depends on it).
- Methods for changes check the permission of the actor. Without ``read`` the answer is ``NotFoundError``, with
  ``read`` but without the needed action it is ``ApprovalError`` (``registry-forbidden``). A change that the
  stored versions do not allow (a used number, a yanked version) is a ``ConflictError``.
- In a reviewed namespace a version needs an approval, and in any namespace if it is published with ``quarantine``.
  Until then only those who may publish, review or manage there see it. To all others it does not exist.
- ``clock`` is a number that grows with every change, and is never less than that of an earlier answer.
- Times are seconds since 1970 and passed in; a store reads no clock.
- The cost of a page, a lookup and a read does not depend on the number of skills or namespaces.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence

    from skillwire.registry.model import (
        Action,
        Actor,
        Identity,
        Manifest,
        Namespace,
        Role,
        SkillRef,
    )

PublishOutcome: TypeAlias = Literal["created", "unchanged"]
ReviewVerdict: TypeAlias = Literal["approved", "declined"]


@dataclass(frozen=True, slots=True)
class Release:
    """One version as a caller sees it."""

    path: str
    version: str
    manifest: Manifest
    published_at: float
    published_by: str
    listed: bool = True
    yanked: str | None = None  # the reason
    deprecated: str | None = None  # the message of the skill's deprecation
    instead: str | None = None  # the path of the skill to use instead
    channels: tuple[str, ...] = ()  # that point to it
    source: Mapping[str, str] = field(default_factory=dict[str, str])  # such as a repository and its commit
    archive: str | None = None  # the digest of all files as a zip file; None if they are too large for one


@dataclass(frozen=True, slots=True)
class VersionLine:
    """One line of a skill's history. A deleted version is a tombstone, with the reason."""

    version: str
    digest: str
    published_at: float
    published_by: str
    yanked: str | None = None
    deleted: str | None = None
    channels: tuple[str, ...] = ()
    approved: bool = True  # whether everyone who may read the namespace may see it
    source: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Draft:
    """A version to publish. All its files were uploaded before.

    Its number is ``metadata.version``, else ``version``, else the next patch. ``channel`` moves to the version if
    it is newer than the one that the channel has; ``None`` moves none. ``listed`` is for a new skill. With
    ``quarantine`` it needs a review in every namespace, as in a reviewed one.
    """

    path: str
    manifest: Manifest
    version: str | None = None
    channel: str | None = "stable"
    listed: bool = True
    source: Mapping[str, str] = field(default_factory=dict[str, str])
    quarantine: bool = False


@dataclass(frozen=True, slots=True)
class Published:
    """The result of a publication. ``waits``: the channel moves when the review with this number is approved."""

    outcome: PublishOutcome
    version: str
    moved: bool
    waits: int | None = None
    note: str = ""  # why the channel did not move


@dataclass(frozen=True, slots=True)
class ReviewRequest:
    """A move of a channel that another person has to approve."""

    number: int
    path: str
    channel: str
    version: str
    current: str | None  # the version that the channel has now
    digest: str  # of the version's content: an approval names it
    by: str
    at: float


@dataclass(frozen=True, slots=True)
class Match:
    """One result of a search."""

    path: str
    name: str
    description: str
    score: float


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One change: who, what, from where, before and after. ``number`` is the clock of the change."""

    number: int
    at: float
    by: str
    address: str
    what: str
    path: str
    version: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """A token, without its secret."""

    id: str
    name: str
    subject: str  # the principal that it acts for, such as user:ada
    namespace: str | None
    actions: frozenset[Action] | None
    expires_at: float | None
    created_by: str
    created_at: float
    last_used: float | None = None
    is_admin: bool = False


@dataclass(frozen=True, slots=True)
class TrustedPublisher:
    """A program of an issuer, such as a CI workflow, that may publish with its web tokens.

    A token matches if it has all ``claims``. They name the program by ids that never change hands.
    """

    number: int
    namespace: str
    issuer: str
    claims: Mapping[str, str]
    role: Role = "publisher"


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that ``fsck`` found."""

    what: str  # a stable reference, such as blob-damaged
    where: str
    message: str


class RegistryStore(ABC):
    """The data of a registry."""

    # Reading, as one caller sees it

    @abstractmethod
    async def skills(
        self, who: Identity, after: str = "", limit: int = 100, *, below: str = ""
    ) -> Sequence[Release]:
        """The listed skills with a ``stable`` version after the path ``after``, sorted by path (bytewise).

        With ``below`` only those at or below this path.
        """

    @abstractmethod
    async def release(self, who: Identity, ref: SkillRef) -> Release | None:
        """One version. A yanked one is returned too; a deleted one is not."""

    @abstractmethod
    async def history(self, who: Identity, path: str) -> Sequence[VersionLine]:
        """All versions of a skill, the newest first; empty if there is none."""

    @abstractmethod
    async def read(self, who: Identity, ref: SkillRef, file: str) -> bytes | None:
        """The bytes of one file of a version."""

    @abstractmethod
    async def archive(self, who: Identity, path: str, digest: str) -> bytes | None:
        """The version of the skill at ``path`` whose zip file has this digest, as this zip file.

        It is made when the version is published, and always has the same bytes.
        """

    @abstractmethod
    async def around(self, who: Identity, path: str) -> Release | None:
        """The ``stable`` version of the skill at ``path``, or of the one that ``path`` is inside."""

    @abstractmethod
    async def children(self, who: Identity, folder: str, after: str = "", limit: int = 100) -> Sequence[str]:
        """Names directly below a folder above skills, sorted; ``""`` for the root. Only listed skills count."""

    @abstractmethod
    async def beginning(self, who: Identity, text: str, limit: int = 100) -> Sequence[str]:
        """Paths of listed skills that begin with ``text``, sorted."""

    @abstractmethod
    async def named(self, who: Identity, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """The paths of the listed skills with each of these names, sorted; at most 100 for each name."""

    @abstractmethod
    async def search(self, who: Identity, words: Sequence[str], limit: int = 20) -> Sequence[Match]:
        """The listed skills that match best, best first. A skill needs only one of the words."""

    @abstractmethod
    async def namespaces(self, who: Identity, after: str = "", limit: int = 100) -> Sequence[Namespace]:
        """The visible namespaces, in the order of their skills' paths: ``a-b`` comes before ``a``."""

    @abstractmethod
    async def namespace(self, who: Identity, name: str) -> Namespace | None:
        """One namespace, if this caller may read it."""

    @abstractmethod
    async def counts(self, who: Identity, namespaces: Collection[str], most: int) -> Mapping[str, int]:
        """The number of listed skills in each visible namespace that has some, counted up to ``most``."""

    @abstractmethod
    async def actions(self, who: Identity, namespace: str) -> frozenset[Action]:
        """What a caller may do in a namespace; nothing if it may not know the namespace."""

    # Publishing

    @abstractmethod
    async def paths(self, actor: Actor, namespace: str, after: str = "", limit: int = 100) -> Sequence[str]:
        """The paths of all skills of a namespace, sorted, for those who may publish there."""

    @abstractmethod
    async def missing(self, actor: Actor, namespace: str, digests: Collection[str]) -> Sequence[str]:
        """Those of ``digests`` that were not uploaded to this namespace, whatever other namespaces have."""

    @abstractmethod
    async def put_blob(self, actor: Actor, namespace: str, digest: str, data: bytes) -> None:
        """Store bytes for a later publication; ``VerificationError`` if they do not have this digest."""

    @abstractmethod
    async def uploaded(self, actor: Actor, namespace: str, digest: str) -> bytes | None:
        """Bytes that were uploaded to this namespace, for the checks before a publication."""

    @abstractmethod
    async def publish(self, actor: Actor, draft: Draft) -> Published:
        """Publish a version. The same content under its number again is ``unchanged``."""

    @abstractmethod
    async def move_channel(self, actor: Actor, path: str, channel: str, version: str | None) -> Published:
        """Let a channel point to a version (promote, roll back), or remove it with ``None``."""

    @abstractmethod
    async def yank(self, actor: Actor, path: str, version: str, reason: str | None) -> None:
        """Yank a version, with a reason, or undo it with ``None``. Pins still find it.

        A channel that points to it moves to the newest version below it that is not yanked. For ``stable``, that
        is not a pre-release either. If there is none, the channel is removed. Undoing it moves no channel.
        """

    @abstractmethod
    async def deprecate(self, actor: Actor, path: str, message: str | None, instead: str | None = None) -> None:
        """Deprecate a skill, or undo it with ``None``."""

    @abstractmethod
    async def set_listed(self, actor: Actor, path: str, *, listed: bool) -> None:
        """List a skill, or serve it without listing it."""

    @abstractmethod
    async def delete(self, actor: Actor, path: str, version: str, reason: str) -> None:
        """Delete the content of a version. Only for administrators. A tombstone with the reason stays."""

    @abstractmethod
    async def reviews(self, who: Identity, namespace: str | None = None) -> Sequence[ReviewRequest]:
        """The open reviews that this caller may see, the oldest first."""

    @abstractmethod
    async def decide(
        self, actor: Actor, number: int, verdict: ReviewVerdict, *, digest: str, note: str = ""
    ) -> None:
        """Approve or decline a review. ``digest`` must be that of the reviewed content.

        The publisher of the version and the one who asked for the move cannot.
        """

    # Administration

    @abstractmethod
    async def create_namespace(self, actor: Actor, namespace: Namespace) -> None:
        """Create a namespace, whose owner is the actor. Only administrators can."""

    @abstractmethod
    async def change_namespace(self, actor: Actor, namespace: Namespace) -> None:
        """Change the settings of a namespace. Only administrators change quotas."""

    @abstractmethod
    async def grant(self, actor: Actor, namespace: str, principal: str, role: Role | None) -> None:
        """Give a principal a role in a namespace, or none. The last owner cannot be removed."""

    @abstractmethod
    async def grants(self, actor: Actor, namespace: str) -> Mapping[str, Role]:
        """The roles in a namespace by principal. For its owners."""

    @abstractmethod
    async def put_token(self, actor: Actor, token: TokenInfo, secret_digest: str) -> None:
        """Store a token. Only administrators can make a token that may do more than they may, or lives longer."""

    @abstractmethod
    async def tokens(self, actor: Actor) -> Sequence[TokenInfo]:
        """The tokens of the actor that may do no more than the one in use; all tokens for administrators."""

    @abstractmethod
    async def revoke_token(self, actor: Actor, token: str) -> None:
        """Revoke a token by its id."""

    @abstractmethod
    async def token(self, secret_digest: str, now: float) -> TokenInfo | None:
        """The valid token with this digest of its secret. Notes its use, at most once an hour."""

    @abstractmethod
    async def open_session(self, token: str, secret_digest: str, expires_at: float) -> None:
        """Store a browser session of the token with this id. It ends with its token, or before."""

    @abstractmethod
    async def session(self, secret_digest: str, now: float) -> TokenInfo | None:
        """The valid token of a browser session. Notes its use, as ``token`` does."""

    @abstractmethod
    async def close_session(self, secret_digest: str) -> None:
        """End a browser session."""

    @abstractmethod
    async def trust(self, actor: Actor, publisher: TrustedPublisher) -> int:
        """Add a trusted publisher; its number."""

    @abstractmethod
    async def distrust(self, actor: Actor, namespace: str, number: int) -> None:
        """Remove a trusted publisher."""

    @abstractmethod
    async def trusted(self, issuer: str) -> Sequence[TrustedPublisher]:
        """All trusted publishers of an issuer."""

    @abstractmethod
    async def audit(
        self, actor: Actor, *, namespace: str | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[AuditLine]:
        """The newest lines of the audit log, newest first. Owners may read that of their namespace."""

    # Replicas and maintenance

    @abstractmethod
    async def clock(self) -> int:
        """The number of the newest change."""

    @abstractmethod
    async def changes(self, after: int, limit: int = 1000) -> Sequence[AuditLine]:
        """The changes after a clock, oldest first. For the server itself, never for a caller."""

    @abstractmethod
    async def readers(self, namespaces: Collection[str]) -> Mapping[str, frozenset[str] | None]:
        """The principals that may read each namespace; ``None`` for a public one. For the server itself.

        Administrators are not among them. A namespace that does not exist is absent.
        """

    @abstractmethod
    async def tidy(self, now: float) -> int:
        """Remove uploads that no version used within a day, and expired tokens and sessions; how many.

        Asking for ``missing`` digests counts as a use.
        """

    @abstractmethod
    def check(self) -> AsyncIterator[Fault]:
        """Hash every blob again and check every reference (``skillwire registry fsck``)."""

    @abstractmethod
    async def close(self) -> None:
        """Close files and connections."""
