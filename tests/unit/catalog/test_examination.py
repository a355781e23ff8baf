"""Skills are examined in the background: the shown ones first, each content once, and none of another server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.catalog.contract import WrapperCatalog
from skillwire.catalog.examination import Examiner
from trees import skill_md

if TYPE_CHECKING:
    from collections.abc import Callable

    from skillwire.catalog.contract import SkillFile
    from skillwire.skill import SkillEntry

pytestmark = pytest.mark.anyio


class Noting(WrapperCatalog):
    """A catalog that notes the skills whose files are read; reads of ``broken`` fail unexpectedly."""

    def __init__(self, *names: str, broken: str = "") -> None:
        super().__init__(MemoryCatalog([Skill(name, {"SKILL.md": skill_md(name)}) for name in names]))
        self.read: list[str] = []
        self.broken = broken

    async def read_file(self, uri: str) -> SkillFile:
        self.read.append(uri.split("/")[2])
        if self.read[-1] == self.broken:
            raise ZeroDivisionError
        return await self.inner.read_file(uri)

    async def all(self) -> list[SkillEntry]:
        return [entry async for entry in self.entries()]


async def examined(entries: list[SkillEntry], ask: Callable[[Examiner], None]) -> Examiner:
    """An examiner that was asked, and has a result for each of ``entries``."""
    progress = anyio.Event()
    examiner = Examiner(lambda: progress.set())
    ask(examiner)
    async with anyio.create_task_group() as group:
        group.start_soon(examiner.run)
        with anyio.fail_after(20):
            while not all(map(examiner.known, entries)):
                await progress.wait()
                progress = anyio.Event()
        group.cancel_scope.cancel()
    return examiner


async def test_shown_skills_come_first_and_each_content_once() -> None:
    catalog = Noting("a", "b", "c", "d")
    entries = await catalog.all()

    def ask(examiner: Examiner) -> None:
        examiner.ask_all(catalog, entries)
        examiner.ask(catalog, entries[2:])
        assert examiner.remaining(catalog) == 4

    examiner = await examined(entries, ask)
    assert catalog.read == ["c", "d", "a", "b"]
    assert examiner.remaining(catalog) == 0
    examiner.ask(catalog, entries)
    examiner.ask_all(catalog, entries)
    assert examiner.remaining(catalog) == 0


async def test_a_list_that_is_replaced_while_its_last_skill_is_examined_is_not_lost() -> None:
    class Growing(Noting):
        async def read_file(self, uri: str) -> SkillFile:
            if not self.read:
                examiner.ask_all(self, entries)
            return await super().read_file(uri)

    catalog, examiner = Growing("a", "b"), Examiner()
    entries = await catalog.all()
    examiner.ask_all(catalog, entries[:1])
    async with anyio.create_task_group() as group:
        group.start_soon(examiner.run)
        with anyio.fail_after(20):
            while not all(map(examiner.known, entries)):
                await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()


async def test_a_skill_that_cannot_be_examined_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    catalog = Noting("a", "b", broken="a")
    entries = await catalog.all()
    examiner = await examined(entries[1:], lambda examiner: examiner.ask(catalog, entries))
    assert examiner.known(entries[0]) is None
    assert "cannot be examined" in caplog.text


@rule("V5")
async def test_skills_of_other_servers_are_not_read() -> None:
    catalog = Noting("a")
    entries = [replace(entry, local=False) for entry in await catalog.all()]
    examiner = Examiner()
    examiner.ask(catalog, entries)
    examiner.ask_all(catalog, entries)
    assert examiner.remaining(catalog) == 0
    assert await examiner.examine(catalog, entries[0]) is None
    assert catalog.read == []


@rule("B1")
async def test_requests_for_many_skills_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skillwire.catalog.examination._MAX_FIRST", 2)
    catalog = Noting("a", "b", "c")
    entries = await catalog.all()
    await examined(entries[:2], lambda examiner: examiner.ask(catalog, entries))
    assert catalog.read == ["a", "b"]
