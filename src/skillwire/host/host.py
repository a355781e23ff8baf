"""The host of an agent: its origins, the names of their skills, and the decisions of a person.

What a model does goes through ``Conversation``, its base class. Content of a server reaches a model only after a
person or their policy approved exactly that content.
"""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

import anyio
from anyio import to_thread

from skillwire.errors import ApprovalError, NotFoundError, OriginError, SkillwireError, StoreError
from skillwire.host.approvals import (
    ASKED_TO,
    Answer,
    ApprovalRequest,
    Approvals,
    cannot_ask,
    declines,
    is_outdated,
    no_ask,
)
from skillwire.host.conversation import MISMATCHES, Conversation
from skillwire.host.loader import Content, Loader
from skillwire.host.origins import NamedEntry, OriginRegistry, has_other
from skillwire.host.results import OriginStatus, SkillStatus, status_of
from skillwire.host.state import check_state, known_origins, open_cache, open_store, several
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.approval import claimed_contents, contents_of, has_contents
from skillwire.skill.approval import fingerprint as fingerprint_of_contents
from skillwire.store.place import USER, expanded
from skillwire.store.records import LogLine
from skillwire.store.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence
    from pathlib import Path
    from typing import Self

    from anyio.abc import TaskGroup

    from skillwire.host.approvals import Ask, Policy
    from skillwire.host.conversation import Event
    from skillwire.host.origins import Names
    from skillwire.skill.review import Review
    from skillwire.store.content_cache import ContentCache

_WATCH_SECONDS = 0.5

log = logging.getLogger("skillwire.host")


