"""What a FastMCP server offers is known when it starts and when somebody asks (P3)."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest
from mcp import Client

from interop.fastmcp_server import build
from interop.wire import call
from skillwire import MemoryCatalog, Skill
from skillwire.server.dialect import Dialects
from skillwire.server.sdk_compat import lowlevel_server
from skillwire.server.skills import Skills
from trees import skill_md

pytestmark = pytest.mark.anyio
THERE = 'dependencies: {tools: [add], prompts: [greet], resources: ["weather://today", "weather://rome/today"]}\n'
MISSING = 'dependencies: {tools: [pay], resources: ["weather://rome/tomorrow"]}\n'


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_p3_a_skill_is_shown_if_fastmcp_offers_what_it_needs(mode: str, caplog: Any) -> None:
    caplog.set_level(logging.WARNING, "skillwire.server")
    catalog = MemoryCatalog(
        [Skill(name, {"SKILL.md": skill_md(name, extra=needs)}) for name, needs in (("a", THERE), ("b", MISSING))]
    )
    server = Skills(catalog, dialects=Dialects("sep-2076")).attach(build(""))
    async with Client(lowlevel_server(server), mode=mode) as client:
        with anyio.fail_after(10):
            while len(caplog.messages) < 2:
                await anyio.lowlevel.checkpoint()
        assert [skill["name"] for skill in (await call(client, "skills/list"))["skills"]] == ["a"]
    assert ["the tool 'pay'" in caplog.messages[0], "rome/tomorrow" in caplog.messages[1]] == [True, True]
