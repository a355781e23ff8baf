"""Two names of a configuration that would be one label: an error, never a silent choice (O1, N1)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire.errors import FormatError
from skillwire.gateway.config import plan_gateway
from skillwire.host.host import SkillHost

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

PAIRS = {
    "a trailing blank": ("acme", "acme "),
    "a blank and a hyphen": ("my server", "my-server"),
    "another case": ("acme", "Acme"),
    "what is no label": ("acme!", "acme?"),
}


@rule("O1", "N1")
@pytest.mark.parametrize("names", PAIRS.values(), ids=PAIRS)
async def test_two_names_that_would_be_one_label_are_refused(names: tuple[str, str], tmp_path: Path) -> None:
    """By the host and by the gateway."""
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {name: {"url": "http://127.0.0.1:9/mcp"} for name in names}}))
    with pytest.raises(FormatError) as of_host:
        async with SkillHost.open(config=config, state=tmp_path / "state"):
            pytest.fail("one of them was dropped")
    with pytest.raises(FormatError) as of_gateway:
        plan_gateway(config=config)
    for error in (of_host.value, of_gateway.value):
        assert (error.reference, error.rule) == ("label-duplicate", "O1")
        assert error.hint
        assert all(repr(name) in error.message for name in names)
