"""A registry in a SQL database: SQLite or PostgreSQL (``store/database.py``).

Each method is one transaction. What it does is in the functions that it calls:

- ``lookup.py`` reads, and ``visibility.py`` has the conditions for what a caller may see and do;
- ``versions.py`` changes skills, ``uploads.py`` stores files, ``administration.py`` changes who may do what;
- ``projection.py`` derives what is served and found, and ``changes.py`` appends to the audit log;
- ``integrity.py`` checks all of it; ``schema.py`` has the tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skillwire.registry import administration, changes, integrity, lookup, projection, uploads, versions
from skillwire.registry.administration import TOKEN_USE_SECONDS
from skillwire.registry.contract import RegistryStore
from skillwire.registry.visibility import actions_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

    from skillwire.registry.contract import (
        AuditLine,
        Draft,
        Fault,
        Match,
        Published,
        Release,
        ReviewRequest,
        ReviewVerdict,
        TokenInfo,
        TrustedPublisher,
        VersionLine,
    )
    from skillwire.registry.model import Action, Actor, Identity, Namespace, Role, SkillRef
    from skillwire.store.database import Database, Session


class SqlRegistryStore(RegistryStore):
    """The store on a database with the tables of ``schema.SCHEMA``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # Reading, as one caller sees it

    async def skills(
        self, who: Identity, after: str = "", limit: int = 100, *, below: str = ""
    ) -> Sequence[Release]:
        """The listed skills with a ``stable`` version after the path ``after``, sorted by path (bytewise)."""
        return await self._database.read(lambda session: lookup.skills(session, who, after, limit, below))

    async def release(self, who: Identity, ref: SkillRef) -> Release | None:
        """One version. A yanked one is returned too; a deleted one is not."""
        return await self._database.read(lambda session: lookup.release(session, who, ref))

    async def history(self, who: Identity, path: str) -> Sequence[VersionLine]:
        """All versions of a skill, the newest first; empty if there is none."""
        return await self._database.read(lambda session: lookup.history(session, who, path))

    async def read(self, who: Identity, ref: SkillRef, file: str) -> bytes | None:
        """The bytes of one file of a version."""
        return await self._database.read(lambda session: lookup.read(session, who, ref, file))

    async def archive(self, who: Identity, path: str, digest: str) -> bytes | None:
        """The zip file with this digest, of one of the versions of a skill."""
        return await self._database.read(lambda session: lookup.archive(session, who, path, digest))

    async def around(self, who: Identity, path: str) -> Release | None:
        """The ``stable`` version of the skill at ``path``, or of the one that ``path`` is inside."""
        return await self._database.read(lambda session: lookup.around(session, who, path))

    async def children(self, who: Identity, folder: str, after: str = "", limit: int = 100) -> Sequence[str]:
        """Names directly below a folder above skills, sorted; ``""`` for the root. Only listed skills count."""
        return await self._database.read(lambda session: lookup.children(session, who, folder, after, limit))

    async def beginning(self, who: Identity, text: str, limit: int = 100) -> Sequence[str]:
        """Paths of listed skills that begin with ``text``, sorted."""
        return await self._database.read(lambda session: lookup.beginning(session, who, text, limit))

    async def named(self, who: Identity, names: Collection[str]) -> Mapping[str, Sequence[str]]:
        """The paths of the listed skills with each of these names, sorted; at most 100 for each name."""
        return await self._database.read(lambda session: lookup.named(session, who, names))

    async def search(self, who: Identity, words: Sequence[str], limit: int = 20) -> Sequence[Match]:
        """The listed skills that match best, best first. A skill needs only one of the words."""
        return await self._database.read(lambda session: projection.search(session, who, words, limit))

    async def namespaces(self, who: Identity, after: str = "", limit: int = 100) -> Sequence[Namespace]:
        """The visible namespaces, in the order of their skills' paths: ``a-b`` comes before ``a``."""
        return await self._database.read(lambda session: lookup.namespaces(session, who, after, limit))

    async def namespace(self, who: Identity, name: str) -> Namespace | None:
        """One namespace, if this caller may read it."""
        return await self._database.read(lambda session: administration.namespace(session, who, name))

    async def counts(self, who: Identity, namespaces: Collection[str], most: int) -> Mapping[str, int]:
        """The number of listed skills in each visible namespace, counted up to ``most``."""
        return await self._database.read(lambda session: lookup.counts(session, who, namespaces, most))

    async def actions(self, who: Identity, namespace: str) -> frozenset[Action]:
        """What a caller may do in a namespace; nothing if it may not know the namespace."""
        return await self._database.read(lambda session: actions_in(session, who, namespace))

    # Publishing

    async def paths(self, actor: Actor, namespace: str, after: str = "", limit: int = 100) -> Sequence[str]:
        """The paths of all skills of a namespace, sorted, for those who may publish there."""
        return await self._database.read(lambda session: versions.paths(session, actor, namespace, after, limit))

    async def missing(self, actor: Actor, namespace: str, digests: Collection[str]) -> Sequence[str]:
        """Those of ``digests`` that were not uploaded to this namespace, whatever other namespaces have."""
        return await self._database.write(
            lambda session: uploads.missing(session, actor, namespace, digests), concurrent=True
        )

    async def put_blob(self, actor: Actor, namespace: str, digest: str, data: bytes) -> None:
        """Store bytes for a later publication; ``VerificationError`` if they do not have this digest."""
        await self._database.write(
            lambda session: uploads.put(session, actor, namespace, digest, data), concurrent=True
        )

    async def uploaded(self, actor: Actor, namespace: str, digest: str) -> bytes | None:
        """Bytes that were uploaded to this namespace, for the checks before a publication."""
        return await self._database.read(lambda session: uploads.get(session, actor, namespace, digest))

    async def publish(self, actor: Actor, draft: Draft) -> Published:
        """Publish a version. The same content under its number again is ``unchanged``."""
        return await self._database.write(lambda session: versions.publish(session, actor, draft))

    async def move_channel(self, actor: Actor, path: str, channel: str, version: str | None) -> Published:
        """Let a channel point to a version (promote, roll back), or remove it with ``None``."""
        return await self._database.write(
            lambda session: versions.move_channel(session, actor, path, channel, version)
        )

    async def yank(self, actor: Actor, path: str, version: str, reason: str | None) -> None:
        """Yank a version, with a reason, or undo it with ``None``. Pins still find it."""
        await self._database.write(lambda session: versions.yank(session, actor, path, version, reason))

    async def deprecate(self, actor: Actor, path: str, message: str | None, instead: str | None = None) -> None:
        """Deprecate a skill, or undo it with ``None``."""
        await self._database.write(lambda session: versions.deprecate(session, actor, path, message, instead))

    async def set_listed(self, actor: Actor, path: str, *, listed: bool) -> None:
        """List a skill, or serve it without listing it."""
        await self._database.write(lambda session: versions.set_listed(session, actor, path, listed=listed))

    async def delete(self, actor: Actor, path: str, version: str, reason: str) -> None:
        """Delete the content of a version. Only for administrators. A tombstone with the reason stays."""
        await self._database.write(lambda session: versions.delete(session, actor, path, version, reason))

    async def reviews(self, who: Identity, namespace: str | None = None) -> Sequence[ReviewRequest]:
        """The open reviews that this caller may see, the oldest first."""
        return await self._database.read(lambda session: versions.reviews(session, who, namespace))

    async def decide(
        self, actor: Actor, number: int, verdict: ReviewVerdict, *, digest: str, note: str = ""
    ) -> None:
        """Approve or decline a review. ``digest`` must be that of the reviewed content."""
        await self._database.write(lambda session: versions.decide(session, actor, number, verdict, digest, note))

    # Administration

    async def create_namespace(self, actor: Actor, namespace: Namespace) -> None:
        """Create a namespace, whose owner is the actor. Only administrators can."""
        await self._database.write(lambda session: administration.create_namespace(session, actor, namespace))

    async def change_namespace(self, actor: Actor, namespace: Namespace) -> None:
        """Change the settings of a namespace. Only administrators change quotas."""
        await self._database.write(lambda session: administration.change_namespace(session, actor, namespace))

    async def grant(self, actor: Actor, namespace: str, principal: str, role: Role | None) -> None:
        """Give a principal a role in a namespace, or none. The last owner cannot be removed."""
        await self._database.write(
            lambda session: administration.grant(session, actor, namespace, principal, role)
        )

    async def grants(self, actor: Actor, namespace: str) -> Mapping[str, Role]:
        """The roles in a namespace by principal. For its owners."""
        return await self._database.read(lambda session: administration.grants(session, actor, namespace))

    async def put_token(self, actor: Actor, token: TokenInfo, secret_digest: str) -> None:
        """Store a token. Only administrators can make a token that may do more than they may, or lives longer."""
        await self._database.write(lambda session: administration.put_token(session, actor, token, secret_digest))

    async def tokens(self, actor: Actor) -> Sequence[TokenInfo]:
        """The tokens of the actor that may do no more than the one in use; all tokens for administrators."""
        return await self._database.read(lambda session: administration.tokens(session, actor))

    async def revoke_token(self, actor: Actor, token: str) -> None:
        """Revoke a token by its id."""
        await self._database.write(lambda session: administration.revoke_token(session, actor, token))

    async def token(self, secret_digest: str, now: float) -> TokenInfo | None:
        """The valid token with this digest of its secret. Notes its use, at most once an hour."""
        return await self._used(lambda session: administration.token(session, secret_digest, now), now)

    async def _used(self, find: Callable[[Session], TokenInfo | None], now: float) -> TokenInfo | None:
        found = await self._database.read(find)
        if found is not None and (found.last_used is None or found.last_used <= now - TOKEN_USE_SECONDS):
            await self._database.write(lambda session: administration.note_token_use(session, found, now))
        return found

    async def open_session(self, token: str, secret_digest: str, expires_at: float) -> None:
        """Store a browser session of the token with this id."""
        await self._database.write(
            lambda session: administration.open_session(session, token, secret_digest, expires_at)
        )

    async def session(self, secret_digest: str, now: float) -> TokenInfo | None:
        """The valid token of a browser session. Notes its use, as ``token`` does."""
        return await self._used(lambda session: administration.session_token(session, secret_digest, now), now)

    async def close_session(self, secret_digest: str) -> None:
        """End a browser session."""
        await self._database.write(lambda session: administration.close_session(session, secret_digest))

    async def trust(self, actor: Actor, publisher: TrustedPublisher) -> int:
        """Add a trusted publisher; its number."""
        return await self._database.write(lambda session: administration.trust(session, actor, publisher))

    async def distrust(self, actor: Actor, namespace: str, number: int) -> None:
        """Remove a trusted publisher."""
        await self._database.write(lambda session: administration.distrust(session, actor, namespace, number))

    async def trusted(self, issuer: str) -> Sequence[TrustedPublisher]:
        """All trusted publishers of an issuer."""
        return await self._database.read(lambda session: administration.trusted(session, issuer))

    async def audit(
        self, actor: Actor, *, namespace: str | None = None, before: int | None = None, limit: int = 100
    ) -> Sequence[AuditLine]:
        """The newest lines of the audit log, newest first. Owners may read that of their namespace."""
        return await self._database.read(
            lambda session: administration.audit(session, actor, namespace, before, limit)
        )

    # Replicas and maintenance

    async def clock(self) -> int:
        """The number of the newest change."""
        return await self._database.read(changes.clock)

    async def changes(self, after: int, limit: int = 1000) -> Sequence[AuditLine]:
        """The changes after a clock, oldest first. For the server itself, never for a caller."""
        return await self._database.read(lambda session: changes.after(session, after, limit))

    async def readers(self, namespaces: Collection[str]) -> Mapping[str, frozenset[str] | None]:
        """The principals that may read each namespace; ``None`` for a public one. For the server itself."""
        return await self._database.read(lambda session: administration.readers(session, namespaces))

    async def tidy(self, now: float) -> int:
        """Remove uploads that no version used within a day, and expired tokens and sessions; how many."""
        return await self._database.write(
            lambda session: uploads.tidy(session, now) + administration.remove_expired(session, now)
        )

    async def check(self) -> AsyncIterator[Fault]:
        """Hash every blob again and check every reference (``skillwire registry fsck``)."""
        for part in (integrity.blobs, integrity.namespaces, integrity.skills, integrity.served):
            after: str | None = ""
            while after is not None:
                faults, after = await self._database.read(lambda session, part=part, at=after: part(session, at))
                for fault in faults:
                    yield fault

    async def close(self) -> None:
        """Close files and connections."""
        await self._database.close()
