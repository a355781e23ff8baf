"""One conversation with a model: the skills in its context, and what each may cause (V2, W1–W3, A4, A5, O3).

Tool calls of the model go through ``call``. A refused call returns a ``Refusal`` and raises nothing. ``gate``
checks whether code may run because of a skill. Connections, names and approvals belong to the host, and are shared
by all its conversations.

The acting window of a skill is the time during which its text is in the model's context. Only ``load``, the host's
loading path, opens a window. A plain read of a ``SKILL.md`` does not (W2), and reading a directory does not make
its files part of the skill (W3). A read across origins (O3) puts text of a skill that is not loaded into the
context: the skill is then ``quoted``. No further files are read for it, and code runs only if this skill has the
grant too (A5). If an approval is revoked or the skill has changed, its text is still in the context. The window is
then ``revoked``, not closed: nothing more is read or run for the skill until it is loaded again or its text has
left the context.
"""

from __future__ import annotations

import logging
import secrets
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

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
from skillwire.host.context import LIST, LOAD, READ, tool_definitions
from skillwire.host.results import LoadedFile, LoadedSkill, Refusal, ToolResult, quoted, refusal_of
from skillwire.skill.approval import EXECUTE, fingerprint_of, granted_tool, has_contents, tool_grant
from skillwire.skill.entry import Partial, given_arguments
from skillwire.skill.model import READ_RESOURCE_TOOL, READ_SKILL_TOOL
from skillwire.skill.uri import SKILL_MD, parse_uri, root_of
from skillwire.store.records import LogLine
from skillwire.telemetry import span

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from skillwire.host.context import ToolShape
    from skillwire.host.host import SkillHost
    from skillwire.host.loader import ApprovedSkill, Content
    from skillwire.host.origins import NamedEntry
    from skillwire.skill import SkillEntry, SkillUri
    from skillwire.store.records import Happening

log = logging.getLogger("skillwire.host")

MISMATCHES = ("skill-changed", "digest-mismatch", "size-mismatch", "frontmatter-mismatch")
"""References of errors after which the content of a skill is not what was loaded."""


WindowState: TypeAlias = Literal["closed", "quoted", "open", "revoked"]
Event: TypeAlias = Literal["load", "plain-read", "directory-read", "cross-read", "revoke", "change", "leave"]

# Every event has a row and every state a column, so that no case is left to a default.
TRANSITIONS: dict[Event, dict[WindowState, WindowState]] = {
    "load": {"closed": "open", "quoted": "open", "open": "open", "revoked": "open"},
    "plain-read": {"closed": "closed", "quoted": "quoted", "open": "open", "revoked": "revoked"},
    "directory-read": {"closed": "closed", "quoted": "quoted", "open": "open", "revoked": "revoked"},
    "cross-read": {"closed": "quoted", "quoted": "quoted", "open": "open", "revoked": "revoked"},
    "revoke": {"closed": "closed", "quoted": "revoked", "open": "revoked", "revoked": "revoked"},
    "change": {"closed": "closed", "quoted": "revoked", "open": "revoked", "revoked": "revoked"},
    "leave": {"closed": "closed", "quoted": "closed", "open": "closed", "revoked": "closed"},
}


@dataclass(frozen=True, slots=True)
class Window:
    """The state of one skill in the model's context. ``name`` is the one that the model knows."""

    skill: ApprovedSkill
    name: str
    state: WindowState = "closed"

    def after(self, event: Event) -> Window:
        """The window after ``event``."""
        return replace(self, state=TRANSITIONS[event][self.state])

    @property
    def may_read(self) -> bool:
        """Whether files of the loaded entry, and no others, may be read for the model (V2)."""
        return self.state == "open"

    @property
    def is_acting(self) -> bool:
        """Whether the skill's text is in the model's context."""
        return self.state != "closed"

    def permits(self, grant: str) -> bool:
        """Whether a person granted ``grant`` to exactly this content (A4, A5)."""
        return self.state in ("open", "quoted") and grant in self.skill.grants


