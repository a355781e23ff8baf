"""``skillwire verify``: what it prints of a server that has more to complain about than anyone reads."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.catalog.contract import DirectoryChild, Page
from skillwire.cli.printer import Printer
from skillwire.cli.verify import verify_and_print
from trees import skill_md

if TYPE_CHECKING:
    from skillwire.types import SkillFile

pytestmark = pytest.mark.anyio

UNLISTED = 500


class Flooding(MemoryCatalog):
    """Its directory shows files that no entry lists; one that is listed cannot be read."""

    async def read_directory(self, uri: str, cursor: str | None = None, limit: int = 100) -> Page[DirectoryChild]:
        page = await super().read_directory(uri, cursor, limit)
        extra = [DirectoryChild(f"{uri}/{n}.md", f"{n}.md", is_directory=False) for n in range(UNLISTED)]
        return Page([*page.items, *extra], page.next_cursor)

    async def read_file(self, uri: str) -> SkillFile:
        file = await super().read_file(uri)
        return file._replace(data=b"another") if uri.endswith("/last.md") else file


@rule("B3", "V2")
async def test_failures_of_one_kind_are_printed_up_to_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """How many more there are is said; other kinds are not pushed out; programs get all."""
    catalog = Flooding([Skill("flat", {"SKILL.md": skill_md("flat"), "last.md": b"last"})])
    assert await verify_and_print(catalog, SimpleNamespace(strict=False), Printer()) == 1
    lines = capsys.readouterr().out.splitlines()
    unlisted = [line for line in lines if "[file-unlisted]" in line]
    assert len(unlisted) == 20 + 1
    assert str(UNLISTED - 20) in unlisted[-1]
    assert any("last.md" in line and "-mismatch]" in line for line in lines)
    assert await verify_and_print(catalog, SimpleNamespace(strict=False), Printer(is_json=True)) == 1
    assert len(json.loads(capsys.readouterr().out)["failures"]) == UNLISTED + 1
