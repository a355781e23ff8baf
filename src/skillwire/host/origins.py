"""Origins: where a host's skills come from, each under a label (O1), and the names of their skills (N1, E5).

An origin is a folder of the user's own (``FolderOrigin``), whose skills need no approval, or a server
(``ServerOrigin``), a ``RemoteCatalog`` that keeps its listing current. Each runs in its own task, so that a server
that does not answer delays no other. Until a server responds, its stored listing is used.

Listings of older dialects are short: files and digests are known only after a request for the skill. Nothing is
fetched before it is needed (V5), so ``whole`` makes that request when a skill is loaded or reviewed.

A skill is identified by its origin and URI. Its name need not be unique. A bare name is used only while no other
skill of any origin has the same name, regardless of case and Unicode form. Otherwise each skill is shown under the
first unambiguous one of ``origin:name``, ``origin:path`` and ``origin:URI``. A name that could imitate another
(``local:refunds``, letters that look like others) is never used bare. A name with invisible characters is replaced
by the URI, with these characters encoded. No skill hides or takes precedence over another, not even one from a
folder.
"""

from __future__ import annotations

import logging
import shlex
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import anyio

from skillwire.catalog.directory import DirectoryCatalog
from skillwire.client.connect import check_target
from skillwire.client.link import ServerLink
from skillwire.client.remote import RemoteCatalog
from skillwire.client.servers import address_of
from skillwire.errors import NotFoundError, OriginError, SkillwireError, UpstreamError
from skillwire.host.state import is_label
from skillwire.skill.approval import agrees, contents_of, has_contents
from skillwire.skill.hidden import is_seen
from skillwire.skill.uri import fold, parse_uri
from skillwire.skill.verify import is_same, verify_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from skillwire.catalog.contract import Change
    from skillwire.client.connect import ConnectTarget
    from skillwire.client.dialects.contract import Children
    from skillwire.client.remote import CatalogState
    from skillwire.limits import Limits
    from skillwire.skill import Diagnostic, SkillEntry
    from skillwire.skill.verify import VerifiedFile
    from skillwire.store.content_cache import ContentCache
    from skillwire.store.store import Store

_POLL_SECONDS = 300.0  # each agent has a host, and most servers report their changes
_FOLLOW_SECONDS = 0.5
_MAX_SHOWN = 10  # names in an error

log = logging.getLogger("skillwire.host")


class FolderOrigin:
    """A folder on this machine. It is watched, and a skill that is loaded is read again.

    It lists all its skills, so there is nothing to request: it is never "connected".
    """

    is_own = True  # it is the user's own, so its skills need no approval
    is_connected = False
    is_removed = False
    kind = "folder"
    seen_at = None
    scope: anyio.CancelScope | None = None  # of the task that keeps it current

    def __init__(self, label: str, path: Path, limits: Limits) -> None:
        self.label = label
        self.address = str(path)
        self.state: CatalogState = "complete"
        self.error: SkillwireError | None = None
        self.known: tuple[SkillEntry, ...] = ()
        self._limits = limits
        self._catalog = DirectoryCatalog(path)
        try:
            self._catalog.load()
            self._take()
        except SkillwireError as error:
            self.state, self.error = "unreachable", error
            log.warning("the folder %r cannot be read: %s [%s]", label, error.message, error.reference)

    def listed(self, uri: str) -> SkillEntry | None:
        """The entry of a skill."""
        return next((entry for entry in self.known if entry.uri == uri), None)

    held = listed

    async def problems(self) -> list[Diagnostic]:
        """Skills that are not served, and why."""
        found = () if self.error is not None else self._catalog.snapshot().problems()
        return [problem for problem in found if problem.refuses]

    async def ask_skill(self, uri: str) -> SkillEntry:
        """Raise ``NotFoundError``: a folder lists all its skills."""
        raise NotFoundError(
            "skill-unknown",
            f"the folder {self.label!r} has no skill at {uri!r:.300}",
            "use a name from the list: skillwire list --origins",
            rule="G1",
        )

    async def whole(self, entry: SkillEntry) -> SkillEntry:
        """The skill, read again."""
        await self._catalog.refresh([self._catalog.on_disk(parse_uri(entry.uri).path)])
        self._take()
        now = self.held(entry.uri)
        if now is None:
            raise NotFoundError(
                "skill-unknown",
                f"the folder {self.label!r} no longer has a skill at {entry.uri!r:.300}",
                f"see its problems: {shlex.join(['skillwire', 'check', self.address])}",
                rule="G1",
            )
        return now

    async def fetch(self, entry: SkillEntry, uri: str, *, keep: bool = True) -> VerifiedFile:  # noqa: ARG002
        """One file, verified."""
        return verify_file(entry, uri, await self.read_unverified(entry, uri), self._limits)

    async def read_unverified(self, entry: SkillEntry, uri: str) -> bytes:  # noqa: ARG002
        """The current bytes of one file: the user may have edited it after the skill was loaded."""
        return (await self._catalog.read_file(uri)).data

    async def ask_directory(self, uri: str) -> Children | None:  # noqa: ARG002
        """Nothing: the entries of a folder have all files."""
        return None

    async def settle(self) -> None:
        """Do nothing: the folder was read when it was added."""

    async def run(self, changed: Callable[[], None]) -> None:
        """Watch the folder until cancelled, and call ``changed`` after each change."""
        if self.error is not None:
            return

        def take(_: Change) -> None:
            self._take()
            changed()

        await anyio.sleep(_FOLLOW_SECONDS)  # a short-lived program has ended by then
        with self._catalog.changes() as changes:
            changes.forward(take)
            try:
                await self._catalog.follow()
            except (SkillwireError, OSError) as error:  # a skill that is loaded is read again anyway
                log.warning("the folder %r is not watched: %s", self.label, error)

    def _take(self) -> None:
        snapshot = self._catalog.snapshot()
        self.known = tuple(record.entry for _, record in snapshot.records())
        self.state = "partial" if any(problem.refuses for problem in snapshot.problems()) else "complete"