class Windows:
    """The skills whose text is in the model's context, and what each may cause."""

    def __init__(self) -> None:
        self._windows: dict[tuple[str, str], Window] = {}

    def load(self, skill: ApprovedSkill, name: str) -> None:
        """W1: the host loaded the ``SKILL.md`` into the context, under this name."""
        self._windows[skill.place] = Window(skill, name).after("load")

    def quote(self, skill: ApprovedSkill, name: str) -> None:
        """O3: a read across origins put text of a skill into the context, under this name."""
        self._windows[skill.place] = self._windows.get(skill.place, Window(skill, name)).after("cross-read")

    def grant(self, skill: ApprovedSkill, grants: frozenset[str]) -> None:
        """A4, A5: add grants; ``ApprovalError`` if the skill changed while the person was asked."""
        window = self._windows.get(skill.place)
        if window is not None:
            held = self.current(*skill.place, skill.entry.name)
            if held.entry != skill.entry:
                raise _changed(skill.entry.name)
            self._windows[skill.place] = replace(window, skill=replace(held, grants=held.grants | grants))

    def apply(self, origin: str, uri: str, event: Event) -> None:
        """Apply an event to the window of a skill, if it has one."""
        known = self._windows.get((origin, uri))
        if known is not None:
            window = known.after(event)
            if window.is_acting:
                self._windows[origin, uri] = window
            else:
                del self._windows[origin, uri]

    def apply_to_all(self, event: Event, origin: str | None = None) -> None:
        """Apply an event to all windows, or to those of one origin."""
        for label, uri in list(self._windows):
            if origin is None or label == origin:
                self.apply(label, uri, event)

    def acting(self) -> Iterator[Window]:
        """Every skill whose text is in the context."""
        return iter(list(self._windows.values()))

    def find(self, name: str, *, by_uri: bool = False) -> tuple[str, str] | None:
        """Origin and URI of the skill that was loaded under ``name``.

        A skill keeps the name that the model knows, even if that name means another skill by now (N1).
        """
        found = [
            place
            for place, window in self._windows.items()
            if name in (window.name, ":".join(place)) or (by_uri and name == place[1])
        ]
        if len(found) > 1:
            raise OriginError(
                "name-ambiguous",
                f"{name!r:.100} is ambiguous: {', '.join(map(':'.join, found))}",
                "use one of these names",
                rule="N1",
            )
        return found[0] if found else None

    def around(self, origin: str, file: SkillUri) -> str:
        """The name of the innermost loaded skill of ``origin`` around ``file``, or ``ApprovalError``."""
        roots = {root_of(uri): uri for label, uri in self._windows if label == origin}
        for place in file.parent.upwards():
            uri = roots.get(place)
            if uri is not None:
                return f"{origin}:{uri}"
        raise ApprovalError(
            "skill-not-loaded",
            f"no loaded skill of {origin!r:.80} contains {str(file)!r:.300}",
            "load the skill first: read its SKILL.md",
            rule="W2",
        )

    def loaded(self, origin: str, uri: str, name: str) -> ApprovedSkill:
        """The loaded skill; ``ApprovalError`` if it is not loaded, was revoked, or changed."""
        known = self._windows.get((origin, uri))
        if known is None or known.state == "quoted":
            raise ApprovalError(
                "skill-not-loaded", f"{name!r:.100} is not loaded", "call load_skill first", rule="W2"
            )
        return self.current(origin, uri, name)

    def current(self, origin: str, uri: str, name: str) -> ApprovedSkill:
        """The skill whose text is in the context; ``ApprovalError`` if it was revoked or changed."""
        window = self._windows[origin, uri]
        if window.state == "revoked":
            raise _changed(name)
        return window.skill


class _Arguments(BaseModel):
    """The arguments of all tools. Others are ignored."""

    model_config = ConfigDict(strict=True)

    name: str | None = None
    path: str | None = None
    origin: str | None = None
    server: str | None = None
    uri: str | None = None
    arguments: dict[str, str] | None = None


