"""The host of one agent: combines origins, names, approvals, the loader and the acting windows.

Tool calls of the model go through ``call``. A refused call returns a ``Refusal`` and raises nothing. Content of a
server reaches the model only after a person or their policy approved exactly that content, and code runs because
of a skill only if a person granted it (``gate``).
"""

from __future__ import annotations

import logging
import secrets
import shlex
import time
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio import to_thread

from skillwire.client.dialects.named import given_arguments
from skillwire.errors import (
    ApprovalError,
    FormatError,
    NotFoundError,
    OriginError,
    ProtocolError,
    SkillwireError,
    StoreError,
)
from skillwire.host import context
from skillwire.host.approvals import ASKED_TO, Answer, ApprovalRequest, Approvals, cannot_ask, declines
from skillwire.host.loader import ApprovedSkill, Content, Loader
from skillwire.host.names import NamedEntry, Names
from skillwire.host.origins import Origins
from skillwire.host.results import LoadedFile, LoadedSkill, Refusal, SkillStatus, ToolResult, refusal_of, status_of
from skillwire.host.tools import LIST, LOAD, READ, tool_definitions
from skillwire.host.windows import Windows
from skillwire.limits import DEFAULT_LIMITS, Limits
from skillwire.skill.approval import (
    EXECUTE,
    claimed_contents,
    contents_of,
    granted_tool,
    has_contents,
    tool_grant,
)
from skillwire.skill.approval import fingerprint as fingerprint_of_contents
from skillwire.skill.entry import Partial
from skillwire.skill.model import READ_RESOURCE_TOOL, READ_SKILL_TOOL
from skillwire.skill.review import review_entry
from skillwire.skill.uri import SKILL_MD, parse_uri
from skillwire.store.contract import LogLine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable, Mapping

    from anyio.abc import TaskGroup

    from skillwire.host.approvals import Ask, Policy
    from skillwire.host.origins import Origin
    from skillwire.host.tools import ToolShape
    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Review
    from skillwire.store.content_cache import ContentCache
    from skillwire.store.contract import Happening, Store


log = logging.getLogger("skillwire.host")

_WATCH_SECONDS = 0.5
_MISMATCHES = ("skill-changed", "digest-mismatch", "size-mismatch", "frontmatter-mismatch")


