"""Options of a command and the page that documents them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from skillwire.cli.main import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest


def check_options(command: Sequence[str], page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every option in the help of ``command`` is described in ``page``."""
    assert run([*command, "--help"]) == 0
    options = set(re.findall(r"^  (?:-\w, )?(--[a-z][a-z-]*)", capsys.readouterr().out, re.MULTILINE)) - {"--help"}
    assert options
    assert [option for option in sorted(options) if f"`{option}" not in page] == []