class SkillHost(Conversation):
    """The skills of many origins, for an agent. It is its own first conversation; ``conversation`` makes more."""

    def __init__(
        self,
        store: Store,
        *,
        cache: ContentCache | None = None,
        policy: Policy | None = None,
        ask: Ask = cannot_ask,
        limits: Limits = DEFAULT_LIMITS,
        instructions: bool = False,
    ) -> None:
        super().__init__(self)
        self._has_changed = anyio.Event()  # an origin, since ``_revoke_outdated`` looked
        self.store = store
        self.cache = cache
        self.approvals = Approvals(store, policy, ask)
        self.registry = OriginRegistry(store, cache, limits, self.origins_changed, instructions=instructions)
        self.loader = Loader(self.approvals, self.registry, cache, limits)
        self._conversations: WeakSet[Conversation] = WeakSet([self])
        self._declined: dict[tuple[str, str], LogLine] = {}  # the newest decision of declined skills
        self._group: TaskGroup | None = None

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        *,
        servers: Mapping[str, Any] | None = None,
        config: str | Path | None = None,
        folders: Sequence[str | Path] | Mapping[str, str | Path] = (),
        state: str | Path | None = None,
        stored_origins: bool = False,
        policy: Policy | None = None,
        ask: Ask | None = None,
        limits: Limits = DEFAULT_LIMITS,
        instructions: bool = False,
    ) -> AsyncGenerator[Self]:
        """Open a host with the given servers, those of an ``mcpServers`` file, and folders; nothing else is used.

        ``state`` is the folder for approvals, listings and verified content; without it, they are in memory. It
        can also be the URL of a PostgreSQL database for approvals and listings; verified content is then in the
        user's state folder.
        ``"user"`` is the state of ``skillwire`` on the command line, with its approvals and its stored origins.
        ``stored_origins`` also uses the stored origins of another state folder.

        The host is ready at once, with the last listing of each server; ``settle`` waits for current answers.
        With ``instructions``, it also requests the skills that are named in a server's instructions (I5).
        """
        if servers is not None and not isinstance(cast("object", servers), Mapping):
            raise TypeError("'servers' has a label for each server: servers={'acme': 'https://example.com/mcp'}")
        if not isinstance(folders, Mapping):
            folders = several(folders)
            labels = ("local", *(f"local-{number}" for number in range(2, len(folders) + 1)))
            folders = dict(zip(labels, folders, strict=False))
        given = {label: expanded(path) for label, path in folders.items()}
        if state is not None:
            await to_thread.run_sync(check_state, state, list(given.values()))
        store: Store = Store.memory() if state is None else await open_store(state)
        try:
            added, known = await known_origins(store, config, stored=stored_origins or state == USER)
            places = {**given, **{label: path for label, path in added.items() if label not in (servers or {})}}
            cache = None
            if state is not None:
                cache = await to_thread.run_sync(open_cache, state, list(places.values()))
            if ask is None:
                ask = no_ask if state is None else cannot_ask
            host = cls(store, cache=cache, policy=policy, ask=ask, limits=limits, instructions=instructions)
            for label, path in places.items():
                await to_thread.run_sync(host.registry.add_folder, label, path)
            async with host.connected({**known, **(servers or {})}):
                yield host
        finally:
            await store.close()

    @asynccontextmanager
    async def connected(self, targets: Mapping[str, Any]) -> AsyncGenerator[None]:
        """Keep the servers at ``targets`` connected, and watch the folders, while the block runs."""
        error: Exception | None = None
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                await self.read_denials()
                for label, target in targets.items():
                    await self.registry.add_server(label, target)
                for origin in self.registry:  # after the saved listings of all servers were read
                    group.start_soon(self.registry.run, origin)
                group.start_soon(self._prune_cache)
                group.start_soon(self._watch_store)
                group.start_soon(self._revoke_outdated)
                yield
            except Exception as raised:  # raised below, so that it does not become an exception group
                error = raised
            group.cancel_scope.cancel()
            self._group = None
        if error is not None:
            raise error

    async def _prune_cache(self) -> None:
        """Keep the cache within its bound, and remove the temporary files of killed processes."""
        cache = self.cache
        if cache is not None:
            with suppress(StoreError):  # a host works with a full cache too
                await to_thread.run_sync(lambda: cache.prune(now=time.time()), abandon_on_cancel=True)

    async def read_denials(self) -> None:
        """Read the declined skills from the store for ``shown_skills``, which cannot wait."""
        lines = await self.store.decisions()
        self._declined = {(line.origin, line.uri): line for line in lines if line.what == "denied"}

    async def _watch_store(self) -> None:
        """Read the denials again when another program changed the store."""
        seen = -1
        while True:
            with suppress(StoreError):
                version = await self.store.version()
                if version != seen:
                    await self.read_denials()
                    seen = version
            await anyio.sleep(_WATCH_SECONDS)

    async def add_server(self, label: str, target: Any) -> None:
        """Add a server, and connect to it."""
        if self._group is None:
            raise OriginError("host-closed", "the host is not open", "add servers inside the 'async with' block")
        origin = await self.registry.add_server(label, target)
        self.registry.changed()
        self._group.start_soon(self.registry.run, origin)

    async def remove_origin(self, label: str) -> None:
        """Remove an origin with its cached content, approvals and windows (C3)."""
        self.registry.remove(label)
        for conversation in self._conversations:
            conversation.windows.apply_to_all("revoke", label)
        await self.store.remove_origin(label)
        await self.store.log(LogLine("origin-removed", label, "", "user", time.time()))
        if self.cache is not None:
            await to_thread.run_sync(self.cache.remove_origin, label)

    async def settle(self, seconds: float = 10.0) -> None:
        """Wait until every origin has answered or failed, for at most ``seconds``."""
        with anyio.move_on_after(seconds):
            for origin in list(self.registry):
                await origin.settle()

    def conversation(self) -> Conversation:
        """A conversation with its own acting windows, over the connections and approvals of this host."""
        conversation = Conversation(self)
        self._conversations.add(conversation)
        return conversation

    def origins(self) -> list[OriginStatus]:
        """The state of every origin, with its address, and the error and a hint if it failed."""
        return [
            OriginStatus(
                origin.label,
                origin.address,
                origin.state,
                origin.kind,
                len(origin.known),
                origin.seen_at,
                origin.error,
            )
            for origin in self.registry
        ]

    def apply(self, origin: str, uri: str, event: Event) -> None:
        """Apply an event to the window of a skill, in all conversations."""
        for conversation in self._conversations:
            conversation.windows.apply(origin, uri, event)

    @property
    def names(self) -> Names:
        """Every known skill under its name."""
        return self.registry.names

    async def skills(self) -> list[SkillStatus]:
        """Every known skill with its approval status and estimated tokens. Nothing is fetched."""
        approved = {(each.origin, each.uri): each for each in await self.store.approvals()}
        decided = {(line.origin, line.uri): line for line in await self.store.decisions()}
        return [
            status_of(skill, approved.get(skill.place), decided.get(skill.place)) for skill in self.names.skills
        ]

    def shown_skills(self) -> list[NamedEntry]:
        """The skills in the system prompt: all known skills except declined ones."""
        found = ((skill, self._declined.get(skill.place)) for skill in self.names.skills)
        return [skill for skill, line in found if line is None or not declines(line, skill.entry)]

    async def approve(
        self,
        name: str,
        *,
        by: str = "user",
        grants: frozenset[str] = frozenset(),
        note: str = "",
        fingerprint: str | None = None,
        user: str = "",
    ) -> str:
        """Approve the current content of a skill for a person, outside a conversation; returns its fingerprint.

        With ``fingerprint``, raises ``ApprovalError`` if the skill has other content by now. The log records
        ``user``, the user name on this system, beside ``by``.
        """
        found = await self._with_contents(name)
        contents_of(found.entry)  # raises if there are no digests to bind the approval to (V7)
        _check_fingerprint(found, fingerprint)
        answer = Answer(yes=True, by=by, grants=grants, note=note, user=user)
        approval = await self.approvals.remember(_load_request(found), answer)
        await self.read_denials()
        return approval.fingerprint

    async def decline(
        self, name: str, *, by: str = "user", note: str = "", fingerprint: str | None = None, user: str = ""
    ) -> str:
        """Disable a skill until it changes or is enabled; returns the fingerprint of the declined content.

        The skill is not in the prompt, cannot be loaded, and no person is asked about it. Its approval ends.
        Skills of folders and dynamic skills can be declined too. Nothing is fetched (V5): a skill whose files are
        unknown stays declined when they become known.
        """
        found = await self.find(name, whole=False)
        content = _check_fingerprint(found, fingerprint)
        if not has_contents(found.entry):  # the denial cannot tell whether it covers the approved files
            await self.approvals.revoke(*found.place, by=by, why=ASKED_TO, note=note)
        await self.approvals.decline(_load_request(found), Answer(yes=False, by=by, note=note, user=user))
        self.apply(*found.place, "revoke")
        await self.read_denials()
        return content

    async def enable(
        self, name: str, *, by: str = "user", note: str = "", fingerprint: str | None = None, user: str = ""
    ) -> bool:
        """Undo ``decline``. Returns whether the skill was declined."""
        found = await self.find(name, whole=False)
        _check_fingerprint(found, fingerprint)
        was_declined = await self.approvals.enable(found.origin.label, found.entry, by=by, note=note, user=user)
        await self.read_denials()
        return was_declined

    async def revoke(self, name: str, *, by: str = "user", note: str = "") -> bool:
        """Revoke an approval; a loaded skill may cause nothing more. Returns whether there was one.

        No server is asked. ``label:URI`` also works for a skill that is no longer listed.
        """
        try:
            label, uri = self._place(name)
        except NotFoundError:
            label, _, uri = name.partition(":")
            if "://" not in uri:
                raise
        self.apply(label, uri, "revoke")
        return await self.approvals.revoke(label, uri, by=by, why=ASKED_TO, note=note)

    async def review(self, skill: str | NamedEntry) -> Review:
        """The review of a skill for a person who decides about it. Every text file is read (B6)."""
        found = skill if isinstance(skill, NamedEntry) else await self._with_contents(skill)
        with self._names_reset_on_mismatch():
            review, _ = await self.loader.review(found.origin, found.entry)
            return review

    async def read_for_review(self, skill: NamedEntry, uri: str) -> Content:
        """One file of a skill, verified, for a person who decides about it. It is not cached (V1, B6)."""
        with self._names_reset_on_mismatch():
            return await self.loader.read_unapproved(skill.origin, skill.entry, uri)

    async def find(self, name: str, origin: str | None = None, *, whole: bool = True) -> NamedEntry:
        """Find a skill by its name, or an unlisted one by its URI (G1) or ``label:URI``.

        The entry has all files, which may have to be fetched from the server, unless ``whole`` is false (V5).
        """
        found = await self.registry.find(name, origin)
        return await self.complete(found) if whole else found

    async def complete(self, found: NamedEntry) -> NamedEntry:
        """The skill with its whole entry, fetched from the server if the listing is short (G1, V5)."""
        entry = await self.registry.whole(found.origin, found.entry)
        if await self.approvals.keep_declined(found.origin.label, found.entry, entry):
            await self.read_denials()
        return replace(found, entry=entry)

    async def _with_contents(self, name: str) -> NamedEntry:
        """The skill with the digests of its files.

        A known entry is not fetched again, so that a person approves the content that they reviewed.
        """
        found = await self.find(name, whole=False)
        return found if has_contents(found.entry) else await self.complete(found)

    @contextmanager
    def _names_reset_on_mismatch(self) -> Generator[None]:
        """V3: after a mismatch a fresh entry may be known, which the next lookup has to find."""
        try:
            yield
        except SkillwireError as error:
            if error.reference in MISMATCHES:
                self.registry.changed()
            raise

    def origins_changed(self) -> None:
        """A2: revoke the windows of skills that changed, at once, and soon their approvals."""
        origins = {origin.label: origin for origin in self.registry}
        for conversation in self._conversations:
            for window in conversation.windows.acting():
                label, uri = window.skill.place
                if label in origins and has_other(origins[label], window.skill.entry):
                    conversation.windows.apply(label, uri, "change")
        self._has_changed.set()

    async def _revoke_outdated(self) -> None:
        """A2: revoke approvals of content that a server no longer lists, whenever a listing has changed.

        Only listed entries count: one that was requested earlier may be older than the approval.
        """
        while True:
            await self._has_changed.wait()
            self._has_changed = anyio.Event()
            origins = {origin.label: origin for origin in self.registry if not origin.is_own}
            try:
                for approval in await self.store.approvals():
                    origin = origins.get(approval.origin)
                    listed = None if origin is None else origin.listed(approval.uri)
                    if origin is not None and listed is not None and is_outdated(approval, listed, origin.seen_at):
                        await self.approvals.revoke(
                            approval.origin, approval.uri, by="host", why="the content changed", only=approval
                        )
            except StoreError as error:
                log.warning("an approval of outdated content could not be revoked: %s", error.message)


def _load_request(found: NamedEntry) -> ApprovalRequest:
    return ApprovalRequest("load", found.origin.label, found.entry)


def _check_fingerprint(found: NamedEntry, wanted: str | None) -> str:
    """A1: the fingerprint of the skill; ``ApprovalError`` if another one is wanted."""
    content = fingerprint_of_contents(claimed_contents(found.entry))
    if wanted not in (None, content):
        raise ApprovalError(
            "fingerprint-other",
            f"the current content of {found.entry.uri!r:.300} from {found.origin.label!r} has another fingerprint",
            f"review it: skillwire approvals show {shlex.quote(found.name)}",
            rule="A1",
        )
    return content
