"""What ``serve`` says of the skills when it starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.cli.banner import say_what_is_served
from skillwire.cli.printer import Printer
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@rule("E6")
async def test_a_skill_above_the_limits_for_hosts_is_served_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = {f"large/files/{number}.md": b"x" for number in range(512)}
    root = write_tree(tmp_path, {"large/SKILL.md": skill_md("large"), "small/SKILL.md": skill_md("small"), **many})
    await say_what_is_served(DirectoryCatalog(root), Printer())
    warnings = [line for line in capsys.readouterr().err.splitlines() if "[over-limit]" in line]
    assert len(warnings) == 1
    assert "large" in warnings[0]
