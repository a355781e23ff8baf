"""What the tests of the host share: a person who answers as told, and a host that says when it learned things."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio

from adversarial.adversary import SMALL
from skillwire.client.skills import SkillsClient
from skillwire.host.approvals import Answer, Policy, Rule
from skillwire.host.host import SkillHost
from skillwire.skill import digest_of
from skillwire.skill.entry import build_entry
from skillwire.skill.frontmatter import parse_skill_md

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

    from adversarial.adversary import HostileServer
    from skillwire.client.remote import CatalogState
    from skillwire.host.approvals import ApprovalRequest
    from skillwire.host.origins import Origin
    from skillwire.host.results import ToolResult
    from skillwire.skill import SkillEntry
    from skillwire.store.records import LogLine

SECONDS = 20
YES, NO = Answer(yes=True), Answer(yes=False)
ALLOW = Policy([Rule("allow")])


class Person:
    """Says what it was told to say, in this order, and then yes to everything. ``asked`` is what it was asked.

    One that ``looks`` reads the skill before it answers.
    """

    def __init__(self, *answers: Answer, looks: bool = False) -> None:
        self.answers = list(answers)
        self.asked: list[ApprovalRequest] = []
        self.looks = looks

    async def __call__(self, request: ApprovalRequest) -> Answer:
        self.asked.append(await request.review() if self.looks else request)
        return self.answers.pop(0) if self.answers else YES

    @property
    def kinds(self) -> list[str]:
        return [request.kind for request in self.asked]


@dataclass
class _Known:
    """What naming and showing skills needs of an origin."""

    label: str
    known: tuple[SkillEntry, ...] = ()
    state: str = "complete"
    is_own: bool = False


def known_origin(
    label: str, *entries: SkillEntry, state: CatalogState = "complete", is_own: bool = False
) -> Origin:
    """An origin that nothing is read from."""
    return cast("Origin", _Known(label, entries, state, is_own))


class Slow(Person):
    """Thinks until told."""

    def __init__(self, *answers: Answer) -> None:
        super().__init__(*answers)
        self.is_asked, self.may_answer = anyio.Event(), anyio.Event()

    async def __call__(self, request: ApprovalRequest) -> Answer:
        answer = await super().__call__(request)
        self.is_asked.set()
        with anyio.fail_after(SECONDS):
            await self.may_answer.wait()
        return answer


class StagedHost(SkillHost):
    """A host whose tests wait for what it learned, and never for a clock."""

    def __init__(self, *given: Any, **options: Any) -> None:
        self._told = anyio.Event()
        self.listings: Counter[str] = Counter()
        super().__init__(*given, **options)
        add_server = self.registry.add_server

        async def counted(label: str, target: Any) -> Any:
            origin = await add_server(label, target)
            self._count_listings(origin)
            return origin

        self.registry.add_server = counted  # type: ignore[method-assign]

    def _count_listings(self, origin: Any) -> None:
        refresh = origin.refresh

        async def counted() -> Any:
            try:
                return await refresh()
            finally:
                self.listings[origin.label] += 1
                self._tell()

        origin.refresh = counted

    def origins_changed(self) -> None:
        super().origins_changed()
        self._tell()

    async def read_denials(self) -> None:
        await super().read_denials()
        self._tell()

    def _tell(self) -> None:
        self._told.set()
        self._told = anyio.Event()

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something that the host learned makes ``condition`` true."""
        with anyio.fail_after(SECONDS):
            while not condition():
                await self._told.wait()

    async def calm(self, *labels: str) -> None:
        """Wait until each of these servers has listed its skills, and again after somebody listened."""
        await self.until(lambda: all(self.listings[label] >= 2 for label in labels))

    async def relist(self, label: str) -> None:
        """Have a server list its skills now."""
        await self.registry.get(label).refresh()  # type: ignore[union-attr]

    def client(self, label: str) -> SkillsClient:
        """The connection to a server."""
        client = self.registry.get(label).client  # type: ignore[union-attr]
        assert isinstance(client, SkillsClient)
        return client

    def state(self, label: str) -> str:
        return self.registry.get(label).state

    async def load(self, name: str, **words: Any) -> ToolResult:
        return await self.call("load_skill", {"name": name, **words})

    async def read(self, name: str, path: str, **words: Any) -> ToolResult:
        return await self.call("read_skill_file", {"name": name, "path": path, **words})

    async def ls(self, name: str, path: str = "") -> ToolResult:
        return await self.call("list_skill_directory", {"name": name, "path": path})

    async def happened(self) -> list[str]:
        """What the log says, oldest first."""
        return [line.what for line in await self.lines()]

    async def lines(self) -> list[LogLine]:
        return list(reversed(await self.store.lines(limit=1000)))


@asynccontextmanager
async def hosting(
    state: Path, servers: Mapping[str, HostileServer], *, calm: bool = True, **options: Any
) -> AsyncIterator[StagedHost]:
    """A host of these servers, which really serve, and have listed what they have."""
    async with AsyncExitStack() as stack:
        targets = {label: await stack.enter_async_context(server.serving()) for label, server in servers.items()}
        options.setdefault("limits", SMALL)
        host = await stack.enter_async_context(StagedHost.open(servers=targets, state=state, **options))
        assert isinstance(host, StagedHost)
        if calm:
            await host.calm(*servers)
        yield host


def rotate(server: HostileServer, uri: str, data: bytes) -> None:
    """Other bytes, and entries that say so."""
    server.files[uri] = data
    for entry in server.entries:
        for resource in entry["resources"]:
            if resource["uri"] == uri:
                resource.update(digest=digest_of(data), size=len(data))


def make_dynamic(server: HostileServer) -> None:
    """Nothing is promised any more."""
    for entry in server.entries:
        entry["resources"] = "dynamic"


def reference(result: ToolResult) -> tuple[str, str]:
    """The reference and the rule of a refusal, which it has to be."""
    assert result.refusal is not None, result.text
    return result.refusal.reference, result.refusal.rule


def entry_of(path: str, files: Mapping[str, bytes]) -> SkillEntry:
    """The honest entry of a skill."""
    frontmatter = parse_skill_md(files["SKILL.md"]).frontmatter
    return build_entry(path, frontmatter, [(name, digest_of(data), len(data)) for name, data in files.items()])


def on_disk(folder: Path) -> bytes:
    """Every byte of every file below a folder, with the files' names."""
    found = bytearray()
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                found += path.encode(errors="surrogateescape") + b"\n" + file.read() + b"\n"
    return bytes(found)