class ServerOrigin(RemoteCatalog):
    """An MCP server, or a Git repository, which is served in memory."""

    is_own = False
    is_removed = False
    scope: anyio.CancelScope | None = None  # of the task that keeps it current
    _warned = ""

    def __init__(
        self, link: ServerLink, address: str, *, store: Store, cache: ContentCache | None, limits: Limits
    ) -> None:
        super().__init__(link, store=store, cache=cache, limits=limits, closed=True)
        self._address = address

    @property
    def address(self) -> str:
        """Where the server is, without secrets; of a Git repository also the commit."""
        git = None if self.client is None else self.client.git
        return self._address if git is None or git.commit is None else f"{git.source} at commit {git.commit[:12]}"

    @property
    def kind(self) -> str:
        """The dialect, once the server has listed its skills in this run; else empty."""
        return self.dialect or "" if self.state in ("complete", "partial") else ""

    @property
    def is_connected(self) -> bool:
        """Whether unlisted skills can be requested now."""
        return self.client is not None

    async def problems(self) -> list[Diagnostic]:
        """Entries that cannot be used."""
        return [problem for problem in await super().problems() if problem.reference != "listing-partial"]

    async def whole(self, entry: SkillEntry) -> SkillEntry:
        """The entry, requested from the server if the listing is short (G1, V5).

        If all its files have digests then, these are the skill: an unlisted file is never read (V2). If not, the
        entry stays as it was listed, and cannot be verified (V7). A skill that the server knows by name has files
        only then (P2).
        """
        listed = self.listed(entry.uri)
        if not entry.is_short and not (listed is not None and listed.is_short):
            return entry
        if not self.is_connected:
            return self._still_known(entry)
        given = {name: value for name, value in entry.arguments.items() if value is not None}
        whole = await self.ask_skill(entry.uri, given)
        if given or has_contents(whole) or whole.is_named:
            return whole
        return listed or whole

    async def run(self, changed: Callable[[], None]) -> None:
        """Connect, and follow the listing until cancelled. ``changed`` is called after each change."""

        async def watch_state() -> None:
            while True:
                await self.next_state()
                changed()

        with self.changes() as changes:
            changes.forward(lambda _: changed())
            async with anyio.create_task_group() as group:
                group.start_soon(watch_state)
                await self.follow()

    def lost(self, error: SkillwireError) -> None:
        """Keep the last listing. Each new reason is logged once."""
        if error.message != self._warned:
            self._warned = error.message
            log.warning("the origin %r failed: %s [%s]", self.label, error.message, error.reference)
        super().lost(error)

    def _still_known(self, entry: SkillEntry) -> SkillEntry:
        """The last entry of the skill that the server gave."""
        known = self.held(entry.uri)
        if known is not None and has_contents(known):
            return known
        if not has_contents(entry):
            raise UpstreamError(
                "server-away",
                f"{self.label!r} cannot be reached now, and its listing of {entry.uri!r:.300} has no digests",
                "try again later",
                rule="V7",
            )
        return entry


Origin: TypeAlias = FolderOrigin | ServerOrigin


