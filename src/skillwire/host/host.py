"""The host: origins, names, approvals, loading and the acting window, together, for one agent.

What a model asks for goes through ``call``; what was refused comes back as a ``Refusal``, never as a stack trace.
A person stays in charge: nothing of a server reaches the model before they, or a rule of theirs, said yes to
exactly that content, and code runs because of a skill only if they granted that too (``gate``).
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
from skillwire.host.approvals import ASKED_TO, Answer, Approvals, Policy, cannot_ask, declines
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
    fingerprint_of,
    granted_tool,
    has_contents,
    tool_grant,
)
from skillwire.skill.approval import fingerprint as fingerprint_of_contents
from skillwire.skill.entry import Partial
from skillwire.skill.model import READ_RESOURCE_TOOL, READ_SKILL_TOOL
from skillwire.skill.uri import SKILL_MD, parse_uri
from skillwire.store.contract import LogLine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Iterable, Mapping

    from anyio.abc import TaskGroup

    from skillwire.host.approvals import Ask
    from skillwire.host.origins import Origin
    from skillwire.host.tools import ToolShape
    from skillwire.skill import SkillEntry
    from skillwire.skill.review import Review
    from skillwire.store.content_cache import ContentCache
    from skillwire.store.contract import Happening, Store


log = logging.getLogger("skillwire.host")

_WATCH_SECONDS = 0.5
_NOT_AS_LOADED = ("skill-changed", "digest-mismatch", "size-mismatch", "frontmatter-mismatch")


class Host:
    """The skills of all origins, for one agent. ``SkillHost.open`` makes one with a memory."""

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
        self.approvals = Approvals(store, policy or Policy(), ask)
        self.origins = Origins(store, limits, self._forget_names, instructions=instructions)
        self._loader = Loader(self.approvals, self.origins, cache, limits)
        self._windows = Windows()
        self._names: Names | None = None
        self._declined: dict[tuple[str, str], LogLine] = {}  # the decisions that disable skills
        self._group: TaskGroup | None = None

    @asynccontextmanager
    async def connected(self, targets: Mapping[str, Any]) -> AsyncGenerator[None]:
        """Keep the servers at ``targets`` connected, and folders watched, while the block runs."""
        error: Exception | None = None
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                await self._look()
                for label, target in targets.items():
                    await self.origins.add_server(label, target)
                for origin in self.origins:  # only after the saved listings of all servers were read
                    group.start_soon(self.origins.run, origin)
                group.start_soon(self._tidy)
                group.start_soon(self._watch)
                yield
            except Exception as raised:  # the block's own, to be raised as itself and not as a group
                error = raised
            group.cancel_scope.cancel()
            self._group = None
        if error is not None:
            raise error

    async def _tidy(self) -> None:
        """Keep the cache within its bound, and without what a killed process left there."""
        cache = self.cache
        if cache is not None:
            with suppress(StoreError):  # a host without a tidy cache is a host
                await to_thread.run_sync(lambda: cache.prune(now=time.time()), abandon_on_cancel=True)

    async def _look(self) -> None:
        """What people declined, for ``shown_skills``, which waits for nothing."""
        lines = await self.store.decisions()
        self._declined = {(line.origin, line.uri): line for line in lines if line.what == "denied"}

    async def _watch(self) -> None:
        """Notice what other programs decide in the same store."""
        seen = -1
        while True:
            with suppress(StoreError):
                version = await self.store.version()
                if version != seen:
                    await self._look()
                    seen = version
            await anyio.sleep(_WATCH_SECONDS)

    async def add_server(self, label: str, target: Any) -> None:
        """One more server, from now on."""
        if self._group is None:
            raise OriginError("host-closed", "the host is not open", "add servers inside the 'async with' block")
        origin = await self.origins.add_server(label, target)
        self._forget_names()
        self._group.start_soon(self.origins.run, origin)

    async def remove_origin(self, label: str) -> None:
        """Forget an origin with all its content, approvals and windows (C3)."""
        self.origins.remove(label)
        self._windows.tell_all("revoke", label)
        await self.store.remove_origin(label)
        await self.store.log(LogLine("origin-removed", label, "", "user", time.time()))
        if self.cache is not None:
            await to_thread.run_sync(self.cache.remove_origin, label)

    async def settle(self, seconds: float = 10.0) -> None:
        """Wait until every origin has answered or failed, at most so long."""
        await self.origins.settle(seconds)

    @property
    def names(self) -> Names:
        """Every known skill and its name."""
        if self._names is None:
            self._names = Names(self.origins)
        return self._names

    async def skills(self) -> list[SkillStatus]:
        """Every known skill with its standing and what it costs. Nothing is fetched."""
        approved = {(each.origin, each.uri): each for each in await self.store.approvals()}
        decided = {(line.origin, line.uri): line for line in await self.store.decisions()}
        places = [(skill.origin.label, skill.entry.uri) for skill in self.names.skills]
        return [
            status_of(skill, approved.get(place), decided.get(place))
            for skill, place in zip(self.names.skills, places, strict=True)
        ]

    def catalog_prompt(self) -> str:
        """Names, descriptions and origins for the system prompt. Nothing is fetched for it (V5)."""
        return context.catalog_prompt(self.shown_skills(), self.origins)

    def shown_skills(self) -> list[NamedEntry]:
        """The skills that a model is told of: all that are known, without those that a person declined."""
        found = ((skill, self._declined.get((skill.origin.label, skill.entry.uri))) for skill in self.names.skills)
        return [skill for skill, line in found if line is None or not declines(line, skill.entry)]

    def tools(self, shape: ToolShape = "mcp") -> list[dict[str, Any]]:
        """The definitions of the three tools, as the model's API wants them."""
        return tool_definitions(shape)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """What the model asked for, verified and tagged, or a refusal that it can understand.

        The tools are those of ``tools``, and ``READ_SKILL_TOOL`` and ``READ_RESOURCE_TOOL``.
        """
        try:
            keys = ("name", "path", "origin", "server", "uri")
            words = {key: _text(arguments, key) for key in keys if arguments.get(key) is not None}
            match name:
                case "load_skill":
                    given = _texts(arguments.get("arguments"))
                    outcome = await self.load_skill(
                        words.get("name", ""), origin=words.get("origin"), arguments=given
                    )
                case "read_skill_file":
                    outcome = await self.read_skill_file(
                        words.get("name", ""), words.get("path", ""), origin=words.get("origin")
                    )
                case "list_skill_directory":
                    outcome = await self.list_skill_directory(words.get("name", ""), words.get("path", ""))
                case "read_skill":
                    outcome = await self.load_skill(words.get("name", ""))
                case "read_resource":
                    outcome = await self.read_resource(words.get("server", ""), words.get("uri", ""))
                case _:
                    known = ", ".join((LOAD, READ, LIST, READ_SKILL_TOOL["name"], READ_RESOURCE_TOOL["name"]))
                    raise NotFoundError("tool-unknown", f"there is no tool {name!r:.80}", f"known: {known}")
        except SkillwireError as error:
            outcome = refusal_of(error)
        if isinstance(outcome, Refusal):
            return ToolResult(outcome.for_model, outcome)
        return ToolResult(outcome if isinstance(outcome, str) else outcome.text)

    async def load_skill(
        self, name: str, *, origin: str | None = None, arguments: Mapping[str, str] | None = None
    ) -> LoadedSkill | Refusal:
        """A skill by name or URI: approved, fetched, verified, and from now on acted on (W1).

        ``arguments`` are for a skill that takes some (P2). Such a skill is ``dynamic``.
        """
        found: NamedEntry | None = None
        try:
            found = await self._named(name, origin)
            found = self._with_arguments(found, arguments)
            given_arguments(found.entry)  # nobody is asked about a skill that cannot be loaded
            return await self._load(found)
        except SkillwireError as error:
            if isinstance(error, ApprovalError):
                await self._look()  # a person may have declined it just now
            return await self._refused(error, name, found)

    async def read_skill_file(self, name: str, path: str, *, origin: str | None = None) -> LoadedFile | Refusal:
        """A file of a loaded skill, by its path or a link in the skill's text.

        With ``origin``, a file of a skill of *another* origin, by its URI: each such read is a decision of its
        own, declined unless a person or a rule allows exactly that (O3).
        """
        skill: ApprovedSkill | None = None
        try:
            skill = source = await self._acting(name)
            if origin is not None and origin != skill.origin.label:
                content, source = await self._read_across(skill, origin, path)
                name = f"{origin}:{source.entry.name}"
                self._windows.quote(source, name)
            else:
                content = await self._loader.read_file(skill, self._loader.locate(skill.entry, path))
            self._windows.need(skill.origin.label, skill.entry.uri, name)  # it may have changed meanwhile
            await self._log("read", source, uri=content.uri)
        except SkillwireError as error:
            is_own = skill is not None and origin in (None, skill.origin.label)
            return await self._refused(error, f"{name} {path}", skill, revokes=is_own)
        block = context.file_block(name, source.origin, content.uri, _readable(content.data), mark=_mark())
        return LoadedFile(content.uri, content.data, block)

    async def read_resource(self, server: str, uri: str) -> LoadedSkill | LoadedFile | Refusal:
        """What a model asks for by origin and URI. A ``SKILL.md`` is loaded, as ``load_skill`` does it (W1).

        Any other URI is a file of a skill of that origin that is loaded.
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
        """The files in a directory of a loaded skill, from its manifest (W3); a dynamic one is asked for."""
        skill: ApprovedSkill | None = None
        try:
            skill = await self._acting(name)
            names = await self._loader.list_directory(skill, path.strip("/"))
        except SkillwireError as error:
            return await self._refused(error, f"{name} {path}", skill)
        self._windows.tell(skill.origin.label, skill.entry.uri, "directory-read")
        return context.listing_block(name, skill.origin, path, names, mark=_mark())

    async def gate(self, tool: str, *, executes: bool = True) -> Refusal | None:
        """Whether a tool call may go on now: ``None`` if so. Ask before running code (A5).

        While words of a server's skill are in the context, code runs only if a person granted ``execute``, or this
        very tool, to that very content. Tools that run nothing are the host's own business.
        """
        if not executes:
            return None
        skill: ApprovedSkill | None = None
        try:
            for _, skill in self._windows.acting():
                await self._recheck(skill)
            while (skill := self._not_granted(tool)) is not None:
                self._windows.current(skill.origin.label, skill.entry.uri, skill.entry.name)
                self._windows.grant(skill, await self._loader.grant(skill, tool))
        except SkillwireError as error:
            return await self._refused(error, tool, skill)
        return None

    def _not_granted(self, tool: str) -> ApprovedSkill | None:
        """A skill of a server that is acted on and was not granted ``tool``; looked for anew after each yes."""
        return next(
            (
                skill
                for window, skill in self._windows.acting()
                if not (skill.origin.is_local or window.permits(EXECUTE) or window.permits(tool_grant(tool)))
            ),
            None,
        )

    def granted(self) -> frozenset[str]:
        """A4: the tools that a person granted to skills which are acted on. What a skill asks for is not in it."""
        grants = {grant for window, skill in self._windows.acting() if window.may_read for grant in skill.grants}
        return frozenset(tool for tool in map(granted_tool, grants) if tool is not None)

    def leave(self, name: str | None = None) -> None:
        """The words of a skill, or of all, have left the model's context (W1)."""
        if name is None:
            self._windows.tell_all("leave")
        else:
            self._windows.tell(*self._place(name), "leave")

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
        """A person's yes to a skill as it is now, outside any conversation; its fingerprint is returned.

        With ``fingerprint``, to exactly that content: ``ApprovalError`` if the skill has another by now. The log
        records ``user``, the user of the operating system, beside ``by``.
        """
        found = await self._held(name)
        _check_content(found, fingerprint)
        answer = Answer(yes=True, by=by, grants=grants, note=note, user=user)
        approval = await self._loader.approve_as(found.origin, found.entry, answer)
        await self._look()
        return approval.fingerprint

    async def decline(
        self, name: str, *, by: str = "user", note: str = "", fingerprint: str | None = None, user: str = ""
    ) -> str:
        """Disable a skill until it changes or is enabled; the fingerprint of what was declined is returned.

        A model is not told of it, cannot load it, and nobody is asked about it. An approval of that content ends.
        Skills of folders, and those that cannot be verified, can be declined too. Nothing is fetched (V5): a skill
        whose files are not known yet stays declined when they are.
        """
        found = await self._named(name)
        content = _check_claims(found, fingerprint)
        if not has_contents(found.entry):  # an approval may be of files that are not known here
            await self.approvals.revoke(found.origin.label, found.entry.uri, by=by, why=ASKED_TO, note=note)
        await self._loader.decline_as(found.origin, found.entry, Answer(yes=False, by=by, note=note, user=user))
        self._windows.tell(found.origin.label, found.entry.uri, "revoke")
        await self._look()
        return content

    async def enable(
        self, name: str, *, by: str = "user", note: str = "", fingerprint: str | None = None, user: str = ""
    ) -> bool:
        """Undo ``decline``: the skill is shown and asked about again. Whether it was declined."""
        found = await self._named(name)
        _check_claims(found, fingerprint)
        was_declined = await self.approvals.enable(found.origin.label, found.entry, by=by, note=note, user=user)
        await self._look()
        return was_declined

    async def revoke(self, name: str, *, by: str = "user", note: str = "") -> bool:
        """Take an approval back; a skill that is being acted on may cause nothing more.

        ``label:URI`` works for a skill that is not listed any more, too, and no server is asked.
        """
        try:
            label, uri = self._place(name)
        except NotFoundError:
            label, _, uri = name.partition(":")
            if "://" not in uri:
                raise
        self._windows.tell(label, uri, "revoke")
        return await self.approvals.revoke(label, uri, by=by, why=ASKED_TO, note=note)

    async def review(self, skill: str | NamedEntry) -> Review:
        """What a person should know before saying yes: every text file is read for it (B6)."""
        found = skill if isinstance(skill, NamedEntry) else await self._held(skill)
        with self._noticing():
            return await self._loader.inspect(found.origin, found.entry)

    async def look_at(self, skill: NamedEntry, uri: str) -> Content:
        """One file of a skill, for a person: verified, and not kept, since nobody said yes to it yet (V1, B6)."""
        with self._noticing():
            return await self._loader.read_file(ApprovedSkill(skill.origin, skill.entry), uri, keep=False)

    async def _load(self, found: NamedEntry) -> LoadedSkill:
        skill = await self._loader.approve(found.origin, found.entry)
        content, body = await self._loader.read_skill(skill)
        await self._log("loaded", skill, offline=content.offline)
        self._loader.check_current(found.origin, skill.entry)
        self._windows.load(replace(skill, shown=None), found.name)
        notes = ["read from the cache: the origin cannot be reached"] if content.offline else []
        if not has_contents(skill.entry):
            notes.append(_why_unverified(skill.entry))
        block = context.skill_block(found.name, found.origin, skill.entry, body, mark=_mark(), notes=notes)
        return LoadedSkill(found.name, found.origin.label, skill.entry.uri, block, content.offline)

    async def find(self, name: str, origin: str | None = None, *, whole: bool = True) -> NamedEntry:
        """A known skill, or an unlisted one by its URI (G1); ``label:URI`` names its origin too.

        Where a listing says less than its server promises, the skill is fetched, unless ``whole`` is false (V5).
        """
        found = await self._named(name, origin)
        return await self.wanted(found) if whole else found

    async def _named(self, name: str, origin: str | None = None) -> NamedEntry:
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
            return await self._served_by_one(str(parse_uri(name)), known)
        place = self.origins.get(origin)
        return NamedEntry(f"{origin}:{name}", place, await place.find(name))

    async def _served_by_one(self, uri: str, listed: Iterable[NamedEntry]) -> NamedEntry:
        """The skill at ``uri``, if exactly one origin lists it or, being asked, has it (G1, N1).

        That one server lists a skill does not decide against another that has the same URI and does not list it.
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
                f"name the origin: {', '.join(f'{label}:{uri}' for label in labels):.600}",
                rule="N1",
                choices=tuple(labels),
            )
        asked = ", ".join(sorted(origin.label for origin in connected))
        raise NotFoundError(
            "skill-unknown",
            f"no connected server has {uri!r:.300}; asked: {asked or 'none'}",
            "use a name from the list, or the URI of another skill",
            rule="G1",
        )

    @staticmethod
    def _with_arguments(found: NamedEntry, arguments: Mapping[str, str] | None) -> NamedEntry:
        """P2: the skill, to be fetched with these arguments. Nothing is asked yet (V5)."""
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

    async def wanted(self, found: NamedEntry) -> NamedEntry:
        """The skill with what its server promises of it, now that it is loaded or looked at (G1, V5)."""
        entry = await self.origins.whole(found.origin, found.entry)
        if await self.approvals.keep_declined(found.origin.label, found.entry, entry):
            await self._look()
        return replace(found, entry=entry)

    async def _held(self, name: str) -> NamedEntry:
        """The skill as it is known: what a person looked at is what they say yes to, if nobody asks in between."""
        found = await self._named(name)
        return found if has_contents(found.entry) else await self.wanted(found)

    def _place(self, name: str) -> tuple[str, str]:
        """Origin and URI of the skill that ``name`` means: one that is loaded before one that is only known."""
        place = self._windows.called(name)
        if place is None:
            try:
                found = self.names.find(name)
                place = found.origin.label, found.entry.uri
            except NotFoundError:  # loaded by its URI, and not listed
                place = self._windows.called(name, by_uri=True)
                if place is None:
                    raise
        return place

    async def _acting(self, name: str) -> ApprovedSkill:
        """The loaded skill that ``name`` means, as it was loaded (V2)."""
        place = self._place(name)
        await self._recheck(self._windows.need(*place, name))
        return self._windows.need(*place, name)

    async def _recheck(self, skill: ApprovedSkill) -> None:
        """A2: an approval that another program took back, in the same store, is taken back here too."""
        if not await self._loader.stands(skill):
            self._windows.tell(skill.origin.label, skill.entry.uri, "revoke")

    async def _read_across(self, skill: ApprovedSkill, origin: str, uri: str) -> tuple[Content, ApprovedSkill]:
        other = self.origins.get(origin)
        entry = next((e for e in other.entries if e.resource(uri) is not None), None)
        if entry is None:
            raise NotFoundError(
                "file-unknown",
                f"no known skill of {origin!r:.80} has {uri!r:.200}",
                "load the skill that has it",
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
        if error.reference in _NOT_AS_LOADED:
            if revokes:
                self._windows.tell(origin, uri, "change")
            self._forget_names()  # a fresh entry may have come with it
        try:
            await self.store.log(LogLine("refused", origin, uri, "host", time.time(), facts))
        except StoreError as failed:  # what was refused stays refused, also if that cannot be written down
            log.warning("a refusal is not in the log: %s", failed.message)
        return refusal_of(error)

    @contextmanager
    def _noticing(self) -> Generator[None]:
        """V3: a mismatch may have come with a fresh entry, and who looks next is to see that one."""
        try:
            yield
        except SkillwireError as error:
            if error.reference in _NOT_AS_LOADED:
                self._forget_names()
            raise

    def _forget_names(self) -> None:
        self._names = None
        for window, _ in self._windows.acting():
            origin = next((o for o in self.origins if o.label == window.origin), None)
            if origin is not None and origin.has_other(window.entry):
                self._windows.tell(window.origin, window.entry.uri, "change")


def _check_content(found: NamedEntry, wanted: str | None) -> None:
    """A1: what a person looked at may have changed since."""
    contents_of(found.entry)  # or there is nothing that they could have looked at (V7)
    if wanted is not None and fingerprint_of(found.entry) != wanted:
        raise _other_content(found)


def _check_claims(found: NamedEntry, wanted: str | None) -> str:
    """The same for what can be declined and not approved: it may have no digests. Its fingerprint."""
    content = fingerprint_of_contents(claimed_contents(found.entry))
    if wanted not in (None, content):
        raise _other_content(found)
    return content


def _other_content(found: NamedEntry) -> ApprovalError:
    return ApprovalError(
        "fingerprint-other",
        f"{found.entry.uri!r:.300} from {found.origin.label!r} has another content than that fingerprint's",
        f"look at what it is now: skillwire review {shlex.quote(found.name)}",
        rule="A1",
    )


def _mark() -> str:
    return secrets.token_hex(8)


def _text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments[key]
    if not isinstance(value, str):
        raise FormatError("argument-invalid", f"'{key}' is not text", "call the tool as its schema says")
    return value


def _texts(given: object) -> dict[str, str]:
    """The arguments for a skill, as the model gave them."""
    values = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    if given is not None and (not isinstance(given, dict) or not all(isinstance(v, str) for v in values.values())):
        raise FormatError(
            "argument-invalid", "'arguments' is not an object of texts", "call the tool as its schema says"
        )
    return values


def _readable(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"(not text: {len(data)} bytes)"


def _why_unverified(entry: SkillEntry) -> str:
    """What a model is told about a skill that is not verified as a whole (V7)."""
    if any(file.digest for file in entry.files):
        return "its server promises digests for some of its files only: the others could not be verified"
    why = "generated when read" if entry.is_dynamic else "its server promises no digests"
    return f"{why}: nothing about it could be verified"
