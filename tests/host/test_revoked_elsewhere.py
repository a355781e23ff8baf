"""An approval that another host revoked because it saw other content is revoked here too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rules import rule
from skillwire import Answer, MemoryCatalog, Skill, SkillHost, Skills
from skillwire.server.skills import build_server
from trees import skill_md

if TYPE_CHECKING:
    from pathlib import Path

    from skillwire import ApprovalRequest

pytestmark = pytest.mark.anyio


async def say_yes(request: ApprovalRequest) -> Answer:
    return Answer(yes=True, by="ada")


@rule("A2")
async def test_what_was_revoked_for_its_content_permits_nothing_to_whoever_loaded_it(tmp_path: Path) -> None:
    """The log keeps the old content to compare with, and that is no approval."""
    server = build_server(Skills(MemoryCatalog([Skill("flat", {"SKILL.md": skill_md("flat")})])))
    async with SkillHost.open(servers={"one": server}, state=tmp_path / "state", ask=say_yes) as host:
        await host.settle()
        assert not (await host.call("load_skill", {"name": "flat"})).is_error
        [approval] = await host.store.approvals()
        await host.approvals.revoke("one", approval.uri, by="host", why="the content changed", only=approval)
        entry = host.names.find("flat").entry
        kept = await host.approvals.previous("one", entry)
        assert kept is not None
        assert kept.contents == approval.contents
        result = await host.call("read_skill_file", {"name": "flat", "path": "SKILL.md"})
        assert result.refusal is not None
        assert (result.refusal.reference, result.refusal.rule) == ("skill-changed", "A2")
        assert await host.gate("Bash") is not None
