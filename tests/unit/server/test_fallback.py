"""One index for as long as a server runs."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.server.lowlevel import Server

from rules import rule
from skillwire import MemoryCatalog, Skill
from skillwire.search import index
from skillwire.search.index import SearchIndex
from skillwire.server.skills import Skills
from trees import skill_md

pytestmark = pytest.mark.anyio


@rule("X1")
async def test_the_index_is_made_by_the_first_search_and_ends_with_the_last_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that ends while another is open does not take it away."""
    events: list[str] = []

    class Watched(SearchIndex):
        def __init__(self, *given: Any) -> None:
            events.append("made")
            super().__init__(*given)

        def close(self) -> None:
            events.append("closed")
            super().close()

    monkeypatch.setattr(index, "SearchIndex", Watched)
    server = Skills(MemoryCatalog([Skill("one", {"SKILL.md": skill_md("one")})])).attach(Server("x"))
    async with Client(server) as outer:
        async with Client(server) as inner:
            await inner.list_tools()
            assert events == []
            await inner.call_tool("search_skills", {"query": "one"})
        await outer.call_tool("search_skills", {"query": "one"})
        assert events == ["made"]
    assert events == ["made", "closed"]