class Host:
    """The skills of all origins, for one agent. ``SkillHost.open`` makes one with stored state."""

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
        self.store = store
        self.cache = cache
        self.approvals = Approvals(store, policy, ask)
        self.origins = Origins(store, limits, self._forget_names, instructions=instructions)
        self._loader = Loader(self.approvals, self.origins, cache, limits)
        self._windows = Windows()
        self._names: Names | None = None
        self._declined: dict[tuple[str, str], LogLine] = {}  # the newest decision of declined skills
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def connected(self, targets: Mapping[str, Any]) -> AsyncGenerator[None]:
        """Keep the servers at ``targets`` connected, and watch the folders, while the block runs."""
        error: Exception | None = None
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                await self._read_denials()
                for label, target in targets.items():
                    await self.origins.add_server(label, target)
                for origin in self.origins:  # after the saved listings of all servers were read
                    group.start_soon(self.origins.run, origin)
                group.start_soon(self._prune_cache)
                group.start_soon(self._watch_store)
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

    async def _read_denials(self) -> None:
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
                    await self._read_denials()
                    seen = version
            await anyio.sleep(_WATCH_SECONDS)

    async def add_server(self, label: str, target: Any) -> None:
        """Add a server, and connect to it."""
        if self._group is None:
            raise OriginError("host-closed", "the host is not open", "add servers inside the 'async with' block")
        origin = await self.origins.add_server(label, target)
        self._forget_names()
        self._group.start_soon(self.origins.run, origin)

    async def remove_origin(self, label: str) -> None:
        """Remove an origin with its cached content, approvals and windows (C3)."""
        self.origins.remove(label)
        self._windows.apply_to_all("revoke", label)
        await self.store.remove_origin(label)
        await self.store.log(LogLine("origin-removed", label, "", "user", time.time()))
        if self.cache is not None:
            await to_thread.run_sync(self.cache.remove_origin, label)

    async def settle(self, seconds: float = 10.0) -> None:
        """Wait until every origin has answered or failed, for at most ``seconds``."""
        await self.origins.settle(seconds)

    @property
    def names(self) -> Names:
        """Every known skill under its name."""
        if self._names is None:
            self._names = Names(self.origins)
        return self._names

    async def skills(self) -> list[SkillStatus]:
        """Every known skill with its approval status and estimated tokens. Nothing is fetched."""
        approved = {(each.origin, each.uri): each for each in await self.store.approvals()}
        decided = {(line.origin, line.uri): line for line in await self.store.decisions()}
        places = [(skill.origin.label, skill.entry.uri) for skill in self.names.skills]
        return [
            status_of(skill, approved.get(place), decided.get(place))
            for skill, place in zip(self.names.skills, places, strict=True)
        ]

    def catalog_prompt(self) -> str:
        """The names, descriptions and origins of the skills, for the system prompt. Nothing is fetched (V5)."""
        return context.catalog_prompt(self.shown_skills(), self.origins)

    def shown_skills(self) -> list[NamedEntry]:
        """The skills in the system prompt: all known skills except declined ones."""
        found = ((skill, self._declined.get((skill.origin.label, skill.entry.uri))) for skill in self.names.skills)
        return [skill for skill, line in found if line is None or not declines(line, skill.entry)]

    def tools(self, shape: ToolShape = "mcp") -> list[dict[str, Any]]:
        """The definitions of the three tools, in the shape of the model's API."""
        return tool_definitions(shape)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run a tool call of the model. The result has verified content tagged with its origin, or a refusal.

        The tools are those of ``tools``, ``READ_SKILL_TOOL`` and ``READ_RESOURCE_TOOL``.
        """
        try:
            keys = ("name", "path", "origin", "server", "uri")
            given = {key: _text(arguments, key) for key in keys if arguments.get(key) is not None}
            match name:
                case "load_skill":
                    outcome = await self.load_skill(
                        given.get("name", ""),
                        origin=given.get("origin"),
                        arguments=_skill_arguments(arguments.get("arguments")),
                    )
                case "read_skill_file":
                    outcome = await self.read_skill_file(
                        given.get("name", ""), given.get("path", ""), origin=given.get("origin")
                    )
                case "list_skill_directory":
                    outcome = await self.list_skill_directory(given.get("name", ""), given.get("path", ""))
                case "read_skill":
                    outcome = await self.load_skill(given.get("name", ""))
                case "read_resource":
                    outcome = await self.read_resource(given.get("server", ""), given.get("uri", ""))
                case _:
                    known = ", ".join((LOAD, READ, LIST, READ_SKILL_TOOL["name"], READ_RESOURCE_TOOL["name"]))
                    raise NotFoundError("tool-unknown", f"unknown tool {name!r:.80}", f"known: {known}")
        except SkillwireError as error:
            outcome = refusal_of(error)
        if isinstance(outcome, Refusal):
            return ToolResult(outcome.for_model, outcome)
        return ToolResult(outcome if isinstance(outcome, str) else outcome.text)

    async def load_skill(
        self, name: str, *, origin: str | None = None, arguments: Mapping[str, str] | None = None
    ) -> LoadedSkill | Refusal:
        """Load a skill by name or URI: approve, fetch and verify it, and open its acting window (W1).

        ``arguments`` are for a skill that takes arguments (P2). Such a skill is ``dynamic``.
        """
        found: NamedEntry | None = None
        try:
            found = await self._resolve(name, origin)
            found = self._with_arguments(found, arguments)
            given_arguments(found.entry)  # raises before the question if a required argument is missing
            skill = await self._loader.approve(found.origin, found.entry)
            content, body = await self._loader.read_skill(skill)
            await self._log("loaded", skill, offline=content.offline)
            self._loader.check_current(found.origin, skill.entry)
        except SkillwireError as error:
            if isinstance(error, ApprovalError):
                await self._read_denials()  # a person may have declined it just now
            return await self._refused(error, name, found)
        self._windows.load(replace(skill, reviewed=None), found.name)
        notes = ["read from the cache: the origin cannot be reached"] if content.offline else []
        if not has_contents(skill.entry):
            notes.append(_why_unverified(skill.entry))
        block = context.skill_block(found.name, found.origin, skill.entry, body, mark=_mark(), notes=notes)
        return LoadedSkill(found.name, found.origin.label, skill.entry.uri, block, content.offline)

    async def read_skill_file(self, name: str, path: str, *, origin: str | None = None) -> LoadedFile | Refusal:
        """Read a file of a loaded skill, by its path or by a link in the skill's text.

        With ``origin``, read a file of a skill of another origin, by its URI. Each such read needs an approval,
        and is declined unless a rule of the policy asks for it or allows it (O3).
        """
        skill: ApprovedSkill | None = None
        try:
            skill = source = await self._loaded(name)
            if origin is not None and origin != skill.origin.label:
                content, source = await self._read_across(skill, origin, path)
                name = f"{origin}:{source.entry.name}"
                self._windows.quote(source, name)
            else:
                content = await self._loader.read_file(skill, self._loader.locate(skill.entry, path))
            self._windows.loaded(skill.origin.label, skill.entry.uri, name)  # raises if it changed meanwhile
            await self._log("read", source, uri=content.uri)
        except SkillwireError as error:
            is_own = skill is not None and origin in (None, skill.origin.label)
            return await self._refused(error, f"{name} {path}", skill, revokes=is_own)
        block = context.file_block(name, source.origin, content.uri, _readable(content.data), mark=_mark())
        return LoadedFile(content.uri, content.data, block)

    async def read_resource(self, server: str, uri: str) -> LoadedSkill | LoadedFile | Refusal:
        """Read a URI of an origin. A ``SKILL.md`` is loaded as by ``load_skill`` (W1).

        Any other URI must be a file of a loaded skill of that origin.
        """
        try:
            place, origin = parse_uri(uri), self.origins.get(server)
            if place.segments[-1] != SKILL_MD:
                name = self._windows.around(origin.label, place)
                return await self.read_skill_file(name, uri)
        except SkillwireError as error:
            return await self._refused(error, f"{server} {uri}", None)
        return await self.load_skill(uri, origin=server)

    async def list_skill_directory(self, name: str, path: str = "") -> str | Refusal:
        """List a directory of a loaded skill: from the manifest (W3), or from the server of a dynamic skill."""
        skill: ApprovedSkill | None = None
        try:
            skill = await self._loaded(name)
            names = await self._loader.list_directory(skill, path.strip("/"))
        except SkillwireError as error:
            return await self._refused(error, f"{name} {path}", skill)
        self._windows.apply(skill.origin.label, skill.entry.uri, "directory-read")
        return context.listing_block(name, skill.origin, path, names, mark=_mark())

    async def gate(self, tool: str, *, executes: bool = True) -> Refusal | None:
        """Check whether a tool may run now; ``None`` if it may. Call this before running code (A5).

        While text of a server's skill is in the context, code runs only if a person granted ``execute`` or this
        tool to exactly that content. A tool that runs no code (``executes=False``) always may.
        """
        if not executes:
            return None
        skill: ApprovedSkill | None = None
        try:
            for _, skill in self._windows.acting():
                await self._check_approval(skill)
            while (skill := self._not_granted(tool)) is not None:
                self._windows.current(skill.origin.label, skill.entry.uri, skill.entry.name)
                self._windows.grant(skill, await self._loader.grant(skill, tool))
        except SkillwireError as error:
            return await self._refused(error, tool, skill)
        return None

    def _not_granted(self, tool: str) -> ApprovedSkill | None:
        """The first skill in the context that needs a grant for ``tool``, if there is one."""
        return next(
            (
                skill
                for window, skill in self._windows.acting()
                if not (skill.origin.is_local or window.permits(EXECUTE) or window.permits(tool_grant(tool)))
            ),
            None,
        )

    def granted(self) -> frozenset[str]:
        """A4: the tools that a person granted to the skills in the context, not those that the skills ask for."""
        grants = {grant for window, skill in self._windows.acting() if window.may_read for grant in skill.grants}
        return frozenset(tool for tool in map(granted_tool, grants) if tool is not None)

    def leave(self, name: str | None = None) -> None:
        """Report that the text of a skill, or of all skills, has left the model's context (W1)."""
        if name is None:
            self._windows.apply_to_all("leave")
        else:
            self._windows.apply(*self._place(name), "leave")

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
        await self._read_denials()
        return approval.fingerprint

    async def decline(
        self, name: str, *, by: str = "user", note: str = "", fingerprint: str | None = None, user: str = ""
    ) -> str:
        """Disable a skill until it changes or is enabled; returns the fingerprint of the declined content.

        The skill is not in the prompt, cannot be loaded, and no person is asked about it. Its approval ends.
        Skills of folders and dynamic skills can be declined too. Nothing is fetched (V5): a skill whose files are
        unknown stays declined when they become known.
        """
        found = await self._resolve(name)
        content = _check_fingerprint(found, fingerprint)
        if not has_contents(found.entry):  # the denial cannot tell whether it covers the approved files
            await self.approvals.revoke(found.origin.label, found.entry.uri, by=by, why=ASKED_TO, note=note)
        await self.approvals.decline(_load_request(found), Answer(yes=False, by=by, note=note, user=user))
        self._windows.apply(found.origin.label, found.entry.uri, "revoke")
        await self._read_denials()
        return content

    async def enable(
        self, name: str, *, by: str = "user", note: str = "", fingerprint: str | None = None, user: str = ""
    ) -> bool:
        """Undo ``decline``. Returns whether the skill was declined."""
        found = await self._resolve(name)
        _check_fingerprint(found, fingerprint)
        was_declined = await self.approvals.enable(found.origin.label, found.entry, by=by, note=note, user=user)
        await self._read_denials()
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
        self._windows.apply(label, uri, "revoke")
        return await self.approvals.revoke(label, uri, by=by, why=ASKED_TO, note=note)

    async def review(self, skill: str | NamedEntry) -> Review:
        """The review of a skill for a person who decides about it. Every text file is read (B6)."""
        found = skill if isinstance(skill, NamedEntry) else await self._with_contents(skill)
        with self._names_reset_on_mismatch():
            review, _ = await self._loader.review(found.origin, found.entry)
            return review

    async def read_for_review(self, skill: NamedEntry, uri: str) -> Content:
        """One file of a skill, verified, for a person who decides about it. It is not cached (V1, B6)."""
        with self._names_reset_on_mismatch():
            return await self._loader.read_unapproved(skill.origin, skill.entry, uri)

    async def find(self, name: str, origin: str | None = None, *, whole: bool = True) -> NamedEntry:
        """Find a skill by its name, or an unlisted one by its URI (G1) or ``label:URI``.

        The entry has all files, which may have to be fetched from the server, unless ``whole`` is false (V5).
        """
        found = await self._resolve(name, origin)
        return await self.complete(found) if whole else found

    async def _resolve(self, name: str, origin: str | None = None) -> NamedEntry:
        known: list[NamedEntry] = []
        try:
            known.append(self.names.find(name, origin))
            if origin is not None or name != known[0].entry.uri:
                return known[0]
        except NotFoundError:
            label, _, uri = name.partition(":")
            if origin is None and "://" in uri:
                name, origin = uri, label
            if "://" not in name:
                raise
        if origin is None:
            return await self._resolve_uri(str(parse_uri(name)), known)
        place = self.origins.get(origin)
        return NamedEntry(f"{origin}:{name}", place, await place.find(name))

    async def _resolve_uri(self, uri: str, listed: Iterable[NamedEntry]) -> NamedEntry:
        """The skill at ``uri``, if exactly one origin has it (G1, N1).

        All connected servers are asked: a server that lists the URI has no precedence over one that has the same
        URI and does not list it.
        """
        found = list(listed)
        known = {each.origin.label for each in found}

        async def ask(origin: Origin) -> None:
            with suppress(SkillwireError):
                found.append(NamedEntry(f"{origin.label}:{uri}", origin, await origin.find(uri)))

        connected = [origin for origin in self.origins if origin.is_connected]
        async with anyio.create_task_group() as group:
            for origin in connected:
                if origin.label not in known:
                    group.start_soon(ask, origin)
        if len(found) == 1:
            return found[0]
        if found:
            labels = sorted(each.origin.label for each in found)
            raise OriginError(
                "origin-ambiguous",
                f"{', '.join(labels):.300} have {uri!r:.300}",
                f"add the origin: {', '.join(f'{label}:{uri}' for label in labels):.600}",
                rule="N1",
                choices=tuple(labels),
            )
        asked = ", ".join(sorted(origin.label for origin in connected))
        raise NotFoundError(
            "skill-unknown",
            f"no connected server has {uri!r:.300}; asked: {asked or 'none'}",
            "use a name from the list, or another URI",
            rule="G1",
        )

    @staticmethod
    def _with_arguments(found: NamedEntry, arguments: Mapping[str, str] | None) -> NamedEntry:
        """P2: the skill with an entry that will be fetched with these arguments. Nothing is fetched yet (V5)."""
        if not arguments:
            return found
        origin, entry = found.origin, found.entry
        if not origin.is_connected or not entry.is_named:
            raise ProtocolError(
                "argument-unknown",
                f"the skill {found.name!r:.80} takes no arguments, or its server cannot be reached now",
                "load it without arguments",
                side="local",
                rule="P2",
            )
        listed = origin.listed(entry.uri) or entry
        resources = Partial(listed.files, arguments={**listed.arguments, **arguments})
        return replace(found, entry=replace(listed, resources=resources))

    async def complete(self, found: NamedEntry) -> NamedEntry:
        """The skill with its whole entry, fetched from the server if the listing is short (G1, V5)."""
        entry = await self.origins.whole(found.origin, found.entry)
        if await self.approvals.keep_declined(found.origin.label, found.entry, entry):
            await self._read_denials()
        return replace(found, entry=entry)

    async def _with_contents(self, name: str) -> NamedEntry:
        """The skill with the digests of its files.

        A known entry is not fetched again, so that a person approves the content that they reviewed.
        """
        found = await self._resolve(name)
        return found if has_contents(found.entry) else await self.complete(found)

    def _place(self, name: str) -> tuple[str, str]:
        """Origin and URI of the skill that ``name`` means. Loaded skills have precedence over known ones."""
        place = self._windows.find(name)
        if place is None:
            try:
                found = self.names.find(name)
                place = found.origin.label, found.entry.uri
            except NotFoundError:  # an unlisted skill that was loaded by its URI
                place = self._windows.find(name, by_uri=True)
                if place is None:
                    raise
        return place

    async def _loaded(self, name: str) -> ApprovedSkill:
        """The loaded skill that ``name`` means (V2)."""
        place = self._place(name)
        await self._check_approval(self._windows.loaded(*place, name))
        return self._windows.loaded(*place, name)

    async def _check_approval(self, skill: ApprovedSkill) -> None:
        """A2: revoke the window of a skill whose approval another program revoked in the same store."""
        if not await self._loader.is_still_approved(skill):
            self._windows.apply(skill.origin.label, skill.entry.uri, "revoke")

    async def _read_across(self, skill: ApprovedSkill, origin: str, uri: str) -> tuple[Content, ApprovedSkill]:
        other = self.origins.get(origin)
        entry = next((e for e in other.entries if e.resource(uri) is not None), None)
        if entry is None:
            raise NotFoundError(
                "file-unknown",
                f"no known skill of {origin!r:.80} has {uri!r:.200}",
                "load the skill of that file first",
                rule="O3",
            )
        await self._loader.allow_across(skill, f"{origin} {uri}")
        theirs = await self._loader.approve(other, entry)
        return await self._loader.read_file(theirs, uri), theirs

    async def _log(self, what: Happening, skill: ApprovedSkill, *, uri: str = "", **facts: Any) -> None:
        at = time.time()
        await self.store.log(LogLine(what, skill.origin.label, uri or skill.entry.uri, "model", at, facts))

    async def _refused(
        self,
        error: SkillwireError,
        what: str,
        about: NamedEntry | ApprovedSkill | None,
        *,
        revokes: bool = True,
    ) -> Refusal:
        origin, uri = ("", "") if about is None else (about.origin.label, about.entry.uri)
        facts = {"reference": error.reference, "rule": error.rule, "what": what[:300]}
        if error.reference in _MISMATCHES:
            if revokes:
                self._windows.apply(origin, uri, "change")
            self._forget_names()  # the mismatch may have led to a fresh entry
        try:
            await self.store.log(LogLine("refused", origin, uri, "host", time.time(), facts))
        except StoreError as failed:  # the refusal stands even if it cannot be logged
            log.warning("a refusal could not be logged: %s", failed.message)
        return refusal_of(error)

    @contextmanager
    def _names_reset_on_mismatch(self) -> Generator[None]:
        """V3: after a mismatch a fresh entry may be known, which the next lookup has to find."""
        try:
            yield
        except SkillwireError as error:
            if error.reference in _MISMATCHES:
                self._forget_names()
            raise

    def _forget_names(self) -> None:
        """Compute the names again when they are needed, and revoke the windows of skills that changed."""
        self._names = None
        for window, _ in self._windows.acting():
            origin = next((o for o in self.origins if o.label == window.origin), None)
            if origin is not None and origin.has_other(window.entry):
                self._windows.apply(window.origin, window.entry.uri, "change")