class Conversation:
    """The tools of one model, with their own acting windows. ``SkillHost.conversation`` makes one."""

    def __init__(self, host: SkillHost) -> None:
        self._host = host
        self.windows = Windows()

    def catalog_prompt(self) -> str:
        """The names, descriptions and origins of the skills, for the system prompt. Nothing is fetched (V5)."""
        return context.catalog_prompt(self._host.shown_skills(), self._host.registry)

    def tools(self, shape: ToolShape = "mcp") -> list[dict[str, Any]]:
        """The definitions of the three tools, in the shape of the model's API."""
        return tool_definitions(shape)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Run a tool call of the model. The result has verified content tagged with its origin, or a refusal.

        The tools are those of ``tools``, ``READ_SKILL_TOOL`` and ``READ_RESOURCE_TOOL``.
        """
        try:
            given = _Arguments.model_validate(arguments)
        except ValidationError as invalid:
            key = str(invalid.errors()[0]["loc"][0])
            error = FormatError("argument-invalid", f"{key!r} has the wrong type", "follow the schema of the tool")
            refusal = refusal_of(error, f"the argument {quoted(key)}")
            return ToolResult(refusal.for_model, refusal)
        skill, path = given.name or "", given.path or ""
        match name:
            case "load_skill":
                outcome = await self.load_skill(skill, origin=given.origin, arguments=given.arguments)
            case "read_skill_file":
                outcome = await self.read_skill_file(skill, path, origin=given.origin)
            case "list_skill_directory":
                outcome = await self.list_skill_directory(skill, path)
            case "read_skill":
                outcome = await self.load_skill(skill)
            case "read_resource":
                outcome = await self.read_resource(given.server or "", given.uri or "")
            case _:
                known = ", ".join((LOAD, READ, LIST, READ_SKILL_TOOL["name"], READ_RESOURCE_TOOL["name"]))
                error = NotFoundError("tool-unknown", f"unknown tool {name!r:.80}", f"known: {known}")
                outcome = refusal_of(error, f"the tool {quoted(name)}")
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
        with span("load") as record:
            try:
                found = await self._host.registry.find(name, origin)
                record.set(origin=found.origin.label, skill=found.entry.uri)
                found = _with_arguments(found, arguments)
                given_arguments(found.entry)  # raises before the question if a required argument is missing
                skill = await self._host.loader.approve(found.origin, found.entry)
                content, body = await self._host.loader.read_skill(skill)
                await self._log("loaded", skill, fingerprint=fingerprint_of(skill.entry), offline=content.offline)
                self._host.loader.check_current(found.origin, skill.entry)
            except SkillwireError as error:
                record.fail(error.reference)
                if isinstance(error, ApprovalError):
                    await self._host.read_denials()  # a person may have declined it just now
                return await self._refused(error, f"the skill {quoted(name)}", name, found)
            record.set(offline=content.offline)
        self.windows.load(replace(skill, reviewed=None), found.name)
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
                self.windows.quote(source, name)
            else:
                content = await self._host.loader.read_file(skill, self._host.loader.locate(skill.entry, path))
            self.windows.loaded(*skill.place, name)  # raises if it changed meanwhile
            await self._log("read", source, uri=content.uri)
        except SkillwireError as error:
            is_own = skill is not None and origin in (None, skill.origin.label)
            subject = f"the file {quoted(path)} of the skill {quoted(name)}"
            return await self._refused(error, subject, f"{name} {path}", skill, revokes=is_own)
        block = context.file_block(name, source.origin, content.uri, _readable(content.data), mark=_mark())
        return LoadedFile(content.uri, content.data, block)

    async def read_resource(self, server: str, uri: str) -> LoadedSkill | LoadedFile | Refusal:
        """Read a URI of an origin. A ``SKILL.md`` is loaded as by ``load_skill`` (W1).

        Any other URI must be a file of a loaded skill of that origin.
        """
        try:
            place, origin = parse_uri(uri), self._host.registry.get(server)
            if place.segments[-1] != SKILL_MD:
                name = self.windows.around(origin.label, place)
                return await self.read_skill_file(name, uri)
        except SkillwireError as error:
            subject = f"the file {quoted(uri)} of the server {quoted(server)}"
            return await self._refused(error, subject, f"{server} {uri}", None)
        return await self.load_skill(uri, origin=server)

    async def list_skill_directory(self, name: str, path: str = "") -> str | Refusal:
        """List a directory of a loaded skill: from the manifest (W3), or from the server of a dynamic skill."""
        skill: ApprovedSkill | None = None
        try:
            skill = await self._loaded(name)
            names = await self._host.loader.list_directory(skill, path.strip("/"))
        except SkillwireError as error:
            subject = f"the directory {quoted(path)} of the skill {quoted(name)}"
            return await self._refused(error, subject, f"{name} {path}", skill)
        self.windows.apply(*skill.place, "directory-read")
        return context.listing_block(name, skill.origin, path, names, mark=_mark())

    async def gate(self, tool: str, *, executes: bool = True) -> Refusal | None:
        """Check whether a tool may run now; ``None`` if it may. Call this before running code (A5).

        While text of a server's skill is in the context, code runs only if a person granted ``execute`` or this
        tool to exactly that content. A tool that runs no code (``executes=False``) always may.
        """
        if not executes:
            return None
        window: Window | None = None
        try:
            for window in self.windows.acting():
                await self._check_approval(window.skill)
            while (window := self._not_granted(tool)) is not None:
                skill = self.windows.current(*window.skill.place, window.skill.entry.name)
                self.windows.grant(skill, await self._host.loader.grant(skill, tool))
        except SkillwireError as error:
            subject = f"the tool {quoted(tool)}"
            if window is not None:
                subject += f", because of the skill {quoted(window.name)}"
            return await self._refused(error, subject, tool, None if window is None else window.skill)
        return None

    def _not_granted(self, tool: str) -> Window | None:
        """The first skill in the context that needs a grant for ``tool``, if there is one."""
        return next(
            (
                window
                for window in self.windows.acting()
                if not (window.skill.origin.is_own or window.permits(EXECUTE) or window.permits(tool_grant(tool)))
            ),
            None,
        )

    def granted(self) -> frozenset[str]:
        """A4: the tools that a person granted to the skills in the context, not those that the skills ask for."""
        grants = {grant for window in self.windows.acting() if window.may_read for grant in window.skill.grants}
        return frozenset(tool for tool in map(granted_tool, grants) if tool is not None)

    def leave(self, name: str | None = None) -> None:
        """Report that the text of a skill, or of all skills, has left the model's context (W1)."""
        if name is None:
            self.windows.apply_to_all("leave")
        else:
            self.windows.apply(*self._place(name), "leave")

    def _place(self, name: str) -> tuple[str, str]:
        """Origin and URI of the skill that ``name`` means. Loaded skills have precedence over known ones."""
        place = self.windows.find(name)
        if place is None:
            try:
                found = self._host.names.find(name)
                place = found.place
            except NotFoundError:  # an unlisted skill that was loaded by its URI
                place = self.windows.find(name, by_uri=True)
                if place is None:
                    raise
        return place

    async def _loaded(self, name: str) -> ApprovedSkill:
        """The loaded skill that ``name`` means (V2)."""
        place = self._place(name)
        await self._check_approval(self.windows.loaded(*place, name))
        return self.windows.loaded(*place, name)

    async def _check_approval(self, skill: ApprovedSkill) -> None:
        """A2: revoke the window of a skill whose approval another program revoked in the same store."""
        if not await self._host.loader.is_still_approved(skill):
            self.windows.apply(*skill.place, "revoke")

    async def _read_across(self, skill: ApprovedSkill, origin: str, uri: str) -> tuple[Content, ApprovedSkill]:
        other = self._host.registry.get(origin)
        entry = next((e for e in other.known if e.resource(uri) is not None), None)
        if entry is None:
            raise NotFoundError(
                "file-unknown",
                f"no known skill of {origin!r:.80} has {uri!r:.200}",
                "load the skill of that file first",
                rule="O3",
            )
        await self._host.loader.allow_across(skill, f"{origin} {uri}")
        theirs = await self._host.loader.approve(other, entry)
        return await self._host.loader.read_file(theirs, uri), theirs

    async def _log(self, what: Happening, skill: ApprovedSkill, *, uri: str = "", **facts: Any) -> None:
        at = time.time()
        await self._host.store.log(LogLine(what, skill.origin.label, uri or skill.entry.uri, "model", at, facts))

    async def _refused(
        self,
        error: SkillwireError,
        subject: str,
        what: str,
        about: NamedEntry | ApprovedSkill | None,
        *,
        revokes: bool = True,
    ) -> Refusal:
        origin, uri = ("", "") if about is None else about.place
        facts = {"reference": error.reference, "rule": error.rule, "what": what[:300]}
        if error.reference in MISMATCHES:
            if revokes:
                self._host.apply(origin, uri, "change")
            self._host.registry.changed()  # the mismatch may have led to a fresh entry
        try:
            await self._host.store.log(LogLine("refused", origin, uri, "host", time.time(), facts))
        except StoreError as failed:  # the refusal stands even if it cannot be logged
            log.warning("a refusal could not be logged: %s", failed.message)
        return refusal_of(error, subject)


def _changed(name: str) -> ApprovalError:
    return ApprovalError(
        "skill-changed",
        f"{name!r:.100} was revoked or changed after it was loaded",
        "load it again: it needs a new approval",
        rule="A2",
    )


def _mark() -> str:
    return secrets.token_hex(8)


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
