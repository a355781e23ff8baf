"""Our host in front of one server: every skill is approved, loaded, and each of its files is read."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import skillwire.client.link
from interop.honest import files_by_skill, path_of
from skillwire.client.connect import connect
from skillwire.host.approvals import Answer, Policy, Rule
from skillwire.host.host import SkillHost
from skillwire.host.results import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection
    from pathlib import Path

    import pytest

    from interop.running import Era, Served, Transport
    from skillwire.host.approvals import ApprovalRequest

ORIGIN = "peer"
BY_CHOICE = Policy([Rule("ask", kind="dynamic")])


@dataclass
class Visit:
    """What came of it, by path: instructions and files that came through, and why others did not."""

    loaded: dict[str, str] = field(default_factory=dict[str, str])
    read: dict[str, bytes] = field(default_factory=dict[str, bytes])
    refused: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[str] = field(default_factory=list[str])

    async def answer(self, request: ApprovalRequest) -> Answer:
        """A person who says yes and is remembered for it."""
        self.asked.append(path_of(request.entry.uri))
        return Answer(yes=True, by="a test")


@asynccontextmanager
async def hosting(
    served: Served, transport: Transport, state: Path, visit: Visit, policy: Policy | None = None
) -> AsyncIterator[SkillHost]:
    """A host that knows one server, whose answers have come."""
    target = served.url if transport == "http" else list(served.command)
    async with SkillHost.open(servers={ORIGIN: target}, state=state, ask=visit.answer, policy=policy) as host:
        await host.settle(60)
        yield host


def speak(era: Era, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts choose no era: they take the newest a server has. This holds them to the handshake."""
    if era == "legacy":
        monkeypatch.setattr(skillwire.client.link, "connect", partial(connect, mode="legacy"))


async def visit_all(
    served: Served,
    transport: Transport,
    state: Path,
    policy: Policy | None = None,
    only: Collection[str] | None = None,
) -> Visit:
    """Every skill that the server lists, and of each every file that lies on disk, or those that are asked for."""
    visit, files = Visit(), files_by_skill(dict.fromkeys(only, b"") if only else served.tree)
    async with hosting(served, transport, state, visit, policy) as host:
        for skill in await host.skills():
            loaded = await host.load_skill(skill.uri, origin=ORIGIN)
            if isinstance(loaded, Refusal):
                visit.refused[path_of(skill.uri)] = loaded.reference
                continue
            visit.loaded[path_of(skill.uri)] = loaded.text
            root = path_of(skill.uri).removesuffix("/SKILL.md")
            for path in files[root]:
                content = await host.read_skill_file(loaded.name, path.removeprefix(f"{root}/"))
                if isinstance(content, Refusal):
                    visit.refused[path] = content.reference
                else:
                    visit.read[path] = content.data
    return visit