def has_other(origin: Origin, entry: SkillEntry) -> bool:
    """Whether the origin now has different files or frontmatter than ``entry`` (A2, A6).

    A missing skill is no evidence of a change, and neither is a short listing that agrees with ``entry``. A skill
    that was approved before its files were known is compared with the listing.
    """
    known, listed = origin.held(entry.uri), origin.listed(entry.uri)
    if known is None or is_same(known, entry):
        return False
    if known is listed and known.is_short and has_contents(entry):
        # Of a skill known by name, a listing has the whole frontmatter.
        is_renamed = known.is_named and known.frontmatter != entry.frontmatter
        if agrees(contents_of(entry), known) and not is_renamed:
            return False
    return listed is None or not is_same(listed, entry)


@dataclass(frozen=True, slots=True)
class NamedEntry:
    """A skill of an origin, and its shortest unambiguous name."""

    name: str
    origin: Origin
    entry: SkillEntry

    @property
    def place(self) -> tuple[str, str]:
        """What identifies the skill: the label of its origin, and its URI (E5)."""
        return self.origin.label, self.entry.uri


class Names:
    """All known skills, by all their names."""

    def __init__(self, origins: Iterable[Origin]) -> None:
        known = [(origin, entry) for origin in origins for entry in origin.known]
        same_name: dict[str, list[int]] = {}  # by folded name
        meant: dict[str, list[int]] = {}  # which skills a name can mean
        qualified: list[tuple[str, ...]] = []  # names with the label of the origin, shortest first
        for number, (origin, entry) in enumerate(known):
            same_name.setdefault(fold(entry.name), []).append(number)
            names = [entry.name, entry.path, entry.uri]
            if not _is_visible(entry.uri):
                names.append(str(parse_uri(entry.uri)))  # with invisible characters encoded
            qualified.append(tuple(dict.fromkeys(f"{origin.label}:{name}" for name in names)))
            for name in (entry.uri, *qualified[number]):
                meant.setdefault(name, []).append(number)
        meant |= {entry.name: same_name[fold(entry.name)] for _, entry in known if _is_plain(entry.name)}
        self.skills = tuple(
            NamedEntry(_shortest(entry.name, longer, meant), origin, entry)
            for (origin, entry), longer in zip(known, qualified, strict=True)
        )
        self._by_name = {name: [self.skills[number] for number in numbers] for name, numbers in meant.items()}

    def find(self, text: str, origin: str | None = None) -> NamedEntry:
        """The skill that ``text`` means; ``OriginError`` lists the candidates if there are several."""
        found = self._by_name.get(text, [])
        if origin is not None:
            within = [
                skill
                for skill in found
                if skill.origin.label == origin and text in (skill.entry.name, skill.entry.uri)
            ]
            found = within or [
                skill for skill in self._by_name.get(f"{origin}:{text}", []) if skill.origin.label == origin
            ]
        if len(found) == 1:
            return found[0]
        if found:
            raise OriginError(
                "name-ambiguous",
                f"{text!r:.100} is ambiguous: {', '.join(skill.name for skill in found[:_MAX_SHOWN])}",
                "use one of these names",
                rule="N1",
            )
        raise NotFoundError("skill-unknown", f"unknown skill {text!r:.100}", "use a name from the list", rule="N1")


def _is_plain(name: str) -> bool:
    """Whether the name cannot imitate a qualified name or other letters."""
    return name.isascii() and ":" not in name


def _shortest(name: str, qualified: tuple[str, ...], meant: dict[str, list[int]]) -> str:
    """The first name that means one skill only. The last one, with label and URI, always does."""
    *shorter, longest = (*([name] if _is_plain(name) else []), *qualified)
    return next((each for each in shorter if len(meant[each]) == 1 and _is_visible(each)), longest)


def _is_visible(text: str) -> bool:
    return text.isascii() or (text.isprintable() and is_seen(text))