def _load_request(found: NamedEntry) -> ApprovalRequest:
    return ApprovalRequest("load", found.origin.label, found.entry, review_entry(found.entry))


def _check_fingerprint(found: NamedEntry, wanted: str | None) -> str:
    """A1: the fingerprint of the skill; ``ApprovalError`` if another one is wanted."""
    content = fingerprint_of_contents(claimed_contents(found.entry))
    if wanted not in (None, content):
        raise ApprovalError(
            "fingerprint-other",
            f"the current content of {found.entry.uri!r:.300} from {found.origin.label!r} has another fingerprint",
            f"review it: skillwire review {shlex.quote(found.name)}",
            rule="A1",
        )
    return content


def _mark() -> str:
    return secrets.token_hex(8)


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments[key]
    if not isinstance(value, str):
        raise FormatError("argument-invalid", f"'{key}' is not a string", "follow the schema of the tool")
    return value


def _skill_arguments(given: object) -> dict[str, str]:
    """The arguments for a skill, from the model."""
    values = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if given is not None and (not isinstance(given, dict) or not all(isinstance(v, str) for v in values.values())):
        raise FormatError(
            "argument-invalid", "'arguments' is not an object of strings", "follow the schema of the tool"
        )
    return values


def _readable(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"(not text: {len(data)} bytes)"


def _why_unverified(entry: SkillEntry) -> str:
    """The note for the model on a skill that is not fully verified (V7)."""
    if any(file.digest for file in entry.files):
        return "the server gives digests for only some of its files: the others could not be verified"
    why = "generated when read" if entry.is_dynamic else "the server gives no digests"
    return f"{why}: nothing about it could be verified"
