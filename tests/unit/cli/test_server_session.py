"""``serve`` and ``gateway``: open addresses, and the messages at the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire.bootstrap import is_open
from skillwire.catalog.directory import DirectoryCatalog
from skillwire.cli.printer import Printer
from skillwire.cli.server_session import print_served
from skillwire.server.access import Access
from skillwire.server.http import listen
from trees import skill_md, write_tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("host", "is_everywhere"),
    [
        ("127.0.0.1", False),
        ("localhost", False),
        ("::1", False),
        ("0.0.0.0", True),
        ("::", True),
    ],
)
def test_who_is_let_in_depends_on_the_address_and_not_on_how_it_is_written(host: str, is_everywhere: bool) -> None:
    with listen(host, 0) as listener:
        assert is_open(listener, None) is is_everywhere
        assert not is_open(listener, Access())


@rule("E6")
@pytest.mark.anyio
async def test_a_skill_above_the_limits_for_hosts_is_served_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = {f"large/files/{number}.md": b"x" for number in range(512)}
    root = write_tree(tmp_path, {"large/SKILL.md": skill_md("large"), "small/SKILL.md": skill_md("small"), **many})
    await print_served(DirectoryCatalog(root), Printer())
    warnings = [line for line in capsys.readouterr().err.splitlines() if "[over-limit]" in line]
    assert len(warnings) == 1
    assert "large" in warnings[0]