class OriginRegistry:
    """All origins of a host, and the names of their skills. ``on_change`` is called after every change of one.

    With ``instructions``, skills that a server's instructions name are known too, once the server gave them (I5).
    """

    def __init__(
        self,
        store: Store,
        cache: ContentCache | None,
        limits: Limits,
        on_change: Callable[[], None],
        *,
        instructions: bool = False,
    ) -> None:
        self._store = store
        self._cache = cache
        self._limits = limits
        self._on_change = on_change
        self._instructions = instructions
        self._origins: dict[str, Origin] = {}
        self._names: Names | None = None

    def __iter__(self) -> Iterator[Origin]:
        return iter(self._origins.values())

    @property
    def names(self) -> Names:
        """Every known skill under its name."""
        if self._names is None:
            self._names = Names(self)
        return self._names

    def changed(self) -> None:
        """An origin, or the entry of a skill, has changed. The names are computed again when they are needed."""
        self._names = None
        self._on_change()

    async def find(self, name: str, label: str | None = None) -> NamedEntry:
        """Find a skill by its name, or an unlisted one by its URI (G1) or ``label:URI``."""
        known: list[NamedEntry] = []
        try:
            known.append(self.names.find(name, label))
            if label is not None or name != known[0].entry.uri:
                return known[0]
        except NotFoundError:
            before, _, uri = name.partition(":")
            if label is None and "://" in uri:
                name, label = uri, before
            if "://" not in name:
                raise
        if label is None:
            return await self._find_uri(str(parse_uri(name)), known)
        origin = self.get(label)
        return NamedEntry(f"{label}:{name}", origin, await origin.ask_skill(name))

    async def _find_uri(self, uri: str, found: list[NamedEntry]) -> NamedEntry:
        """The skill at ``uri``, if exactly one origin has it (G1, N1). ``found`` are those that list it.

        All connected servers are asked: a server that lists the URI has no precedence over one that has the same
        URI and does not list it.
        """
        known = {each.origin.label for each in found}

        async def ask(origin: Origin) -> None:
            with suppress(SkillwireError):
                found.append(NamedEntry(f"{origin.label}:{uri}", origin, await origin.ask_skill(uri)))

        connected = [origin for origin in self if origin.is_connected]
        async with anyio.create_task_group() as group:
            for origin in connected:
                if origin.label not in known:
                    group.start_soon(ask, origin)
        if len(found) > 1:
            labels = sorted(each.origin.label for each in found)
            raise OriginError(
                "origin-ambiguous",
                f"several origins have {uri!r:.300}: {', '.join(labels):.300}",
                f"add the origin: {', '.join(f'{label}:{uri}' for label in labels):.600}",
                rule="N1",
                choices=tuple(labels),
            )
        if found:
            return found[0]
        asked = ", ".join(sorted(origin.label for origin in connected))
        raise NotFoundError(
            "skill-unknown",
            f"no connected server has {uri!r:.300}; asked: {asked or 'none'}",
            "use a name from the list, or another URI",
            rule="G1",
        )

    def get(self, label: str) -> Origin:
        """The origin with that label; ``OriginError`` lists the known ones."""
        origin = self._origins.get(label)
        if origin is None:
            known = ", ".join(sorted(self._origins)) or "none"
            raise OriginError("origin-unknown", f"unknown origin {label!r:.80}", f"known: {known:.300}", rule="O1")
        return origin

    def add_folder(self, label: str, path: Path) -> Origin:
        """Add a folder. It is read at once; ``run`` keeps it current."""
        self._check_label(label)
        self._origins[label] = FolderOrigin(label, path, self._limits)
        return self._origins[label]

    async def add_server(self, label: str, target: ConnectTarget) -> ServerOrigin:
        """Add a server with its last listing; ``run`` connects to it."""
        self._check_label(label)
        check_target(target)
        link = ServerLink(
            label, target, limits=self._limits, instructions=self._instructions, poll_seconds=_POLL_SECONDS
        )
        address = address_of(target)
        origin = ServerOrigin(link, address, store=self._store, cache=self._cache, limits=self._limits)
        self._origins[label] = origin
        await origin.load_saved()
        return origin

    def remove(self, label: str) -> None:
        """Remove an origin, and disconnect from it."""
        origin = self.get(label)
        origin.is_removed = True
        del self._origins[label]
        if origin.scope is not None:
            origin.scope.cancel()
        self.changed()

    async def whole(self, origin: Origin, entry: SkillEntry) -> SkillEntry:
        """The whole entry of a skill that is loaded or reviewed."""
        try:
            whole = await origin.whole(entry)
        except NotFoundError:
            self.changed()
            raise
        if whole is not entry:
            self.changed()
        return whole

    async def run(self, origin: Origin) -> None:
        """Keep one origin current, until cancelled or removed."""
        with anyio.CancelScope() as origin.scope:
            await origin.run(self.changed)

    def _check_label(self, label: str) -> None:
        if label in self._origins:
            raise OriginError(
                "origin-taken", f"the label {label!r:.80} is used twice", "rename one of the origins", rule="O1"
            )
        if not is_label(label):
            raise OriginError(
                "origin-invalid",
                f"{label!r:.80} is not a valid label",
                "use 1 to 64 letters, digits, - _ .",
                rule="O1",
            )
